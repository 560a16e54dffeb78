"""The audit of the paper's own numbers, as a page and as a table."""

from argparse import Namespace

from plant.ground.job import job
from plant.paper.audit.findings import write_audit


def main(args: Namespace) -> None:
    write_audit(args.page, args.table, values=args.values, explanations=args.explanations)


if __name__ == "__main__":
    job(main, inputs=("values", "explanations"), outputs=("page", "table"))
