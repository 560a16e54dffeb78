"""The weighted sum of the two baselines: the bar to beat."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import combined
from plant.ground.job import job
from plant.ground.settings import BaselineSettings, Evaluation


def main(args: Namespace) -> None:
    combined(
        Path(args.linear),
        Path(args.log_odds),
        settings=BaselineSettings.model_validate(args.settings["baselines"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
    )


def reads(args: Namespace) -> list[Path]:
    """The scores alone: metrics come into these folders at any time."""
    return sorted(path for folder in (args.linear, args.log_odds) for path in Path(folder).glob("*.scores.*"))


if __name__ == "__main__":
    job(main, outputs=("out",), texts=("linear", "log_odds"), reads=reads)
