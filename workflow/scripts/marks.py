"""What people marked as the reason of a label: words of training texts, or places in test texts."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.marks import write_marks, write_mentions
    from plant.ground.settings import parse_dataset

    write = write_mentions if args.rule == "marked" else write_marks
    write(parse_dataset(args.settings["dataset"]), args.out, args.table)


def reads(args: Namespace) -> list[Path]:
    from plant.corpus.marks import files_of_marks
    from plant.ground.settings import parse_dataset

    return files_of_marks(parse_dataset(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, reads=reads)
