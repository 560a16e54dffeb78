"""A variant against the reference of each experiment, as a small table on the screen."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.paper.experiment.ablation import show_contrasts

    print(show_contrasts(args.contrasts or []))
