"""Contingency, measure and top k tokens of each label."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Relevance, parse_backbone
    from plant.relevance.table import write_relevance

    backbone = args.settings.get("backbone")
    write_relevance(
        args.labels.parent,
        args.tokens.parent,
        args.measure,
        Relevance.model_validate(args.settings["relevance"]),
        parquet=args.parquet,
        arrays=args.arrays,
        backbone=parse_backbone(backbone) if backbone else None,
        tokenizer=args.tokenizer,
    )
