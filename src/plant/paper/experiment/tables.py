"""The tables of an experiment, each by its entry (`plant.paper.contents`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plant.paper.contents import report_tables
from plant.paper.experiment.data import ExperimentData
from plant.paper.render import Table, render_text, write_table
from plant.paper.wording import metric_titles


def write_tables(data: ExperimentData, folder: Path) -> None:
    """Write every table of `plant.paper.contents` as CSV, Markdown and LaTeX into `folder`."""
    for table in build_tables(data).values():
        write_table(table, folder)


def build_tables(data: ExperimentData) -> dict[str, Table]:
    """Name -> table with the name, the title and the notes of its entry, in the order of `plant.paper.contents`."""
    statistics, tables = data.settings.statistics, {}
    for name, entry in report_tables().items():
        table = entry.load()(data)
        values = {
            "data": data, "statistics": statistics, "level": f"{100 * statistics.confidence:g}%",
            "alpha": f"p < {statistics.alpha:g}", "metric_titles": metric_titles, **table.values,
        }  # fmt: skip
        notes = (" ".join(paragraph.split()) for paragraph in render_text(entry.notes, values).split("\n\n"))
        tables[name] = replace(
            table, name=name, title=render_text(entry.title, values), notes=tuple(filter(None, notes))
        )
    return tables
