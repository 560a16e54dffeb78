"""Marks: where people marked words in the test texts."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.marks import write_marks
    from plant.ground.settings import parse_dataset

    write_marks(parse_dataset(args.settings["dataset"]), args.out, args.marks)


def reads(args: Namespace) -> list[Path]:
    from plant.corpus.sources import files_read
    from plant.ground.settings import parse_dataset

    dataset = parse_dataset(args.settings["dataset"])
    mentions = getattr(dataset, "mentions", None)  # a file of their own, beside the documents
    return files_read(dataset) if mentions is None else [Path(mentions)]


if __name__ == "__main__":
    job(main, reads=reads)
