"""The result tables: the paper's Table 6 for what ran, our own intervals beside it, and the spread over seeds.

Two procedures are kept apart everywhere. "Paper's": mean gain and percentile interval over B paired bootstrap
resamples, arrows by Wilcoxon (appendix F). "Ours": the interval and the approximate randomisation of the room
statistics (choices C11 and C19).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from plant.ground.settings import Experiment, Settings
from plant.paper.experiment.notes import PROBABILITY_NOTES, ablation_notes, interval_notes
from plant.paper.inputs import FIT
from plant.paper.render import Table, TableCell
from plant.paper.systems import System
from plant.paper.wording import MISSING, interval, is_number, metric_title, p_value, percent, significant

Row = Mapping[str, Any]
_SHARES = ("brier_skill", "micro_f1@natural", "micro_f1@micro")


def ablation_table(
    results: pl.DataFrame,
    metrics: pl.DataFrame,
    *,
    systems: tuple[System, ...],
    settings: Settings,
    experiment: Experiment,
    lower_bounds: Sequence[str] = (),
    combined_weight: float | None = None,
) -> Table:
    """The form of Table 6: each system against the reference (last row), in the paper's notation.

    Args:
        results: as `read_results` returns it.
        metrics: as `read_metrics` returns it; gives the value of metrics that have no interval.
        systems: rows in order, the reference last.
        lower_bounds: as `read_lower_bounds` returns them, for the notes.
        combined_weight: as `read_combined_weight` returns it, for the notes.
    """
    rows_of = _by_system_and_metric(results)
    means = _seed_means(metrics)
    columns = settings.paper.metrics
    best = {metric: max((means.get((s.name, metric), -1.0) for s in systems), default=-1.0) for metric in columns}
    body = []
    for system in systems:
        cells = [TableCell(system.title + (" (reference)" if system is systems[-1] else ""))]
        for metric in columns:
            value = means.get((system.name, metric))
            row = rows_of.get((system.name, metric)) if system is not systems[-1] else None
            bold = value is not None and value == best[metric]
            cells.append(_paper_cell(value, row, bold=bold))
        body.append(tuple(cells))
    return Table(
        name="ablation",
        title="Ablation in the form of the paper's Table 6 (test split, ×100)",
        columns=("System", *map(metric_title, columns)),
        rows=tuple(body),
        data=_long(results, systems),
        notes=ablation_notes(
            results,
            metrics,
            systems=systems,
            settings=settings,
            experiment=experiment,
            lower_bounds=lower_bounds,
            combined_weight=combined_weight,
        ),
        rules=tuple(i for i in range(1, len(systems)) if _group(systems, i) != _group(systems, i - 1)),
        stacked=True,
    )


def interval_table(results: pl.DataFrame, *, systems: tuple[System, ...], settings: Settings) -> Table:
    """Our interval and randomisation test beside the paper's gain, interval and Wilcoxon test."""
    rows_of = _by_system_and_metric(results)
    shown = [metric for metric in settings.paper.metrics if (systems[-1].name, metric) in rows_of]
    body: list[tuple[TableCell, ...]] = []
    rules: list[int] = []
    for metric in shown:
        rules.append(len(body))
        for system in systems:
            row = rows_of[system.name, metric]
            body.append(_interval_row(metric, system, row, reference=systems[-1]))
    level = f"{100 * settings.statistics.confidence:g}%"
    ours = ("system", "metric", "value", "seed_sd", "n_seeds", "low", "high", "reference", "difference",
            "diff_low", "diff_high", "randomization_p", "resamples")  # fmt: skip
    return Table(
        name="intervals",
        title=f"Our {level} intervals and randomisation test beside the paper's procedure (test split, ×100)",
        columns=("Metric", "System", "Value, interval (ours)", "Difference, interval (ours)", "p randomisation (ours)",
                 "Gain, interval (paper's)", "p Wilcoxon (paper's)"),
        rows=tuple(body),
        data=_long(results, systems).select(ours),
        notes=interval_notes(
            reference=systems[-1], settings=settings, seeds=max(results.get_column("n_seeds").to_list())
        ),
        rules=tuple(rules[1:]),
        text_columns=2,
    )  # fmt: skip


