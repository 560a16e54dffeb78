"""Read, clean, split and check one dataset."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    from plant.corpus.sources import files_read
    from plant.ground.settings import parse_dataset

    return files_read(parse_dataset(args.settings["dataset"]))


@job(reads=reads)
def main(args: Arguments) -> None:
    from plant.corpus.build import build_corpus
    from plant.ground.settings import parse_dataset

    build_corpus(parse_dataset(args.settings["dataset"]), args.out, raw=args.raw)
