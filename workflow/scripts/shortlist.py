"""A few candidate labels of every document."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> dict[str, float]:
    from plant.relevance.shortlist import write_shortlist

    return write_shortlist(
        args.labels.parent, args.tokens.parent, args.relevance, size=args.settings["size"], out=args.shortlist
    )


if __name__ == "__main__":
    job(main)
