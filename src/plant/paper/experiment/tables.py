"""The tables of an experiment by their entries in `plant.paper.contents`, and those of its results.

The result tables are the paper's Table 6 for what ran, our own intervals beside it, the spread over seeds, and the
scores as probabilities. Two procedures are kept apart. "Paper's": mean gain and percentile interval over B paired
bootstrap resamples, arrows by Wilcoxon (appendix F). "Ours": the interval and the approximate randomisation test of
the room statistics (choices C11 and C19).
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.errors import InputError, nearest
from plant.paper.contents import ReportTable, report_tables
from plant.paper.experiment.data import ExperimentData
from plant.paper.inputs import FIT, read_combined_weight, read_lower_bounds
from plant.paper.render import Table, TableCell, row_of, text_template, write_table
from plant.paper.systems import System, budget_notes
from plant.paper.wording import (
    MINUS,
    MISSING,
    OVER,
    interval,
    is_number,
    metric_title,
    metric_titles,
    p_value,
    percent,
    significant,
)

_SHARES = ("brier_skill", "micro_f1@natural", "micro_f1@micro")


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


def ablation_table(data: ExperimentData) -> Table:
    """The form of Table 6: each system against the reference (last row), in the paper's notation."""
    metrics, systems = data.settings.paper.metrics, data.systems
    best = {
        metric: max((data.means.get((system.name, metric), -1.0) for system in systems), default=-1.0)
        for metric in metrics
    }

    def cell(system: System, metric: str) -> TableCell:
        value, row = data.means.get((system.name, metric)), data.rows.get((system.name, metric))
        bold = value is not None and value == best[metric]
        if system is data.reference or row is None or not is_number(row["paper_gain"]):
            return TableCell(percent(value), bold=bold)
        gain = f"({percent(row['paper_gain'], signed=True)}, {interval(row['paper_low'], row['paper_high'])})"
        return TableCell(percent(value), row["paper_arrow"], gain, bold)

    titles = [system.title for system in systems[:-1]] + [f"{data.reference.title} (reference)"]
    groups = ["no network" if system.kind == "no network" else "network" for system in systems[:-1]] + ["reference"]
    return Table(
        columns=("System", *map(metric_title, metrics)),
        rows=tuple(
            row_of(title, *(cell(system, metric) for metric in metrics))
            for title, system in zip(titles, systems, strict=True)
        ),
        data=_long(data),
        values=_notes(data),
        rules=tuple(place for place in range(1, len(groups)) if groups[place] != groups[place - 1]),
        stacked=True,
    )


def _notes(data: ExperimentData) -> dict[str, Any]:
    """What the notes of the ablation table print: seeds, budgets, thresholds, and what its columns call for."""
    metrics = data.settings.paper.metrics
    networks = [system.name for system in data.systems if system.kind != "no network"]
    bounds = read_lower_bounds(data.inputs)
    marked, measured = set(data.results.filter("anti_conservative")["metric"]), set(data.results["metric"])
    return {
        "seeds": data.metrics.filter(pl.col("system").is_in(networks))["seed"].n_unique(),
        "weight": read_combined_weight(data.inputs),
        "titles": {system.name: system.title for system in data.systems},
        "budgets": budget_notes(data.settings, data.experiment, data.systems, data.reference.name),
        "over_resamples": [metric for metric in metrics if metric in marked],
        "thresholds": data.metrics.filter(metric="threshold")["value"].drop_nulls().to_list(),
        "minus": MINUS,
        "lower_bounds": [metric for metric in metrics if any(fnmatch(metric, bound) for bound in bounds)],
        "without_interval": [metric for metric in metrics if metric not in measured],
    }


def interval_table(data: ExperimentData) -> Table:
    """Our interval and randomisation test beside the paper's gain, interval and Wilcoxon test."""
    shown = [metric for metric in data.settings.paper.metrics if (data.reference.name, metric) in data.rows]
    ours = ("system", "metric", "value", "seed_sd", "n_seeds", "low", "high", "reference", "difference",
            "diff_low", "diff_high", "randomization_p", "resamples")  # fmt: skip
    return Table(
        columns=("Metric", "System", "Value, interval (ours)", "Difference, interval (ours)", "p randomisation (ours)",
                 "Gain, interval (paper's)", "p Wilcoxon (paper's)"),
        rows=tuple(_interval_row(data, metric, system) for metric in shown for system in data.systems),
        data=_long(data).select(ours),
        values={"over": OVER[bool((data.results["n_seeds"] > 1).any())]},
        rules=tuple(len(data.systems) * place for place in range(1, len(shown))),
        text_columns=2,
    )  # fmt: skip


def _interval_row(data: ExperimentData, metric: str, system: System) -> tuple[TableCell, ...]:
    row = data.rows[system.name, metric]
    value = TableCell(percent(row["value"]), detail=interval(row["low"], row["high"]))
    if system is data.reference:
        return row_of(metric_title(metric), system.title, value, *[MISSING] * 4)
    ours = interval(row["diff_low"], row["diff_high"])
    papers = interval(row["paper_low"], row["paper_high"])
    return row_of(
        metric_title(metric),
        system.title,
        value,
        TableCell(percent(row["difference"], signed=True), row["our_arrow"], ours),
        p_value(row["randomization_p"]),
        TableCell(percent(row["paper_gain"], signed=True), row["paper_arrow"], papers),
        p_value(row["wilcoxon_p"]) + ("*" if row["anti_conservative"] else ""),
    )


def seed_table(data: ExperimentData) -> Table:
    """Mean and standard deviation (n - 1) over training seeds. One seed has no deviation."""
    metrics = data.settings.paper.metrics
    spreads = {
        (system, metric): spread
        for system, metric, spread in data.metrics.group_by("system", "metric").agg(pl.col("value").std()).iter_rows()
    }

    def cell(system: System, metric: str) -> TableCell:
        spread = spreads.get((system.name, metric))
        detail = "" if spread is None else f"± {percent(spread)}"
        return TableCell(percent(data.means.get((system.name, metric))), detail=detail)

    seeds = {system.name: data.metrics.filter(system=system.name)["seed"].n_unique() for system in data.systems}
    return Table(
        columns=("System", "Seeds", *map(metric_title, metrics)),
        rows=tuple(
            row_of(system.title, str(seeds[system.name]), *(cell(system, metric) for metric in metrics))
            for system in data.systems
        ),
        data=data.metrics.filter(pl.col("system").is_in(list(seeds))),
    )


def probability_table(data: ExperimentData) -> Table:
    """How well the scores serve as probabilities: Brier skill, F1 at p = .5, calibration (choice C17).

    Scores that are no log-odds have none of these numbers.
    """
    columns = dict.fromkeys(_SHARES, percent) | dict.fromkeys(FIT, significant)
    names = [system.name for system in data.systems]
    return Table(
        columns=("System", *map(metric_title, columns)),
        rows=tuple(
            row_of(system.title, *(form(data.means.get((system.name, metric))) for metric, form in columns.items()))
            for system in data.systems
        ),
        data=data.metrics.filter(pl.col("system").is_in(names), pl.col("metric").is_in(list(columns))),
    )


def _long(data: ExperimentData) -> pl.DataFrame:
    """All columns of the results in table order, with titles and kinds."""
    systems = pl.DataFrame(
        [(system.name, system.title, system.kind, place) for place, system in enumerate(data.systems)],
        schema={"system": pl.String, "title": pl.String, "kind": pl.String, "place": pl.Int64}, orient="row",
    )  # fmt: skip
    joined = data.results.join(systems, on="system", how="inner", maintain_order="left")
    return joined.sort("place", maintain_order=True).drop("place")


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
