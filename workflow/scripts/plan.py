"""Jobs, FLOPs, GPU hours and memory of the whole config, before anything runs."""

from argparse import Namespace

from plant.ground.job import job
from plant.ground.settings import Settings
from plant.paper.plan.page import write_plan


def main(args: Namespace) -> None:
    write_plan(Settings.model_validate(args.settings["config"]), args.out)


if __name__ == "__main__":
    job(main, outputs=("out",))
