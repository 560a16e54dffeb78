"""Per-label F1: the rare labels (form of Fig. 2b) and the groups of label frequency."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.ground.settings import Evaluation
from plant.paper.figures.style import (
    COLUMN,
    EndLabel,
    Mark,
    label_ends,
    marks,
    new_figure,
    rest_note,
    sentence,
    width_for,
)
from plant.paper.systems import System

HIGH_F1 = 70
"""The paper annotates the share of rare codes above F1 = .7 (RQ4)."""

_MEAN, _SHARE = 114, 138
"""Where the two columns of numbers stand, in units of the x axis."""


def rare_label_figure(labels: pl.DataFrame, *, systems: Sequence[System], evaluation: Evaluation) -> Figure:
    """Violins of per-label F1 over the rare labels, with a box, the mean, and the share above .7.

    Args:
        labels: as `read_labels` returns it: F1 of each label, averaged over seeds.
        evaluation: `rare_below` says which labels are rare.
    """
    rare = labels.filter(pl.col("n_train").is_between(1, evaluation.rare_below - 1))
    count = rare.get_column("label").n_unique()
    if not count:
        return sentence(f"No label in the test split has 1 to {evaluation.rare_below - 1} training documents.")
    figure = new_figure(width_for(systems, COLUMN), 0.75 + 0.36 * len(systems))
    axes = figure.add_subplot()
    look = marks(systems)
    for row, system in enumerate(systems):
        values = 100 * rare.filter(system=system.name).get_column("f1").to_numpy()
        _violin(axes, row, look[system.name], values[np.isfinite(values)])
    axes.set_yticks(range(len(systems)), [system.title for system in systems])
    axes.set_ylim(len(systems) - 0.4, -1.05)
    axes.set_xlim(-2, 150)
    axes.set_xticks(range(0, 101, 25))
    axes.spines["bottom"].set_bounds(0, 100)
    axes.axvline(HIGH_F1, color="#999999", linewidth=0.6, linestyle=(0, (4, 3)))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(
        f"F1 (test, ×100, mean over seeds) of {count} labels\nwith 1 to {evaluation.rare_below - 1} training documents",
        x=100 / 152,
        ha="right",
    )
    for text, column in (("mean", _MEAN), (f"> {HIGH_F1}", _SHARE)):
        axes.text(column, -0.75, text, ha="center", va="center", fontsize=6.5, color="#333333")
    return figure


def _violin(axes: Axes, row: int, mark: Mark, values: np.ndarray) -> None:
    if not len(values):
        return
    colour = mark.ink
    if np.ptp(values) > 0 and len(values) > 4:  # a density of fewer or equal values would be an invention
        violin = axes.violinplot([values], [row], orientation="horizontal", widths=0.8, showextrema=False)
        for body in violin["bodies"]:  # type: ignore[attr-defined]
            body.set(facecolor=colour, edgecolor=colour, alpha=0.35, linewidth=0.6)
    else:
        axes.plot(values, np.full(len(values), row), "|", color=colour, markersize=8, alpha=0.6)
    axes.boxplot(
        [values], positions=[row], orientation="horizontal", widths=0.16, showfliers=False, manage_ticks=False,
        boxprops={"linewidth": 0.7}, whiskerprops={"linewidth": 0.7}, capprops={"linewidth": 0},
        medianprops={"color": "black", "linewidth": 1.2},
    )  # fmt: skip
    mean = float(values.mean())
    axes.plot(mean, row, marker="D", color="white", markeredgecolor="black", markersize=4, markeredgewidth=0.8)
    axes.text(_MEAN, row, f"{mean:.1f}", ha="center", va="center", fontsize=7)
    axes.text(_SHARE, row, f"{100 * float((values > HIGH_F1).mean()):.0f}%", ha="center", va="center", fontsize=7)


def frequency_figure(
    labels: pl.DataFrame, *, systems: Sequence[System], evaluation: Evaluation, leading: Collection[str] | None = None
) -> Figure:
    """Mean F1 of the labels of each frequency group, one line a system.

    Args:
        labels: as `read_labels` returns it.
        evaluation: `frequency_groups` are the lower ends of the groups, by training documents.
        leading: systems that are drawn in colour where there are many.
    """
    starts = evaluation.frequency_groups
    grouped = labels.filter(pl.col("n_train") >= min(starts)).with_columns(
        pl.col("n_train").map_elements(lambda n: max(start for start in starts if start <= n), return_dtype=pl.Int64)
        .alias("group")
    )  # fmt: skip
    present = sorted(grouped.get_column("group").unique().to_list())
    if not present:
        return sentence("No label of the test split has training documents.")
    figure = new_figure(width_for(systems, COLUMN + 0.6), 2.6)
    axes = figure.add_subplot()
    look, ends = marks(systems, leading), []
    for system in systems:
        means = grouped.filter(system=system.name).group_by("group").agg(pl.col("f1").mean()).sort("group")
        x = [present.index(group) for group in means.get_column("group")]
        y = (100 * means.get_column("f1")).to_list()
        mark = look[system.name]
        axes.plot(x, y, marker=mark.marker, color=mark.colour, linestyle=mark.dash, markeredgecolor="white",
                  markeredgewidth=0.5, zorder=2 + mark.named)  # fmt: skip
        if x and mark.named:
            ends.append(EndLabel(x[-1], y[-1], system.title, mark.ink))
    sizes = grouped.group_by("group").agg(pl.col("label").n_unique()).sort("group").get_column("label")
    ticks = [f"{_group_title(group, starts)}\n{size} labels" for group, size in zip(present, sizes, strict=True)]
    axes.set_xticks(range(len(present)), ticks)
    axes.set_xlim(-0.15, len(present) - 0.85)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    axes.grid(axis="x", visible=False)
    axes.set_xlabel(f"training documents of a label{rest_note(look)}")
    axes.set_ylabel("mean F1 of the labels (test, ×100)")
    label_ends(axes, ends, height=1.9)
    return figure


def _group_title(start: int, starts: Sequence[int]) -> str:
    """`11-50`, or `> 500` for the last group."""
    larger = [other for other in starts if other > start]
    return f"{start}\N{EN DASH}{min(larger) - 1}" if larger else f"> {start - 1}"
