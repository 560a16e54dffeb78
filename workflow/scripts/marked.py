"""Mentions: what people marked in the training texts."""

from argparse import Namespace
from pathlib import Path

from plant.corpus.mentions import write_mentions
from plant.corpus.sources import files_read
from plant.ground.job import job
from plant.ground.settings import parse_dataset


def main(args: Namespace) -> None:
    write_mentions(parse_dataset(args.settings["dataset"]), Path(args.corpus), args.mentions)


def reads(args: Namespace) -> list[Path]:
    dataset = parse_dataset(args.settings["dataset"])
    mentions = getattr(dataset, "mentions", None)  # a file of their own, beside the documents
    return files_read(dataset) if mentions is None else [Path(mentions)]


if __name__ == "__main__":
    job(main, inputs=("documents*",), outputs=("mentions",), texts=("corpus",), reads=reads)
