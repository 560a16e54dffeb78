"""The report of one experiment."""

from argparse import Namespace
from pathlib import Path

from pydantic import TypeAdapter

from plant.ground.job import job
from plant.ground.settings import Settings
from plant.paper.experiment.report import write_report
from plant.paper.inputs import Inputs, files_read


def main(args: Namespace) -> None:
    paths = TypeAdapter(Inputs).validate_python(args.settings["paths"])
    write_report(
        paths,
        args.report,
        figures=args.figures,
        choices=args.choices,
        settings=Settings.model_validate(args.settings["config"]),
        experiment=args.settings["experiment"],
    )


def reads(args: Namespace) -> list[Path]:
    return files_read(TypeAdapter(Inputs).validate_python(args.settings["paths"]))


if __name__ == "__main__":
    job(main, inputs=("figures", "choices"), outputs=("report",), reads=reads)
