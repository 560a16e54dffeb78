"""Fetch one public file, unless it is there already."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.corpus.fetch import fetch
    from plant.ground.settings import Download

    fetch(Download.model_validate(args.settings["download"]), args.target)
