"""Intervals and tests of an experiment's systems."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Evaluation, Statistics
    from plant.statistics.compare import write_intervals, write_randomization, write_wilcoxon

    files = {args.intervals: write_intervals, args.wilcoxon: write_wilcoxon, args.randomization: write_randomization}
    for file, write in files.items():
        write(
            file,
            args.settings["systems"],
            reference=args.settings["reference"],
            labels_parquet=args.labels,
            evaluation=Evaluation.model_validate(args.settings["evaluation"]),
            settings=Statistics.model_validate(args.settings["statistics"]),
        )
