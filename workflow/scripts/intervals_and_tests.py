"""Intervals and tests of an experiment's systems."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Evaluation, Statistics
    from plant.statistics.compare import write_comparison

    write_comparison(
        args.settings["systems"],
        {"intervals": args.intervals, "wilcoxon": args.wilcoxon, "randomization": args.randomization},
        reference=args.settings["reference"],
        labels_parquet=args.labels,
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        settings=Statistics.model_validate(args.settings["statistics"]),
    )
