"""Marks: where people marked words in the test texts."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.marks import write_marks
    from plant.ground.settings import parse_dataset

    write_marks(parse_dataset(args.settings["dataset"]), args.out, args.marks)


def reads(args: Namespace) -> list[Path]:
    from plant.corpus.marks import files_of_marks
    from plant.ground.settings import parse_dataset

    return files_of_marks(parse_dataset(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, reads=reads)
