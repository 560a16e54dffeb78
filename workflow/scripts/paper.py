"""Tables, figures and report of one experiment; a table or figure of the paper beside ours; the cost of all."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.ground.settings import Settings
    from plant.paper.paths import Paths

    settings, name = Settings.model_validate(args.settings["config"]), args.settings.get("experiment")
    if "item" in args.settings:
        from plant.paper.grid.items import write_item

        write_item(args.settings["item"], settings, Paths(settings).all_inputs(), args.out)
    elif name is None:
        from plant.paper.grid.cost import write_costs

        write_costs(settings, Paths(settings).all_inputs(), args.out)
    elif args.rule == "write_tables":
        from plant.paper.experiment.tables import write_tables

        write_tables(Paths(settings).inputs(name), args.out, settings=settings, experiment=name)
    elif args.rule == "write_figures":
        from plant.paper.figures import write_figures

        write_figures(Paths(settings).inputs(name), args.out, settings=settings, experiment=name)
    else:
        from plant.paper.experiment.report import write_report

        write_report(
            Paths(settings).inputs(name), args.report, figures=args.figures[0].parent, choices=args.choices,
            settings=settings, experiment=name,
        )  # fmt: skip


def reads(args: Namespace) -> list[Path]:
    """The results that are there, and what the report says of our choices."""
    from plant.ground.settings import Settings
    from plant.paper.inputs import files_read
    from plant.paper.paths import Paths

    paths = Paths(Settings.model_validate(args.settings["config"]))
    found = [file for inputs in paths.all_inputs().values() for file in files_read(inputs)]
    return [*found, *([args.choices] if "choices" in args else [])]


if __name__ == "__main__":
    job(main, reads=reads)
