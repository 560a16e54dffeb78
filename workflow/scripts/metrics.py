"""Metrics of one system and seed; they lie beside its scores."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.evaluation.metrics import write_metrics
    from plant.ground.settings import Evaluation

    write_metrics(args.out, args.labels, Evaluation.model_validate(args.settings["evaluation"]))
