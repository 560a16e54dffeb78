"""Stage 3: channels weighed on validation, and the reasons behind the scores."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    """What the channels know of words, beside their scores: metrics come into these folders at any time."""
    files = ("weights.parquet", "features.parquet", "choices.json")
    folders = map(Path, args.settings["channels"].values())
    return [folder / file for folder in folders for file in files if (folder / file).is_file()]


@job(reads=reads)
def main(args: Arguments) -> None:
    from plant.evidence.stage3 import evidence
    from plant.ground.settings import Evaluation, Evidence

    evidence(
        {channel: Path(folder) for channel, folder in args.settings["channels"].items()},
        corpus=args.corpus[0].parent,
        settings=Evidence.model_validate(args.settings["evidence"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
        seed=args.seed,
        shown=args.settings["shown"],
        tokens=args.tokens and args.tokens.parent,
    )
