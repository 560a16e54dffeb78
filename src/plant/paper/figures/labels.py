"""F1 of single labels: violins of the rare ones (form of Fig. 2b), and means by label frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.paper.contents import ReportFigure
from plant.paper.experiment.data import ExperimentData
from plant.paper.experiment.headline import leading
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

HIGH_F1 = 70
"""The paper annotates the share of rare codes above F1 = .7 (RQ4)."""

_MEAN, _SHARE = 114, 138
"""Places of the two columns of numbers, in units of the x axis."""


def rare_label_figure(data: ExperimentData) -> Figure:
    """Violins of per-label F1 over the rare labels, with a box, the mean, and the share above .7."""
    most, systems = data.settings.evaluation.rare_below - 1, data.systems
    rare = data.labels.filter(pl.col("n_train").is_between(1, most))
    count = rare["label"].n_unique()
    if not count:
        return sentence(f"No label in the test split has 1 to {most} training documents.")
    figure = new_figure(width_for(systems, COLUMN), 0.75 + 0.36 * len(systems))
    axes = figure.add_subplot()
    look = marks(systems)
    for row, system in enumerate(systems):
        values = 100 * rare.filter(system=system.name)["f1"].to_numpy()
        values = values[np.isfinite(values)]
        if len(values):
            mean = float(values.mean())
            draw_violin(axes, row, values, look[system.name].ink)
            axes.plot(mean, row, marker="D", color="white", markeredgecolor="black", markersize=4, markeredgewidth=0.8)
            axes.text(_MEAN, row, f"{mean:.1f}", ha="center", va="center", fontsize=7)
            axes.text(_SHARE, row, f"{share_above(values):.0f}%", ha="center", va="center", fontsize=7)
    columns = {"mean": _MEAN, f"> {HIGH_F1}": _SHARE}
    finish_violins(axes, [system.title for system in systems], right=150, columns=columns)
    axes.set_xlabel(
        f"F1 (test, ×100, mean over seeds) of {count} labels\nwith 1 to {most} training documents",
        x=100 / 153,
        ha="right",
    )
    return figure


RARE_LABEL_F1 = ReportFigure(
    name="rare_label_f1",
    function="rare_label_figure",
    section="rare",
    place=1,
    heading="F1 of rare labels",
    caption="Distribution of F1 over the rare labels (the form of the paper's Fig. 2b): density, quartiles, mean "
    "(diamond) and the share of labels above 70.",
    alt="Violin plots of per-label F1, one a system, with mean and share above 70 printed beside each.",
)


def draw_violin(axes: Axes, row: int, values: np.ndarray, colour: str) -> None:
    """A density with a box inside."""
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


def share_above(values: np.ndarray) -> float:
    """Labels above HIGH_F1, in percent."""
    return 100 * float((values > HIGH_F1).mean())


def finish_violins(axes: Axes, names: Sequence[str], *, right: float, columns: Mapping[str, float]) -> None:
    """Ticks, limits and the line at HIGH_F1; `columns` are headings of numbers and their places on the x axis."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -1.1)
    axes.set_xlim(-3, right)
    axes.set_xticks(range(0, 101, 25))
    axes.spines["bottom"].set_bounds(0, 100)
    axes.axvline(HIGH_F1, color="#999999", linewidth=0.6, linestyle=(0, (4, 3)))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for text, place in columns.items():
        axes.text(place, -0.8, text, ha="center", va="center", fontsize=6.5, color="#333333")


def frequency_figure(data: ExperimentData) -> Figure:
    """Mean F1 of the labels of each frequency group, one line per system."""
    starts = data.settings.evaluation.frequency_groups
    groups = frequency_groups(data.labels.with_columns(pl.col("f1") * 100), starts)
    if groups.is_empty():
        return sentence("No label of the test split has training documents.")
    figure = new_figure(width_for(data.systems, COLUMN + 0.6), 2.6)
    axes, look = figure.add_subplot(), marks(data.systems, leading(data))
    draw_groups(axes, groups, look, {system.name: system.title for system in data.systems}, starts, height=1.9)
    axes.set_xlabel(f"training documents of a label{rest_note(look.values())}")
    return figure


FREQUENCY_GROUPS = ReportFigure(
    name="frequency_groups",
    function="frequency_figure",
    section="rare",
    place=2,
    heading="F1 by label frequency",
    caption="Mean F1 of the labels in each group of training frequency, averaged over seeds.",
    alt="Line chart of mean F1 by label-frequency group, one line a system.",
)


def frequency_groups(labels: pl.DataFrame, starts: Sequence[int]) -> pl.DataFrame:
    """Mean F1 by system and group of training documents: system, group (lower end), f1, labels.

    Labels with fewer documents than the first lower end are left out.
    """
    lower_ends = (pl.when(pl.col("n_train") >= start).then(pl.lit(start, pl.Int64)) for start in starts)
    grouped = labels.with_columns(pl.max_horizontal(lower_ends).alias("group")).drop_nulls("group")
    return grouped.group_by("system", "group").agg(pl.col("f1").mean(), pl.len().alias("labels"))


def draw_groups(
    axes: Axes, groups: pl.DataFrame, look: Mapping[str, Mark], titles: Mapping[str, str], starts: Sequence[int], *,
    height: float,
) -> None:  # fmt: skip
    """One line per system of `titles` through the groups of `frequency_groups`, with its name at its end.

    Args:
        starts: lower ends of all groups.
        height: of the axes, inches.
    """
    sizes = dict(groups.group_by("group").agg(pl.col("labels").max()).sort("group").iter_rows())
    present, ends = list(sizes), []
    for name in titles:
        own, mark = groups.filter(system=name).sort("group"), look[name]
        x = [present.index(group) for group in own["group"]]
        y = own["f1"].to_list()
        axes.plot(x, y, marker=mark.marker, color=mark.colour, linestyle=mark.dash, markeredgecolor="white",
                  markeredgewidth=0.5, zorder=2 + mark.named)  # fmt: skip
        if x and mark.named:
            ends.append(EndLabel(x[-1], y[-1], titles[name], mark.ink, mark))
    axes.set_xticks(range(len(present)), [_group_title(group, starts, sizes[group]) for group in present])
    axes.set_xlim(-0.15, len(present) - 0.85)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("mean F1 of the labels (test, ×100)")
    label_ends(axes, ends, height=height)


def _group_title(start: int, starts: Sequence[int], labels: int) -> str:
    """`11-50`, or `> 500` for the last group, and the number of labels below it."""
    larger = [other for other in starts if other > start]
    title = f"{start}\N{EN DASH}{min(larger) - 1}" if larger else f"> {start - 1}"
    return f"{title}\n{labels} label{'' if labels == 1 else 's'}"
