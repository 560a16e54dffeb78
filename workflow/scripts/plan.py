"""Jobs, FLOPs, GPU hours and memory of the whole config, before anything runs."""

from argparse import Namespace

from plant.commandline import job
from plant.paper.plan import write_plan
from plant.settings import Settings


def main(args: Namespace) -> None:
    write_plan(Settings.model_validate(args.settings["config"]), args.out)


if __name__ == "__main__":
    job(main, outputs=("out",))
