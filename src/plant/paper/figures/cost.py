"""Cost at a glance: time of every stage, memory, what planting adds to Stage 2, and energy, a row a corpus."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from plant.paper.figures.style import PAGE, new_figure, sentence
from plant.paper.wording import seconds

_STAGES = {"MIG": ("o", "#009E73"), "Stage 1": ("^", "#0072B2"), "Stage 2": ("s", "#D55E00"),
           "prediction": ("D", "#666666")}  # fmt: skip
"""Stage -> marker and colour (Okabe and Ito)."""
_OFFSETS = dict(zip(_STAGES, (-0.24, -0.08, 0.08, 0.24), strict=True))
"""Stages stand a little above one another in their row: two of one length would hide one another."""
_TICKS = (
    (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000),
    (0.1, 1, 10, 60, 600, 3600, 36_000, 360_000),
    (0.01, 1, 60, 3600, 360_000),
)
"""Seconds at which an axis may have ticks: the first list that leaves room for their labels is taken."""
_HEADER, _LINE, _AXIS, _NOTE = 0.42, 0.36, 0.5, 0.2
"""Inches: titles and legend, a row, tick labels, the note on synthetic text."""


@dataclass(frozen=True)
class _Pair:
    """One row of every panel."""

    dataset: str
    backbone: str
    stand_in: bool
    runs: pl.DataFrame

    @property
    def title(self) -> str:
        return f"{self.dataset}{'†' if self.stand_in else ''}\n{self.backbone}"


def cost_figure(runs: pl.DataFrame, *, shares: Mapping[tuple[str, str], float]) -> Figure:
    """Time a run by stage; largest memory of Stage 1 and 2; planting as a share of Stage 2; energy where it is told.

    Args:
        runs: as `Costs.frame`: a row a run.
        shares: (dataset, backbone) -> time of MIG and Stage 1 against that of Stage 2.
    """
    shown = runs.filter(pl.col("stage").is_in(list(_STAGES)))
    trained = shown.filter(pl.col("stage").is_in(["Stage 1", "Stage 2"]))
    pairs = [
        _Pair(str(dataset), str(backbone), bool(own.get_column("stand_in").any()), own)
        for (dataset, backbone), own in shown.group_by("dataset", "backbone", maintain_order=True)
        if trained.filter(dataset=dataset, backbone=backbone).height
    ]
    if not pairs:
        return sentence("No training run has left a record of its cost yet.")
    told = any(_joules(pair.runs, stage) is not None for pair in pairs for stage in _STAGES)
    widths = [1.6, 1.0, 0.8, *([1.0] if told else [])]
    note = any(pair.stand_in for pair in pairs)
    figure = new_figure(PAGE, _HEADER + _AXIS + _LINE * len(pairs) + (_NOTE if note else 0))
    grid = figure.subplots(1, len(widths), squeeze=False, sharey=True, width_ratios=widths)[0]
    _times(grid[0], pairs)
    _memory(grid[1], pairs)
    _planting(grid[2], pairs, shares)
    if told:
        _energy(grid[3], pairs)
    grid[0].set_yticks(range(len(pairs)), [pair.title for pair in pairs])
    grid[0].set_ylim(len(pairs) - 0.5, -0.5)
    for axes in grid:
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=True)
    _legend(figure)
    if note:
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


def _times(axes: Axes, pairs: Sequence[_Pair]) -> None:
    axes.set_xscale("log")
    for row, pair in enumerate(pairs):
        for stage, (marker, colour) in _STAGES.items():
            times = pair.runs.filter(stage=stage).get_column("wall_seconds").drop_nulls()
            if len(times):
                y = row + _OFFSETS[stage]
                axes.plot(times, [y] * len(times), marker, color=colour, markersize=2.5, alpha=0.35)
                axes.plot(float(times.mean()), y, marker, color=colour, markeredgecolor="white",  # type: ignore[arg-type]
                          markeredgewidth=0.5, markersize=5.5)  # fmt: skip
    low, high = axes.get_xlim()
    inside = [[tick for tick in ticks if low <= tick <= high] for ticks in _TICKS]
    apart = 0.14 * math.log(high / low)  # a label's width
    axes.set_xticks(next((t for t in inside if all(math.log(b / a) > apart for a, b in pairwise(t))), inside[-1]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(seconds(value))))
    axes.set_title("time of a run (small: each run)")


def _memory(axes: Axes, pairs: Sequence[_Pair]) -> None:
    axes.set_xscale("log")
    for row, pair in enumerate(pairs):
        trained = pair.runs.filter(pl.col("stage").is_in(["Stage 1", "Stage 2"]))
        for column, face in (("peak_host_mb", "white"), ("peak_device_mb", "#333333")):
            largest = trained.get_column(column).max()
            if isinstance(largest, int | float):
                axes.plot(largest / 1000, row, "o", color="#333333", markerfacecolor=face, markersize=5)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.25, high * 1.25)
    axes.set_title("peak memory, GB")


def _planting(axes: Axes, pairs: Sequence[_Pair], shares: Mapping[tuple[str, str], float]) -> None:
    for row, pair in enumerate(pairs):
        share = shares.get((pair.dataset, pair.backbone))
        if share is None:
            axes.text(0, row, " not known", va="center", fontsize=6.5, color="#666666")
            continue
        axes.barh(row, 100 * share, height=0.5, color="#7FB1D8")
        axes.text(100 * share, row, f" {100 * share:.0f}%", va="center", fontsize=6.5)
    axes.set_xlim(0, 1.35 * max([100 * share for share in shares.values()], default=100.0))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.set_title("MIG + Stage 1,\n% of Stage 2")


def _energy(axes: Axes, pairs: Sequence[_Pair]) -> None:
    axes.set_xscale("log")
    for row, pair in enumerate(pairs):
        for stage, (marker, colour) in _STAGES.items():
            joules = _joules(pair.runs, stage)
            if joules:
                axes.plot(joules / 3600, row + _OFFSETS[stage], marker, color=colour, markeredgecolor="white",
                          markeredgewidth=0.5, markersize=5.5)  # fmt: skip
    axes.xaxis.set_major_locator(LogLocator(numticks=4))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
    )
    axes.set_title("energy of a run, Wh")


def _joules(runs: pl.DataFrame, stage: str) -> float | None:
    """Mean of what devices and host drew together, as far as runs tell."""
    columns = ("energy_device_joules", "energy_host_joules")
    told = runs.filter(stage=stage).filter(pl.any_horizontal(pl.col(*columns).is_not_null()))
    value = told.select(pl.sum_horizontal(*columns, ignore_nulls=True)).to_series().mean()
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _short(text: str) -> str:
    """`10.0 s` -> `10 s`.

    >>> _short("10.0 s"), _short("2.5 h")
    ('10 s', '2.5 h')
    """
    return text.replace(".0 ", " ")
