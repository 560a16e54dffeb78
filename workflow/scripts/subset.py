"""Make a corpus from part of another one."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    from plant.corpus.sources import files_read
    from plant.ground.settings import parse_dataset

    return files_read(parse_dataset(args.settings["dataset"]))


@job(reads=reads)
def main(args: Arguments) -> None:
    from plant.corpus.subset import build_subset
    from plant.ground.settings import Subset

    build_subset(Subset.model_validate(args.settings["dataset"]), args.documents[0].parent, args.out)
