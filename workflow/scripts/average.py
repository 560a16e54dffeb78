"""The mean of what two networks predict."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    """All scores of both, where the label set is small."""
    tables = [*args.scores, *args.others]
    return [scores for table in tables if (scores := table.with_suffix(".safetensors")).is_file()]


@job(reads=reads)
def main(args: Arguments) -> None:
    from plant.evidence.average import average
    from plant.ground.settings import Evaluation

    average(
        [args.scores[0].parent, args.others[0].parent],
        corpus=args.corpus[0].parent,
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
    )