def seed_table(metrics: pl.DataFrame, *, systems: tuple[System, ...], settings: Settings) -> Table:
    """Mean and standard deviation (n - 1) over training seeds; no spread is printed for one seed."""
    body = []
    for system in systems:
        own = metrics.filter(system=system.name)
        seeds = own.get_column("seed").n_unique()
        cells = [TableCell(system.title), TableCell(str(seeds))]
        for metric in settings.paper.metrics:
            values = own.filter(metric=metric).get_column("value").drop_nulls()
            spread = values.std() if len(values) > 1 else None
            detail = f"± {percent(spread)}" if isinstance(spread, float) else ""
            mean = values.mean()
            cells.append(TableCell(percent(mean if isinstance(mean, float) else None), detail=detail))
        body.append(tuple(cells))
    return Table(
        name="seeds",
        title="Spread over training seeds (test split, ×100, mean ± standard deviation)",
        columns=("System", "Seeds", *map(metric_title, settings.paper.metrics)),
        rows=tuple(body),
        data=metrics.filter(pl.col("system").is_in([system.name for system in systems])),
        notes=(
            (
                "The spread over seeds is training noise. Our intervals hold it beside the sampling noise of the test "
                "documents; the paper's hold the latter alone. Systems without a network have one fit and no spread."
            ),
        ),
    )


def probability_table(metrics: pl.DataFrame, *, systems: tuple[System, ...]) -> Table:
    """Whether a system's scores can be read as probabilities: Brier skill, F1 at p = .5, calibration (choice C17).

    Args:
        metrics: as `read_metrics` returns it; a metric without values is one of scores that have no scale.
        systems: rows in order.
    """
    means = _seed_means(metrics)
    body = []
    for system in systems:
        shares = (TableCell(percent(means.get((system.name, metric)))) for metric in _SHARES)
        fits = (TableCell(significant(means.get((system.name, metric)))) for metric in FIT)
        body.append((TableCell(system.title), *shares, *fits))
    names = [system.name for system in systems]
    return Table(
        name="probabilities",
        title="The scores as probabilities (test split, means over seeds; skill and F1 ×100)",
        columns=("System", *map(metric_title, (*_SHARES, *FIT))),
        rows=tuple(body),
        data=metrics.filter(pl.col("system").is_in(names), pl.col("metric").is_in((*_SHARES, *FIT))),
        notes=PROBABILITY_NOTES,
    )


def _paper_cell(value: float | None, row: Row | None, *, bold: bool) -> TableCell:
    if row is None or not is_number(row["paper_gain"]):
        return TableCell(percent(value), bold=bold)
    low, high = row["paper_low"], row["paper_high"]
    gain = percent(row["paper_gain"], signed=True)
    return TableCell(percent(value), row["paper_arrow"], f"({gain}, {interval(low, high)})", bold)


def _interval_row(metric: str, system: System, row: Row, *, reference: System) -> tuple[TableCell, ...]:
    value = TableCell(percent(row["value"]), detail=interval(row["low"], row["high"]))
    name = (TableCell(metric_title(metric)), TableCell(system.title))
    if system is reference:
        return (*name, value, *(TableCell(MISSING),) * 4)
    ours = interval(row["diff_low"], row["diff_high"])
    papers = interval(row["paper_low"], row["paper_high"])
    return (
        *name,
        value,
        TableCell(percent(row["difference"], signed=True), row["our_arrow"], ours),
        TableCell(p_value(row["randomization_p"])),
        TableCell(percent(row["paper_gain"], signed=True), row["paper_arrow"], papers),
        TableCell(p_value(row["wilcoxon_p"]) + ("*" if row["anti_conservative"] else "")),
    )


def _long(results: pl.DataFrame, systems: tuple[System, ...]) -> pl.DataFrame:
    """All columns of the results in table order, with titles and kinds."""
    order = {system.name: place for place, system in enumerate(systems)}
    return (
        results.with_columns(
            pl.col("system").replace_strict({s.name: s.title for s in systems}, default=None).alias("title"),
            pl.col("system").replace_strict({s.name: s.kind for s in systems}, default=None).alias("kind"),
            pl.col("system").replace_strict(order, default=None).alias("place"),
        )
        .filter(pl.col("place").is_not_null())
        .sort("place", maintain_order=True)
        .drop("place")
    )


def _seed_means(metrics: pl.DataFrame) -> dict[tuple[str, str], float]:
    means = metrics.group_by("system", "metric").agg(pl.col("value").mean()).drop_nulls("value")
    return {(system, metric): value for system, metric, value in means.iter_rows()}


def _by_system_and_metric(results: pl.DataFrame) -> dict[tuple[str, str], Row]:
    return {(row["system"], row["metric"]): row for row in results.iter_rows(named=True)}


def _group(systems: tuple[System, ...], place: int) -> str:
    if place == len(systems) - 1:
        return "reference"
    return "no network" if systems[place].kind == "no network" else "network"
