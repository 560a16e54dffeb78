"""Cross-fitted log-odds of every document and label."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, float]:
    from plant.ground.settings import Relevance
    from plant.relevance.residual import write_residual

    return write_residual(
        args.labels.parent, args.tokens.parent, args.measure, Relevance.model_validate(args.settings["relevance"]),
        folds=args.settings["folds"], smoothing=args.settings["smoothing"], out=args.residual,
    )  # fmt: skip
