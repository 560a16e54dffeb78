"""Figure of a study, one panel per metric: a forest plot with one row per setting, or lines over a factor."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.ground.settings import Statistics, Study
from plant.paper.figures.forest import forest, forest_row, rows_figure
from plant.paper.figures.style import PAGE, new_figure
from plant.paper.wording import metric_title

HIGHER, LOWER, OPEN = "#0072B2", "#D55E00", "#777777"
"""Colours of a significantly higher or lower value, and of the rest."""
FAR = 60
"""A difference of more than this many times the median one is written at the edge instead of drawn."""
_PANELS = 4
_MARKERS = "osD^"


def effect_figure(effects: pl.DataFrame, statistics: Statistics, *, metrics: Sequence[str], question: str) -> Figure:
    """Rows in the order of the cells, with a gap and a heading between groups.

    A mark is coloured and filled if the difference is significant after Holm's correction. A row without a value (no
    label of the group in test) stays empty.

    Args:
        metrics: one panel each; at most four are drawn.
    """
    rows = effects.filter(metric=metrics[0]).select("cell", "group", "row").sort("cell")
    panels = {
        textwrap.fill(metric_title(metric), 12): partial(
            _panel, effects=effects.filter(metric=metric), cells=rows["cell"].to_list(), alpha=statistics.alpha
        )
        for metric in metrics[:_PANELS]
    }
    note = difference_note(statistics)
    names = list(rows.select("group", "row").iter_rows())
    return rows_figure(names, panels, title=question, note=note, gap=0.4, row_height=0.16)


def difference_note(statistics: Statistics) -> str:
    """What the marks of a figure of differences are."""
    return (
        f"difference in points (×100), {100 * statistics.confidence:g}% interval over training seeds and test "
        f"documents;\nfilled and coloured: p < {statistics.alpha:g} after Holm's correction within a study"
    )


def colour_of(difference: float, p: float | None, alpha: float) -> str:
    """HIGHER or LOWER where a difference is significant after correction, else OPEN."""
    if p is None or p >= alpha:
        return OPEN
    return HIGHER if difference > 0 else LOWER


def _panel(axes: Axes, places: Sequence[float], *, effects: pl.DataFrame, cells: Sequence[int], alpha: float) -> None:
    place_of = dict(zip(cells, places, strict=True))
    forest(axes, margin=0.06)
    usual = effects["difference"].abs().median()
    limit = FAR * 100 * usual if isinstance(usual, float) and usual > 0 else float("inf")  # else one would squeeze all
    for row in effects.drop_nulls("difference").iter_rows(named=True):
        y, value = place_of[row["cell"]], 100 * row["difference"]
        colour = colour_of(value, row["p_holm"], alpha)
        if abs(value) > limit:
            right = value > 0
            text = f"{value:+,.0f} \N{RIGHTWARDS ARROW}" if right else f"\N{LEFTWARDS ARROW} {value:+,.0f}"
            axes.annotate(text, xy=(float(right), y), xycoords=("axes fraction", "data"),
                          ha="right" if right else "left", va="center", color=colour, fontsize=6)  # fmt: skip
            continue
        bounds = None if row["low"] is None else (100 * row["low"], 100 * row["high"])
        forest_row(axes, y, bounds, value, colour, sure=colour != OPEN)


def axis_figure(effects: pl.DataFrame, statistics: Statistics, study: Study) -> Figure:
    """Differences against the levels of `study.axis`: one line for each group, a grey band for the control."""
    levels = [float(cell.levels[str(study.axis)]) for cell in study.cells]
    table = effects.join(pl.DataFrame({"cell": range(len(levels)), "level": levels}), on="cell").sort("level")
    figure = new_figure(PAGE, 2.6)
    panels = figure.subplots(1, min(len(study.metrics), _PANELS), squeeze=False)[0]
    groups = list(dict.fromkeys(cell.group for cell in study.cells))
    for axes, metric in zip(panels, study.metrics, strict=False):
        axes.axhline(0, color="black", linewidth=0.8)
        for place, group in enumerate(groups):
            own = table.filter(metric=metric, group=group).drop_nulls("difference")
            x, y, low, high = (own[name].to_numpy() for name in ("level", "difference", "low", "high"))
            if group == study.control:
                axes.fill_between(x, 100 * low, 100 * high, color="#BBBBBB", alpha=0.6, linewidth=0, label=group)
                continue
            axes.errorbar(
                x, 100 * y, 100 * np.stack([y - low, high - y]), color=f"C{place}", marker=_MARKERS[place % 4],
                markersize=4, capsize=2, linewidth=1.2, label=group,
            )  # fmt: skip
        if min(levels) > 0:
            axes.set_xscale("log")
        ticks = sorted(set(levels))
        axes.set_xticks(ticks, [f"{tick:,.0f}" if tick == round(tick) else f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel(str(study.axis))
        axes.set_title(textwrap.fill(metric_title(metric), 18), fontsize=7)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=6.5)
    figure.suptitle(textwrap.fill(study.question, 100), fontsize=8.5, fontweight="bold")
    figure.supylabel(f"difference in points, {100 * statistics.confidence:g}% interval", fontsize=7)
    return figure
