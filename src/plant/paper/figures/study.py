"""Forest plot of a study: one row a setting, one panel a metric."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.paper.figures.style import PAGE, forest, forest_row, new_figure
from plant.paper.wording import metric_title

UP, DOWN, OPEN = "#0072B2", "#D55E00", "#777777"
"""Higher, lower, not told apart."""
FAR = 60
"""A difference of more than so many times the median one is written, not drawn."""
_ROW = 0.16
"""Inches a row."""


def effect_figure(
    effects: pl.DataFrame, *, metrics: Sequence[str], question: str, alpha: float, confidence: float
) -> Figure:
    """Rows in the order of the cells, a gap and a heading between groups; colour and fill say what Holm leaves.

    Args:
        effects: of `study.Results`.
        metrics: panels, at most four are drawn. A row that has no value (no label of the group in test) stays empty.
        question: the title.
        alpha: level of the corrected tests.
        confidence: of the intervals, for the caption.
    """
    rows = effects.filter(metric=metrics[0]).select("cell", "group", "row").sort("cell")
    places, headings, here, group = {}, [], 0.0, None
    for cell, name, _ in rows.iter_rows():
        if name != group:
            here += 0.4 if group is not None else 0.0
            if name:
                headings.append((here, name))
                here += 1.0
        group, places[cell] = name, here
        here += 1.0
    figure = new_figure(PAGE, 1.1 + _ROW * here)
    panels = figure.subplots(1, min(len(metrics), 4), squeeze=False, sharey=True)[0]
    for axes, metric in zip(panels, metrics, strict=False):
        _panel(axes, effects.filter(metric=metric), places, alpha)
        axes.set_title("\n".join(textwrap.wrap(metric_title(metric), 12)), fontsize=7)
        axes.set_ylim(here - 0.4, -0.8)
    panels[0].set_yticks(list(places.values()), rows["row"].to_list())
    for y, name in headings:
        panels[0].annotate(
            name, xy=(0, y), xycoords=("axes fraction", "data"), xytext=(-6, 0), textcoords="offset points",
            ha="right", va="center", fontweight="bold", fontsize=7,
        )  # fmt: skip
    figure.suptitle("\n".join(textwrap.wrap(question, 100)), fontsize=8.5, fontweight="bold")
    figure.supxlabel(
        f"difference in points (×100), {100 * confidence:g}% interval over training seeds and test documents;\n"
        f"filled and coloured: p < {alpha:g} after Holm's correction over the rows", fontsize=7,
    )  # fmt: skip
    return figure


def _panel(axes: Axes, effects: pl.DataFrame, places: dict[int, float], alpha: float) -> None:
    forest(axes, margin=0.06)
    limit = _limit(effects)
    for row in effects.drop_nulls("difference").iter_rows(named=True):
        y, value = places[row["cell"]], 100 * row["difference"]
        sure = row["p_holm"] is not None and row["p_holm"] < alpha
        colour = OPEN if not sure else UP if value > 0 else DOWN
        if abs(value) > limit:
            _beyond(axes, y, value, colour)
            continue
        bounds = None if row["low"] is None else (100 * row["low"], 100 * row["high"])
        forest_row(axes, y, bounds, value, colour, sure=sure)


def _limit(effects: pl.DataFrame) -> float:
    """Points beyond which a difference is written at the edge: one that is far larger would squeeze all others."""
    sizes = 100 * effects["difference"].drop_nulls().abs().to_numpy()
    usual = float(np.median(sizes)) if sizes.size else 0.0
    return FAR * usual if usual > 0 else float("inf")


def _beyond(axes: Axes, y: float, value: float, colour: str) -> None:
    right = value > 0
    axes.annotate(
        f"{value:+,.0f} \N{RIGHTWARDS ARROW}" if right else f"\N{LEFTWARDS ARROW} {value:+,.0f}",
        xy=(float(right), y), xycoords=("axes fraction", "data"), ha="right" if right else "left", va="center",
        color=colour, fontsize=6,
    )  # fmt: skip
