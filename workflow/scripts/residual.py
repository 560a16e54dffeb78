"""Cross-fitted log-odds of every document and label."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> dict[str, float]:
    from plant.ground.settings import Relevance
    from plant.relevance.residual import write_residual

    return write_residual(
        args.labels.parent, args.tokens.parent, args.measure, Relevance.model_validate(args.settings["relevance"]),
        folds=args.settings["folds"], smoothing=args.settings["smoothing"], out=args.residual,
    )  # fmt: skip


if __name__ == "__main__":
    job(main)
