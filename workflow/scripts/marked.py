"""Mentions: what people marked in the training texts."""

from argparse import Namespace
from pathlib import Path

from plant.commandline import job
from plant.corpus.mentions import write_mentions
from plant.corpus.named import files_read
from plant.settings import parse_dataset


def main(args: Namespace) -> None:
    write_mentions(parse_dataset(args.settings["dataset"]), Path(args.corpus), args.mentions)


def reads(args: Namespace) -> list[Path]:
    return files_read(parse_dataset(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, inputs=("documents*",), outputs=("mentions",), texts=("corpus",), reads=reads)
