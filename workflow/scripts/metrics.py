"""Metrics of one system and seed."""

from argparse import Namespace

from plant.commandline import job
from plant.evaluation.metrics import write_metrics
from plant.settings import Evaluation


def main(args: Namespace) -> None:
    write_metrics(args.scores, args.labels, Evaluation.model_validate(args.settings["evaluation"]))


if __name__ == "__main__":
    job(main, inputs=("scores", "labels"))
