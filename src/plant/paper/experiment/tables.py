"""Every table of an experiment. Context tables (corpus and cost) are in context_tables.

The result tables are the paper's Table 6 for what ran, our own intervals beside it, the spread over seeds, and the
scores as probabilities. Two procedures are kept apart. "Paper's": mean gain and percentile interval over B paired
bootstrap resamples, arrows by Wilcoxon (appendix F). "Ours": the interval and the approximate randomisation test of
the room statistics (choices C11 and C19).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant.ground.errors import InputError, nearest
from plant.paper.experiment.budgets import budget_table
from plant.paper.experiment.context_tables import corpus_table, cost_table
from plant.paper.experiment.data import ExperimentData
from plant.paper.experiment.notes import ablation_notes, notes_of
from plant.paper.inputs import FIT
from plant.paper.render import Table, TableCell, row_of, write_table
from plant.paper.systems import System
from plant.paper.wording import MISSING, OVER, interval, is_number, metric_title, p_value, percent, significant

_SHARES = ("brier_skill", "micro_f1@natural", "micro_f1@micro")


def write_tables(data: ExperimentData, folder: Path) -> None:
    """Write every table of `plant.paper.TABLES` as CSV, Markdown and LaTeX into `folder`.

    Raises:
        InputError: an input is missing, lacks a column, or a system or metric of the config has no results.
    """
    for table in build_tables(data):
        write_table(table, folder)


def build_tables(data: ExperimentData) -> tuple[Table, ...]:
    """All tables in the order of `plant.paper.TABLES`."""
    _require_complete(data)
    return (
        ablation_table(data),
        interval_table(data),
        seed_table(data),
        probability_table(data),
        budget_table(data),
        corpus_table(data),
        cost_table(data),
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
        name="ablation",
        title="Ablation in the form of the paper's Table 6 (test split, ×100)",
        columns=("System", *map(metric_title, metrics)),
        rows=tuple(
            row_of(title, *(cell(system, metric) for metric in metrics))
            for title, system in zip(titles, systems, strict=True)
        ),
        data=_long(data),
        notes=ablation_notes(data),
        rules=tuple(place for place in range(1, len(groups)) if groups[place] != groups[place - 1]),
        stacked=True,
    )


def interval_table(data: ExperimentData) -> Table:
    """Our interval and randomisation test beside the paper's gain, interval and Wilcoxon test."""
    shown = [metric for metric in data.settings.paper.metrics if (data.reference.name, metric) in data.rows]
    ours = ("system", "metric", "value", "seed_sd", "n_seeds", "low", "high", "reference", "difference",
            "diff_low", "diff_high", "randomization_p", "resamples")  # fmt: skip
    return Table(
        name="intervals",
        title=f"Our {100 * data.settings.statistics.confidence:g}% intervals and randomisation test beside the paper's "
              "procedure (test split, ×100)",
        columns=("Metric", "System", "Value, interval (ours)", "Difference, interval (ours)", "p randomisation (ours)",
                 "Gain, interval (paper's)", "p Wilcoxon (paper's)"),
        rows=tuple(_interval_row(data, metric, system) for metric in shown for system in data.systems),
        data=_long(data).select(ours),
        notes=notes_of("intervals", data, over=OVER[bool((data.results["n_seeds"] > 1).any())]),
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
        name="seeds",
        title="Spread over training seeds (test split, ×100, mean ± standard deviation)",
        columns=("System", "Seeds", *map(metric_title, metrics)),
        rows=tuple(
            row_of(system.title, str(seeds[system.name]), *(cell(system, metric) for metric in metrics))
            for system in data.systems
        ),
        data=data.metrics.filter(pl.col("system").is_in(list(seeds))),
        notes=notes_of("seeds", data),
    )


def probability_table(data: ExperimentData) -> Table:
    """How well the scores serve as probabilities: Brier skill, F1 at p = .5, calibration (choice C17).

    Scores that are no log-odds have none of these numbers.
    """
    columns = dict.fromkeys(_SHARES, percent) | dict.fromkeys(FIT, significant)
    names = [system.name for system in data.systems]
    return Table(
        name="probabilities",
        title="The scores as probabilities (test split, means over seeds; skill and F1 ×100)",
        columns=("System", *map(metric_title, columns)),
        rows=tuple(
            row_of(system.title, *(form(data.means.get((system.name, metric))) for metric, form in columns.items()))
            for system in data.systems
        ),
        data=data.metrics.filter(pl.col("system").is_in(names), pl.col("metric").is_in(list(columns))),
        notes=notes_of("probabilities", data),
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
