"""Forest plots: intervals from top to bottom, in groups with a heading each."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plant.paper.figures.style import PAGE, new_figure
from plant.statistics.pairs import Estimate


class ForestRow(NamedTuple):
    """A row of `means_figure`."""

    group: str
    """Heading; the rows of a group follow one another."""
    title: str
    colour: str
    estimates: Mapping[str, Estimate | None]
    """Metric -> mean and interval; a metric without one stays empty."""


class ForestPanel(NamedTuple):
    """A panel of `means_figure`."""

    metric: str
    title: str
    scale: float = 100.0
    """Factor of all values (100 for shares)."""
    line: float | None = None
    """Place of a dashed line, already scaled; None: no line."""


def means_figure(rows: Sequence[ForestRow], panels: Sequence[ForestPanel], *, title: str, note: str) -> Figure:
    """Means with intervals: rows from top to bottom, panels from left to right, `title` above and `note` below."""
    places, headings, height = stack([row.group for row in rows], gap=0.3)
    figure = new_figure(PAGE, 1.1 + 0.17 * height)
    axes_of = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, panel in zip(axes_of, panels, strict=True):
        axes.set_title("\n".join(textwrap.wrap(panel.title, 22)), fontsize=7)
        round_ticks(axes, margin=0.06)
        if panel.line is not None:
            axes.axvline(panel.line, color="#777777", linewidth=0.8, linestyle=(0, (4, 2)))
        for row, place in zip(rows, places, strict=True):
            own = row.estimates.get(panel.metric)
            if own is not None:
                bounds = (panel.scale * own.low, panel.scale * own.high)
                forest_row(axes, place, bounds, panel.scale * own.value, row.colour, sure=True)
        axes.set_ylim(height - 0.4, -0.8)
    name_rows(axes_of[0], places, [row.title for row in rows], headings)
    figure.suptitle("\n".join(textwrap.wrap(title, 100)), fontsize=8.5, fontweight="bold")
    figure.supxlabel("\n".join(textwrap.wrap(note, 130)), fontsize=7)
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


def name_rows(
    axes: Axes, places: Sequence[float], titles: Sequence[str], headings: Sequence[tuple[float, str]]
) -> None:
    """The titles of the rows beside the leftmost panel, and the headings above them."""
    axes.set_yticks(places, titles)
    for place, group in headings:
        axes.annotate(
            group, xy=(0, place), xycoords=("axes fraction", "data"), xytext=(-6, 0), textcoords="offset points",
            ha="right", va="center", fontweight="bold", fontsize=7,
        )  # fmt: skip


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
    axes: Axes, row: float, bounds: Sequence[float] | None, value: float, colour: str, *, sure: bool
) -> None:
    """An interval and its estimate; the mark is filled where the difference is significant."""
    if bounds is not None:
        axes.plot(bounds, [row, row], color=colour, linewidth=1.3, solid_capstyle="butt")
    axes.plot(value, row, "o", color=colour, markerfacecolor=colour if sure else "white", markersize=4)
