"""One table or figure of the paper beside ours, from whatever has run."""

from argparse import Namespace
from pathlib import Path

from pydantic import TypeAdapter

from plant.ground.job import job
from plant.ground.settings import Settings
from plant.paper.grid.items import write_item
from plant.paper.inputs import Inputs, files_read


def main(args: Namespace) -> None:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    settings = Settings.model_validate(args.settings["config"])
    write_item(args.settings["item"], settings, paths, args.out)


def reads(args: Namespace) -> list[Path]:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    return list(dict.fromkeys(file for each in paths.values() for file in files_read(each)))


if __name__ == "__main__":
    job(main, outputs=("out",), reads=reads)
