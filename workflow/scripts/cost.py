"""What every stage cost, across datasets and backbones."""

from argparse import Namespace
from pathlib import Path

from pydantic import TypeAdapter

from plant.commandline import job
from plant.paper.cost_grid import write_costs
from plant.paper.inputs import Inputs, files_read
from plant.settings import Settings


def main(args: Namespace) -> None:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    write_costs(Settings.model_validate(args.settings["config"]), paths, args.out)


def reads(args: Namespace) -> list[Path]:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    return list(dict.fromkeys(file for each in paths.values() for file in files_read(each)))


if __name__ == "__main__":
    job(main, outputs=("out",), reads=reads)
