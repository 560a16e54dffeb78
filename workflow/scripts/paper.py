"""Tables, figures and report of one experiment; a table or figure of the paper beside ours; the cost of all."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
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


@job(reads=reads)
def main(args: Arguments) -> None:
    from pydantic import TypeAdapter

    from plant.ground.settings import Settings
    from plant.paper.experiment.data import ExperimentData
    from plant.paper.inputs import Inputs

    settings, name = Settings.model_validate(args.settings["config"]), args.settings.get("experiment")
    paths = args.settings["paths"] if name is None else {name: args.settings["paths"]}
    inputs = TypeAdapter(dict[str, Inputs]).validate_python(paths)
    if name is None:
        from plant.paper.grid.items import write_item

        write_item(args.settings["item"], settings, inputs, args.out)
    elif args.rule == "write_tables":
        from plant.paper.experiment.tables import write_tables

        write_tables(ExperimentData(inputs[name], settings, name), args.out)
    elif args.rule == "write_figures":
        from plant.paper.figures import write_figures

        write_figures(ExperimentData(inputs[name], settings, name), args.out)
    else:
        from plant.paper.experiment.report import write_report

        data = ExperimentData(inputs[name], settings, name)
        write_report(data, args.report, figures=args.figures[0].parent, choices=args.choices)
