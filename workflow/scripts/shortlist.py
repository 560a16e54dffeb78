"""A few candidate labels of every document."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, float]:
    from plant.relevance.shortlist import write_shortlist

    return write_shortlist(
        args.labels.parent, args.tokens.parent, args.relevance, size=args.settings["size"], out=args.shortlist
    )
