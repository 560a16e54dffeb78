"""Stage 3: channels weighed on validation, and the reasons behind the scores."""

from argparse import Namespace
from pathlib import Path

from plant.evidence.stage3 import evidence
from plant.ground.job import job
from plant.ground.settings import Evaluation, Evidence


def main(args: Namespace) -> None:
    evidence(
        {channel: Path(folder) for channel, folder in args.settings["channels"].items()},
        corpus=Path(args.corpus),
        settings=Evidence.model_validate(args.settings["evidence"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
        seed=args.seed,
        shown=args.settings["shown"],
        tokens=args.tokens and args.tokens.parent,
    )


def reads(args: Namespace) -> list[Path]:
    """Scores and words of the channels: metrics come into these folders at any time."""
    patterns = ("*.scores.*", "weights.parquet", "features.parquet", "choices.json")
    folders = map(Path, args.settings["channels"].values())
    return sorted(path for folder in folders for pattern in patterns for path in folder.glob(pattern))


if __name__ == "__main__":
    job(main, inputs=("documents*", "tokens?"), outputs=("out",), texts=("corpus",), reads=reads)
