"""Cost at a glance, one row for each corpus: time of every stage, memory, what planting adds to Stage 2, energy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator

from plant.paper.costs import largest, mean_joules
from plant.paper.figures.style import PAGE, new_figure, sentence
from plant.paper.inputs import STAGE1, STAGE2, TRAINING
from plant.paper.wording import seconds

_STAGES = {"MIG": ("o", "#009E73"), STAGE1: ("^", "#0072B2"), STAGE2: ("s", "#D55E00"),
           "prediction": ("D", "#666666")}  # fmt: skip
"""Stage -> marker and colour (Okabe and Ito)."""
_OFFSETS = dict(zip(_STAGES, (-0.24, -0.08, 0.08, 0.24), strict=True))
"""Stages of one row are drawn a little above one another, so that equal times do not hide one another."""
_MEAN: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5, "markersize": 5.5}
_TICKS = (
    (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000),
    (0.1, 1, 10, 60, 600, 3600, 36_000, 360_000),
    (0.01, 1, 60, 3600, 360_000),
)
"""Seconds where an axis may have ticks: the first list whose labels have room is taken."""
_HEADER, _LINE, _AXIS, _NOTE = 0.42, 0.36, 0.5, 0.2
"""Inches: titles and legend, a row, tick labels, the note on synthetic text."""


def cost_figure(runs: pl.DataFrame, *, shares: Mapping[tuple[str, str], float]) -> Figure:
    """Time of a run by stage, largest memory of training, planting as a share of Stage 2, energy if it was measured.

    Args:
        runs: one row for each run (`Costs.frame`).
        shares: (dataset, backbone) -> time of MIG and Stage 1 against that of Stage 2.
    """
    shown = runs.filter(pl.col("stage").is_in(list(_STAGES)))
    corpora = {
        (str(dataset), str(backbone)): own
        for (dataset, backbone), own in shown.group_by("dataset", "backbone", maintain_order=True)
        if own.get_column("stage").is_in(list(TRAINING)).any()
    }
    if not corpora:
        return sentence("No training run has left a record of its cost yet.")
    rows = list(corpora.values())
    joules = [{stage: mean_joules(own.filter(stage=stage)) for stage in _STAGES} for own in rows]
    measured = any(value for row in joules for value in row.values())
    marks = ["†" if own.get_column("stand_in").any() else "" for own in rows]
    widths = [1.6, 1.0, 0.8, *([1.0] if measured else [])]
    figure = new_figure(PAGE, _HEADER + _AXIS + _LINE * len(rows) + (_NOTE if any(marks) else 0))
    panels = figure.subplots(1, len(widths), squeeze=False, sharey=True, width_ratios=widths)[0]
    _times(panels[0], rows)
    _memory(panels[1], rows)
    _planting(panels[2], [shares.get(corpus) for corpus in corpora], widest=max(shares.values(), default=1.0))
    if measured:
        _energy(panels[3], joules)
    names = [f"{dataset}{mark}\n{backbone}" for (dataset, backbone), mark in zip(corpora, marks, strict=True)]
    panels[0].set_yticks(range(len(rows)), names)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)
    for axes in panels:
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=True)
    _legend(figure)
    if any(marks):
        figure.supxlabel("† synthetic text in the corpus' raw form", fontsize=6.5, x=0.01, ha="left")
    return figure


def _legend(figure: Figure) -> None:
    """One legend for all panels, above them."""
    handles = [
        figure.axes[0].plot([], [], marker, color=colour, label=stage)[0] for stage, (marker, colour) in _STAGES.items()
    ]
    handles += [
        figure.axes[1].plot([], [], "o", color="#333333", markerfacecolor=face, label=name)[0]
        for name, face in (("host memory", "white"), ("device memory", "#333333"))
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=6.5,
                  handletextpad=0.1, columnspacing=1.2)  # fmt: skip


def _times(axes: Axes, rows: Sequence[pl.DataFrame]) -> None:
    axes.set_xscale("log")
    for row, runs in enumerate(rows):
        for stage, (marker, colour) in _STAGES.items():
            times = runs.filter(stage=stage)["wall_seconds"].drop_nulls()
            y = row + _OFFSETS[stage]
            if len(times):
                axes.plot(times, [y] * len(times), marker, color=colour, markersize=2.5, alpha=0.35)
                axes.plot(float(times.to_numpy().mean()), y, marker, color=colour, **_MEAN)
    low, high = axes.get_xlim()
    inside = [[tick for tick in ticks if low <= tick <= high] for ticks in _TICKS]
    apart = 0.14 * math.log(high / low)  # a label's width
    ticks = next((t for t in inside if all(math.log(b / a) > apart for a, b in pairwise(t))), inside[-1])
    _label(axes, "time of a run (small: each run)", FixedLocator(ticks), lambda x: seconds(x).replace(".0 ", " "))


def _memory(axes: Axes, rows: Sequence[pl.DataFrame]) -> None:
    axes.set_xscale("log")
    for row, runs in enumerate(rows):
        trained = runs.filter(pl.col("stage").is_in(list(TRAINING)))
        for column, face in (("peak_host_mb", "white"), ("peak_device_mb", "#333333")):
            megabytes = largest(trained, column)
            if megabytes is not None:
                axes.plot(megabytes / 1000, row, "o", color="#333333", markerfacecolor=face, markersize=5)
    _label(axes, "peak memory, GB", LogLocator(subs=(1, 2, 5), numticks=6), lambda x: f"{x:g}")
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.25, high * 1.25)


def _planting(axes: Axes, shares: Sequence[float | None], *, widest: float) -> None:
    for row, share in enumerate(shares):
        if share is None:
            axes.text(0, row, " not known", va="center", fontsize=6.5, color="#666666")
            continue
        axes.barh(row, 100 * share, height=0.5, color="#7FB1D8")
        axes.text(100 * share, row, f" {100 * share:.0f}%", va="center", fontsize=6.5)
    axes.set_xlim(0, 1.35 * 100 * widest)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.set_title("MIG + Stage 1,\n% of Stage 2")


def _energy(axes: Axes, joules: Sequence[Mapping[str, float | None]]) -> None:
    axes.set_xscale("log")
    for row, by_stage in enumerate(joules):
        for stage, (marker, colour) in _STAGES.items():
            if drawn := by_stage[stage]:
                axes.plot(drawn / 3600, row + _OFFSETS[stage], marker, color=colour, **_MEAN)
    _label(axes, "energy of a run, Wh", LogLocator(numticks=4), lambda x: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}")


def _label(axes: Axes, title: str, ticks: Locator, text: Callable[[float], str]) -> None:
    """Title and ticks of a logarithmic panel."""
    axes.set_title(title)
    axes.xaxis.set_major_locator(ticks)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
