"""Forest plot: the difference of every system to the reference, with our interval."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.paper.figures.style import PAGE, forest, forest_row, new_figure, sentence
from plant.paper.systems import KIND_COLOURS, System
from plant.paper.wording import metric_title

_COLUMNS = 4


def interval_figure(
    results: pl.DataFrame, *, systems: Sequence[System], metrics: Sequence[str], confidence: float
) -> Figure:
    """One panel a metric, one row a system; a filled mark where the difference is significant by ours.

    Args:
        results: as `read_results` returns it.
        systems: the reference last; it is the line at 0.
        metrics: panels, those without results are left out.
        confidence: level of the intervals, for the axis label.
    """
    measured = set(results.get_column("metric"))
    shown = [metric for metric in metrics if metric in measured]
    others = systems[:-1]
    if not shown or not others:
        return sentence("There is nothing to compare with the reference.")
    lines = -(-len(shown) // _COLUMNS)
    figure = new_figure(PAGE, 0.5 + lines * (0.5 + 0.19 * len(others)))
    grid = figure.subplots(lines, min(_COLUMNS, len(shown)), squeeze=False, sharey=True)
    for place, axes in enumerate(grid.flat):
        if place < len(shown):
            _panel(axes, results.filter(metric=shown[place]), shown[place], others)
        else:
            axes.set_axis_off()
    level = f"{100 * confidence:g}%"
    figure.supxlabel(
        f"difference to {systems[-1].title} in points (×100), our {level} interval; filled: significant by ours",
        fontsize=7.5,
    )
    return figure


def _panel(axes: Axes, results: pl.DataFrame, metric: str, systems: Sequence[System]) -> None:
    rows = {row["system"]: row for row in results.iter_rows(named=True)}
    forest(axes, margin=0.08)
    for place, system in enumerate(systems):
        row = rows.get(system.name)
        if row is None or row["diff_low"] is None or row["diff_high"] is None:
            continue
        low, high, value = (100 * row[name] for name in ("diff_low", "diff_high", "difference"))
        forest_row(axes, place, (low, high), value, KIND_COLOURS[system.kind], sure=bool(row["our_arrow"]))
    axes.set_title(metric_title(metric))
    axes.set_yticks(range(len(systems)), [system.title for system in systems])
    axes.set_ylim(len(systems) - 0.5, -0.5)
