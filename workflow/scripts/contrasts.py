"""Differences between pairs of systems over seeds and documents."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Evaluation, Statistics
    from plant.statistics.compare import write_contrasts

    write_contrasts(
        args.out,
        args.settings["systems"],
        pairs=[tuple(pair) for pair in args.settings["pairs"]],
        labels_parquet=args.labels,
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        settings=Statistics.model_validate(args.settings["statistics"]),
    )
