"""Intervals and tests of an experiment's systems."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
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


if __name__ == "__main__":
    job(main)
