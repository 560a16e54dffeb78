"""Read, clean, split and check one dataset."""

from argparse import Namespace
from pathlib import Path

from plant.corpus.build import build_corpus
from plant.corpus.sources import files_read
from plant.ground.job import job
from plant.ground.settings import parse_dataset


def main(args: Namespace) -> None:
    build_corpus(parse_dataset(args.settings["dataset"]), args.out, raw=args.raw)


def reads(args: Namespace) -> list[Path]:
    return files_read(parse_dataset(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, inputs=("raw?",), outputs=("out",), reads=reads)
