"""One table or figure of the paper beside ours, from whatever has run."""

from argparse import Namespace
from pathlib import Path

from pydantic import TypeAdapter

from plant.commandline import job
from plant.paper.grid import write_item
from plant.paper.inputs import Inputs, files_read
from plant.settings import Settings


def main(args: Namespace) -> None:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    settings = Settings.model_validate(args.settings["config"])
    write_item(args.settings["item"], settings, paths, args.out)


def reads(args: Namespace) -> list[Path]:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    return list(dict.fromkeys(file for each in paths.values() for file in files_read(each)))


if __name__ == "__main__":
    job(main, outputs=("out",), reads=reads)
