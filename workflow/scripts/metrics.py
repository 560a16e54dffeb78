"""Metrics of one system and seed; they lie beside its scores."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.evaluation.metrics import write_metrics
    from plant.ground.settings import Evaluation

    write_metrics(args.out, args.labels, Evaluation.model_validate(args.settings["evaluation"]))


if __name__ == "__main__":
    job(main)
