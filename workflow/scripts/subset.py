"""Make a corpus from part of another one."""

from argparse import Namespace
from pathlib import Path

from plant.corpus.sources import files_read
from plant.corpus.subset import build_subset
from plant.ground.job import job
from plant.ground.settings import Subset


def main(args: Namespace) -> None:
    build_subset(Subset.model_validate(args.settings["dataset"]), Path(args.corpus), args.out)


def reads(args: Namespace) -> list[Path]:
    return files_read(Subset.model_validate(args.settings["dataset"]))


if __name__ == "__main__":
    job(main, inputs=("documents*",), outputs=("out",), texts=("corpus",), reads=reads)
