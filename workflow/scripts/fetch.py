"""Fetch one public file, unless it is there already."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.fetch import fetch
    from plant.ground.settings import Download

    fetch(Download.model_validate(args.settings["download"]), args.target)


if __name__ == "__main__":
    job(main)
