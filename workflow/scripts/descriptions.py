"""The baseline of label descriptions that a document holds."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import descriptions
from plant.ground.job import job
from plant.ground.settings import Evaluation


def main(args: Namespace) -> None:
    descriptions(Path(args.corpus), evaluation=Evaluation.model_validate(args.settings["evaluation"]), out=args.out)


if __name__ == "__main__":
    job(main, inputs=("documents*",), outputs=("out",), texts=("corpus",))
