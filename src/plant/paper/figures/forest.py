"""Forest plots: intervals from top to bottom, in groups with a heading each."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plant.paper.figures.style import PAGE, new_figure
from plant.statistics.pairs import Estimate


class ForestRow(NamedTuple):
    """A row of `means_figure`. A metric without an estimate stays empty; the rows of a group follow one another."""

    group: str
    title: str
    colour: str
    estimates: Mapping[str, Estimate | None]


class ForestPanel(NamedTuple):
    """A panel of `means_figure`: values times `scale`, and a dashed `line` at a place that is already scaled."""

    metric: str
    title: str
    scale: float = 100.0
    line: float | None = None


def means_figure(rows: Sequence[ForestRow], panels: Sequence[ForestPanel], *, title: str, note: str) -> Figure:
    """Means with intervals: rows from top to bottom, panels from left to right, `title` above and `note` below."""

    def draw(axes: Axes, places: Sequence[float], panel: ForestPanel) -> None:
        round_ticks(axes, margin=0.06)
        if panel.line is not None:
            axes.axvline(panel.line, color="#777777", linewidth=0.8, linestyle=(0, (4, 2)))
        for row, place in zip(rows, places, strict=True):
            if own := row.estimates.get(panel.metric):
                low, value, high = (panel.scale * number for number in (own.low, own.value, own.high))
                forest_row(axes, place, (low, high), value, row.colour, sure=True)

    names = [(row.group, row.title) for row in rows]
    drawn = {textwrap.fill(panel.title, 22): partial(draw, panel=panel) for panel in panels}
    return rows_figure(names, drawn, title=title, note=textwrap.fill(note, 130), gap=0.3, row_height=0.17)


def rows_figure(
    rows: Sequence[tuple[str, str]], panels: Mapping[str, Callable[[Axes, Sequence[float]], None]], *,
    title: str, note: str, gap: float, row_height: float,
) -> Figure:  # fmt: skip
    """Rows from top to bottom with their names at the left, and panels from left to right.

    Args:
        rows: group and name of each.
        panels: title -> what draws the panel at the places of the rows.
        gap: between groups, in rows.
        row_height: inches.
    """
    places, headings, height = stack([group for group, _ in rows], gap=gap)
    figure = new_figure(PAGE, 1.1 + row_height * height)
    axes_of = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, draw) in zip(axes_of, panels.items(), strict=True):
        draw(axes, places)
        axes.set_title(name, fontsize=7)
        axes.set_ylim(height - 0.4, -0.8)
    axes_of[0].set_yticks(places, [name for _, name in rows])
    for place, group in headings:
        axes_of[0].annotate(
            group, xy=(0, place), xycoords=("axes fraction", "data"), xytext=(-6, 0), textcoords="offset points",
            ha="right", va="center", fontweight="bold", fontsize=7,
        )  # fmt: skip
    figure.suptitle(textwrap.fill(title, 100), fontsize=8.5, fontweight="bold")
    figure.supxlabel(note, fontsize=7)
    return figure


def stack(groups: Sequence[str], *, gap: float) -> tuple[list[float], list[tuple[float, str]], float]:
    """Where rows stand, from top to bottom.

    Args:
        groups: the group of each row; one without a name has no heading.
        gap: between groups, in rows.

    Returns:
        The place of each row, place and name of each heading, and the height of all in rows.
    """
    places, headings, y = [], [], 0.0
    for number, group in enumerate(groups):
        if number == 0 or group != groups[number - 1]:
            y += gap if number else 0.0
            if group:
                headings.append((y, group))
                y += 1.0
        places.append(y)
        y += 1.0
    return places, headings, y


def round_ticks(axes: Axes, *, margin: float) -> None:
    """No marks on the y axis, few round ticks on the x axis."""
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axes.margins(x=margin)


def forest(axes: Axes, *, margin: float) -> None:
    """The panel of a plot of differences: a line at 0, and round ticks."""
    axes.axvline(0, color="black", linewidth=0.8)
    round_ticks(axes, margin=margin)


def forest_row(
    axes: Axes, row: float, bounds: Sequence[float] | None, value: float, colour: str, *, sure: bool, marker: str = "o"
) -> None:
    """An interval and its estimate; the mark is filled where the difference is significant."""
    if bounds is not None:
        axes.plot(bounds, [row, row], color=colour, linewidth=1.3, solid_capstyle="butt")
    axes.plot(value, row, marker, color=colour, markerfacecolor=colour if sure else "white", markersize=4)
