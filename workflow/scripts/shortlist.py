"""A few candidate labels of every document."""

from argparse import Namespace

from plant.ground.job import job
from plant.relevance.shortlist import write_shortlist


def main(args: Namespace) -> dict[str, float]:
    return write_shortlist(
        args.labels.parent, args.tokens.parent, args.relevance, size=args.settings["size"], out=args.shortlist
    )


if __name__ == "__main__":
    job(main, inputs=("labels", "tokens", "relevance"), outputs=("shortlist",))
