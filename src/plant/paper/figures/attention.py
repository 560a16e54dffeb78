"""Means with intervals: one row for each network and point of training, one panel for each metric."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plant.paper.figures.style import PAGE, forest_row, new_figure
from plant.statistics.pairs import Estimate

_ROW = 0.17
"""Height of a row, inches."""


@dataclass(frozen=True)
class Row:
    """A row of the figure.

    Attributes:
        group: heading; rows of one group stand together.
        title: beside the row.
        colour: of its marks.
        estimates: metric -> mean and interval; a metric without one stays empty.
    """

    group: str
    title: str
    colour: str
    estimates: Mapping[str, Estimate | None]


@dataclass(frozen=True)
class Panel:
    """A panel of the figure.

    Attributes:
        metric: what is drawn.
        title: above it.
        scale: factor of all values (100 for shares).
        line: place of a dashed line, already scaled; None: no line.
    """

    metric: str
    title: str
    scale: float = 100.0
    line: float | None = None


def means_figure(rows: Sequence[Row], panels: Sequence[Panel], *, title: str, note: str) -> Figure:
    """Rows from top to bottom, with a heading above each group.

    Args:
        rows: in the order of the figure.
        panels: from left to right.
        title: above the figure.
        note: below it.
    """
    places, headings, y = [], [], 0.0
    for number, row in enumerate(rows):
        if number == 0 or row.group != rows[number - 1].group:
            y += 0.3 if number else 0.0
            headings.append((y, row.group))
            y += 1.0
        places.append(y)
        y += 1.0
    figure = new_figure(PAGE, 1.1 + _ROW * y)
    axes_of = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, panel in zip(axes_of, panels, strict=True):
        _draw(axes, panel, rows, places)
        axes.set_ylim(y - 0.4, -0.8)
    axes_of[0].set_yticks(places, [row.title for row in rows])
    for place, group in headings:
        axes_of[0].annotate(
            group, xy=(0, place), xycoords=("axes fraction", "data"), xytext=(-6, 0), textcoords="offset points",
            ha="right", va="center", fontweight="bold", fontsize=7,
        )  # fmt: skip
    figure.suptitle("\n".join(textwrap.wrap(title, 100)), fontsize=8.5, fontweight="bold")
    figure.supxlabel("\n".join(textwrap.wrap(note, 130)), fontsize=7)
    return figure


def _draw(axes: Axes, panel: Panel, rows: Sequence[Row], places: Sequence[float]) -> None:
    axes.set_title("\n".join(textwrap.wrap(panel.title, 22)), fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axes.margins(x=0.06)
    if panel.line is not None:
        axes.axvline(panel.line, color="#777777", linewidth=0.8, linestyle=(0, (4, 2)))
    for row, place in zip(rows, places, strict=True):
        own = row.estimates.get(panel.metric)
        if own is not None:
            bounds = (panel.scale * own.low, panel.scale * own.high)
            forest_row(axes, place, bounds, panel.scale * own.value, row.colour, sure=True)
