"""The rates of Stage 2 with the best validation score, of every arm of a tuning."""

from pathlib import Path

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.evaluation.tuning import read_grid, write_choice
    from plant.ground.settings import Tuned, Tuning

    tuning = Tuning.model_validate(args.settings["tuning"])
    points = {
        arm: {network: Tuned.model_validate(point) for network, point in networks.items()}
        for arm, networks in args.settings["points"].items()
    }
    grid = read_grid(points, Path(args.folder), tuning)
    write_choice(
        grid, tuning, runs=args.settings["runs"], also=args.settings["also"], table=args.grid, config=args.chosen
    )
