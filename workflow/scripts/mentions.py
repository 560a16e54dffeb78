"""The baseline of words that people marked as a label's reason."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import mentions
from plant.ground.job import job
from plant.ground.settings import BaselineSettings, Evaluation


def main(args: Namespace) -> None:
    mentions(
        Path(args.corpus),
        args.mentions,
        settings=BaselineSettings.model_validate(args.settings["baselines"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
    )


if __name__ == "__main__":
    job(main, inputs=("documents*", "mentions"), outputs=("out",), texts=("corpus",))
