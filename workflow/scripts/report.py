"""The report of one experiment."""

from argparse import Namespace

from pydantic import TypeAdapter

from plant.commandline import job
from plant.paper.inputs import Inputs
from plant.paper.report import write_report
from plant.settings import Settings


def main(args: Namespace) -> None:
    write_report(
        TypeAdapter(Inputs).validate_python(args.settings["paths"]),
        args.report,
        figures=args.figures,
        choices=args.choices,
        settings=Settings.model_validate(args.settings["config"]),
        experiment=args.settings["experiment"],
    )


if __name__ == "__main__":
    job(main, inputs=("figures", "choices"), outputs=("report",))
