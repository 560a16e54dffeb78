"""Approximate randomisation of an experiment's systems."""

from argparse import Namespace

from plant.ground.job import job
from plant.ground.settings import Evaluation, Statistics
from plant.statistics.compare import write_randomization


def main(args: Namespace) -> None:
    write_randomization(
        args.out,
        args.settings["systems"],
        reference=args.settings["reference"],
        labels_parquet=args.labels,
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        settings=Statistics.model_validate(args.settings["statistics"]),
    )


if __name__ == "__main__":
    job(main, inputs=("scores*", "labels"), outputs=("out",))
