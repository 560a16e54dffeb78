"""Make a corpus from part of another one."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.subset import build_subset
    from plant.ground.settings import Subset

    build_subset(Subset.model_validate(args.settings["dataset"]), args.documents[0].parent, args.out)


def reads(args: Namespace) -> list[Path]:
    from plant.corpus.sources import files_read
    from plant.ground.settings import parse_dataset

    return files_read(parse_dataset(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, reads=reads)
