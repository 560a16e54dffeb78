"""Tables, figures and report of one experiment; a table or figure of the paper beside ours; the cost of all."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from plant.ground.job import job

if TYPE_CHECKING:
    from plant.paper.experiment.data import ExperimentData
    from plant.paper.inputs import Inputs


def main(args: Namespace) -> None:
    from plant.ground.settings import Settings
    from plant.paper.experiment.data import ExperimentData

    settings = Settings.model_validate(args.settings["config"])
    if "item" in args.settings:
        from plant.paper.grid.items import write_item

        write_item(args.settings["item"], settings, inputs_of(args), args.out)
    else:
        name = args.settings["experiment"]
        write_experiment(args, ExperimentData(inputs_of(args)[name], settings, name))


def write_experiment(args: Namespace, data: "ExperimentData") -> None:
    """Tables, figures or report of one experiment, by the rule."""
    if args.rule == "write_tables":
        from plant.paper.experiment.tables import write_tables

        write_tables(data, args.out)
    elif args.rule == "write_figures":
        from plant.paper.figures import write_figures

        write_figures(data, args.out)
    else:
        from plant.paper.experiment.report import write_report

        write_report(data, args.report, figures=args.figures[0].parent, choices=args.choices)


def inputs_of(args: Namespace) -> dict[str, "Inputs"]:
    """Experiment -> the paths of its results."""
    from pydantic import TypeAdapter

    from plant.paper.inputs import Inputs

    paths, name = args.settings["paths"], args.settings.get("experiment")
    return TypeAdapter(dict[str, Inputs]).validate_python(paths if name is None else {name: paths})


def reads(args: Namespace) -> list[Path]:
    """The results that are there, and what the report says of our choices."""
    from plant.ground.settings import Settings
    from plant.paper.paths import Paths, in_folders

    paths = Paths(Settings.model_validate(args.settings["config"]))
    files = [file for name in paths.settings.experiments for file in paths.input_files(name)]
    if args.settings.get("item") == "awd_table_11":
        from plant.paper.grid.words import NGRAMS

        groups = [paths.systems(name).get(NGRAMS, ()) for name in paths.settings.experiments]
        files += in_folders(groups, ["weights.parquet"])
    found = [path for path in map(Path, dict.fromkeys(files)) if path.is_file()]
    return [*found, *([args.choices] if "choices" in args else [])]


if __name__ == "__main__":
    job(main, reads=reads)
