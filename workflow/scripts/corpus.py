"""Read, clean, split and check one dataset."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.build import build_corpus
    from plant.ground.settings import parse_dataset

    build_corpus(parse_dataset(args.settings["dataset"]), args.out, raw=args.raw)


def reads(args: Namespace) -> list[Path]:
    from plant.corpus.sources import files_read
    from plant.ground.settings import parse_dataset

    return files_read(parse_dataset(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, reads=reads)
