"""What people marked as the reason of a label: words of training texts, or places in test texts."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    from plant.corpus.marks import files_of_marks
    from plant.ground.settings import parse_dataset

    return files_of_marks(parse_dataset(args.settings["dataset"]))


@job(reads=reads)
def main(args: Arguments) -> None:
    from plant.corpus.marks import write_marks, write_mentions
    from plant.ground.settings import parse_dataset

    write = write_mentions if args.rule == "marked" else write_marks
    write(parse_dataset(args.settings["dataset"]), args.out, args.table)
