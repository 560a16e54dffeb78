"""The audit of the paper's own numbers, as a page and as a table."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.paper.audit.findings import write_audit

    write_audit(args.page, args.table, values=args.values, explanations=args.explanations)


if __name__ == "__main__":
    job(main)
