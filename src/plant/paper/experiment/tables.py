"""The tables of an experiment, each by its entry (`plant.paper.contents`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plant.ground.errors import InputError, nearest
from plant.paper.contents import ReportTable, report_tables
from plant.paper.experiment.data import ExperimentData
from plant.paper.render import Table, text_template, write_table
from plant.paper.wording import metric_titles


def write_tables(data: ExperimentData, folder: Path) -> None:
    """Write every table of `plant.paper.contents` as CSV, Markdown and LaTeX into `folder`.

    Raises:
        InputError: an input is missing, lacks a column, or a system or metric of the config has no results.
    """
    for table in build_tables(data).values():
        write_table(table, folder)


def build_tables(data: ExperimentData) -> dict[str, Table]:
    """Name -> table, in the order of `plant.paper.contents`."""
    _require_complete(data)
    return {name: _build(entry, data) for name, entry in report_tables().items()}


def _build(entry: ReportTable, data: ExperimentData) -> Table:
    """A table with the name, the title and the notes of its entry."""
    table, statistics = entry.load()(data), data.settings.statistics
    values = {
        "data": data, "statistics": statistics, "level": f"{100 * statistics.confidence:g}%",
        "alpha": f"p < {statistics.alpha:g}", **table.values,
    }  # fmt: skip
    paragraphs = text_template(entry.notes, metric_titles=metric_titles).render(values).split("\n\n")
    return replace(
        table,
        name=entry.name,
        title=text_template(entry.title).render(values),
        notes=tuple(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()),
    )


def _require_complete(data: ExperimentData) -> None:
    """Refuse results that lack a system or a metric of the config."""
    for where, table in (("intervals.parquet", data.results), ("metrics.json", data.metrics)):
        known = table["system"].unique().to_list()
        for system in data.systems:
            if system.name not in known:
                raise InputError(
                    where, expected=f"results of the system {system.name!r}", got=f"{', '.join(sorted(known))}",
                    fix="Run its evaluation and the statistics again.",
                )  # fmt: skip
    measured = data.metrics["metric"].unique().to_list()
    for metric in data.settings.paper.metrics:
        if metric not in measured:
            raise InputError(
                f"paper.metrics: {metric}", expected="a metric of metrics.json", got="an unknown name",
                fix=nearest(metric, measured),
            )  # fmt: skip
