"""A variant against the reference of each experiment, as a small table on the screen."""

from argparse import Namespace

from plant.ground.job import job
from plant.paper.experiment.ablation import show_contrasts


def main(args: Namespace) -> None:
    print(show_contrasts(args.contrasts))


if __name__ == "__main__":
    job(main, inputs=("contrasts*",))
