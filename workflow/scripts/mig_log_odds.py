"""The baseline of log-odds over a label's most informative words."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import mig_log_odds
from plant.ground.job import job
from plant.ground.settings import BaselineSettings, Evaluation


def main(args: Namespace) -> None:
    mig_log_odds(
        Path(args.corpus),
        args.tokens.parent,
        args.relevance,
        settings=BaselineSettings.model_validate(args.settings["baselines"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
    )


if __name__ == "__main__":
    job(main, inputs=("tokens", "relevance"), outputs=("out",), texts=("corpus",))
