"""Fetch one public file, unless it is there already."""

from argparse import Namespace

from plant.commandline import job
from plant.corpus.fetch import fetch
from plant.settings import Download


def main(args: Namespace) -> None:
    fetch(Download.model_validate(args.settings["download"]), args.target)


if __name__ == "__main__":
    job(main, outputs=("target",))
