"""Figure 2: F1 of single rare labels as violins (2b), and by label frequency (our systems' counterpart of 2a)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from plant.paper.figures.style import EndLabel, label_ends
from plant.paper.grid.points import SYSTEMS, Points
from plant.paper.systems import KIND_COLOURS
from plant.paper.values.transcription import Values

COLOURS = {"single_stage": KIND_COLOURS["unplanted"], "plant": KIND_COLOURS["planted"]}
DASHES = {"single_stage": "dashed", "plant": "solid"}
QUOTED = "#444444"
HIGH_F1 = 70
"""RQ4 gives the share of labels above F1 = .7."""
_MEAN, _SHARE = 123, 170
"""Where the two columns of numbers stand, in units of the x axis."""


def draw_frequency(axes: Axes, points: Points, starts: Sequence[int], *, title: str) -> None:
    """Mean F1 of the labels of each frequency group.

    Args:
        axes: to draw on.
        points: as `label_points` returns them.
        starts: lower ends of the groups, by training documents.
        title: of the panel.
    """
    axes.set_title(title)
    groups = frequency_groups(points.data, starts)
    if groups.is_empty():
        empty(axes)
        return
    present = sorted(groups.get_column("group").unique().to_list())
    ends = []
    for system in SYSTEMS:
        own = groups.filter(system=system).sort("group")
        x = [present.index(group) for group in own.get_column("group")]
        y = own.get_column("f1").to_list()
        axes.plot(x, y, "o", linestyle=DASHES[system], color=COLOURS[system], markeredgecolor="white")
        if x:
            ends.append(EndLabel(x[-1], y[-1], points.titles.get(system, system), COLOURS[system]))
    sizes = dict(groups.group_by("group").agg(pl.col("labels").max()).iter_rows())
    axes.set_xticks(range(len(present)), [f"≥ {group}\n{sizes[group]}" for group in present])
    axes.set_xlim(-0.2, len(present) - 0.8)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("training documents of a label (up to the next group)\nand number of labels")
    axes.set_ylabel("mean F1 of the labels (test, ×100)")
    label_ends(axes, ends, height=2.0)


def frequency_groups(labels: pl.DataFrame, starts: Sequence[int]) -> pl.DataFrame:
    """Mean F1 by system and group: system, group (lower end), f1, labels. Labels without training documents are out."""
    grouped = labels.filter(pl.col("n_train") >= min(starts)).with_columns(
        pl.max_horizontal(
            pl.when(pl.col("n_train") >= start).then(pl.lit(start, pl.Int64)).otherwise(None) for start in starts
        ).alias("group")
    )
    return grouped.group_by("system", "group").agg(pl.col("f1").mean(), pl.len().alias("labels"))


def draw_violins(axes: Axes, points: Points, values: Values, *, title: str) -> None:
    """Violins of per-label F1 with quartiles and our mean, the paper's mean and share as hollow marks and in brackets.

    Args:
        axes: to draw on.
        points: as `label_points` returns them.
        values: the paper's numbers; item F2 holds those of figure 2b.
        title: of the panel.
    """
    axes.set_title(title)
    rows = list(dict.fromkeys(cell.row for cell in values.within("F2/mimic3_few").values()))
    for place, row in enumerate(rows):
        cells = values.within(f"F2/mimic3_few/{row}")
        system = cells["mean_f1_text"].system
        own = points.data.filter(system=system).get_column("f1").drop_nulls().to_numpy()
        _violin(axes, place, own, COLOURS.get(system, QUOTED))
        _papers(axes, place, own, cells["mean_f1_text"].value, cells["share_above_0.7"].value)
    names = [f"{row}\n(quoted)" if "PLANT" not in row and "Mistral" not in row else _two_lines(row) for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -1.1)
    axes.set_xlim(-3, 196)
    axes.set_xticks(range(0, 101, 25))
    axes.spines["bottom"].set_bounds(0, 100)
    axes.axvline(HIGH_F1, color="#999999", linewidth=0.6, linestyle=(0, (4, 3)))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    labels = points.data.get_column("label").n_unique()
    axes.set_xlabel(f"F1 of {labels} labels\n(test, ×100, mean over seeds)", x=0.27)
    for text, column in (("mean", _MEAN), (f"share > {HIGH_F1}", _SHARE)):
        axes.text(column, -0.8, text, ha="center", va="center", fontsize=6.5, color="#333333")


def empty(axes: Axes) -> None:
    """A panel without numbers of ours."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, "not run yet", ha="center", va="center", transform=axes.transAxes, color="#333333")


def _two_lines(row: str) -> str:
    return row.replace(" + ", "\n+ ")


def _violin(axes: Axes, row: int, own: np.ndarray, colour: str) -> None:
    if not len(own):
        return
    if np.ptp(own) > 0 and len(own) > 4:  # a density of fewer or equal values would be an invention
        violin = axes.violinplot([own], [row], orientation="horizontal", widths=0.8, showextrema=False)
        for body in violin["bodies"]:  # type: ignore[attr-defined]
            body.set(facecolor=colour, edgecolor=colour, alpha=0.35, linewidth=0.6)
    else:
        axes.plot(own, np.full(len(own), row), "|", color=colour, markersize=8, alpha=0.6)
    axes.boxplot(
        [own], positions=[row], orientation="horizontal", widths=0.14, showfliers=False, manage_ticks=False,
        boxprops={"linewidth": 0.7}, whiskerprops={"linewidth": 0.7}, capprops={"linewidth": 0},
        medianprops={"color": "black", "linewidth": 1.2},
    )  # fmt: skip
    axes.plot(own.mean(), row, "o", color=colour, markeredgecolor="white", markersize=5, markeredgewidth=0.8)


def _papers(axes: Axes, row: int, own: np.ndarray, mean: Decimal, share: Decimal) -> None:
    axes.plot(
        100 * float(mean), row - 0.36 * bool(len(own)), "D", color="none", markeredgecolor="black", markersize=4.5
    )
    ours = f"{own.mean():.1f} " if len(own) else ""
    above = f"{100 * float((own > HIGH_F1).mean()):.1f}% " if len(own) else ""
    axes.text(_MEAN, row, f"{ours}[{100 * mean:.1f}]", ha="center", va="center", fontsize=6.5)
    axes.text(_SHARE, row, f"{above}[{share:.1f}%]", ha="center", va="center", fontsize=6.5)
