"""What every stage cost, across datasets and backbones."""

from argparse import Namespace

from pydantic import TypeAdapter

from plant.commandline import job
from plant.paper.cost_grid import write_costs
from plant.paper.inputs import Inputs
from plant.settings import Settings


def main(args: Namespace) -> None:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    write_costs(Settings.model_validate(args.settings["config"]), paths, args.out)


if __name__ == "__main__":
    job(main, outputs=("out",))
