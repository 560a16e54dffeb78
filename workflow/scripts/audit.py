"""The audit of the paper's own numbers, as a page and as a table."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.paper.audit.findings import write_audit

    write_audit(args.page, args.table, values=args.values, explanations=args.explanations)
