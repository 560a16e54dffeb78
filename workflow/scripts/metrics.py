"""Metrics of one system and seed; they lie beside its scores."""

from argparse import Namespace

from plant.evaluation.metrics import write_metrics
from plant.ground.job import job
from plant.ground.settings import Evaluation


def main(args: Namespace) -> None:
    write_metrics(args.out, args.labels, Evaluation.model_validate(args.settings["evaluation"]))


if __name__ == "__main__":
    job(main, inputs=("scores*", "labels"), outputs=("out",))
