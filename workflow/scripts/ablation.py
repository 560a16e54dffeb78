"""A variant against the reference of each experiment, as a small table on the screen."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.paper.experiment.ablation import show_contrasts

    print(show_contrasts(args.contrasts or []))


if __name__ == "__main__":
    job(main)
