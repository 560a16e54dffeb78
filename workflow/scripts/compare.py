"""Statistics of an experiment's systems: the rule's name is the test."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.ground.settings import Evaluation, Statistics
    from plant.statistics.compare import write_intervals, write_randomization, write_wilcoxon

    tests = {"bootstrap": write_intervals, "wilcoxon": write_wilcoxon, "randomization": write_randomization}
    tests[args.rule](
        args.out,
        args.settings["systems"],
        reference=args.settings["reference"],
        labels_parquet=args.labels,
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        settings=Statistics.model_validate(args.settings["statistics"]),
    )


if __name__ == "__main__":
    job(main)
