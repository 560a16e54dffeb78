"""Differences between pairs of systems over seeds and documents, for the studies that ask for them."""

from argparse import Namespace

from plant.ground.job import job
from plant.ground.settings import Evaluation, Statistics
from plant.statistics.compare import write_contrasts


def main(args: Namespace) -> None:
    write_contrasts(
        args.out,
        args.settings["systems"],
        pairs=[tuple(pair) for pair in args.settings["pairs"]],
        labels_parquet=args.labels,
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        settings=Statistics.model_validate(args.settings["statistics"]),
    )


if __name__ == "__main__":
    job(main, inputs=("scores*", "labels"), outputs=("out",))
