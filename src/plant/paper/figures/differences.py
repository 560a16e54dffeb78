"""Forest plot: the difference of every system to the reference, with our interval."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.paper.experiment.data import ExperimentData
from plant.paper.figures.style import PAGE, forest, forest_row, new_figure, sentence
from plant.paper.systems import KIND_COLOURS
from plant.paper.wording import metric_title

_COLUMNS = 4


def interval_figure(data: ExperimentData) -> Figure:
    """One panel per metric, one row per system. A mark is filled if the difference is significant by our test."""
    shown = [metric for metric in data.settings.paper.metrics if (data.results["metric"] == metric).any()]
    others = data.systems[:-1]
    if not shown or not others:
        return sentence("There is nothing to compare with the reference.")
    lines = -(-len(shown) // _COLUMNS)
    figure = new_figure(PAGE, 0.5 + lines * (0.5 + 0.19 * len(others)))
    grid = figure.subplots(lines, min(_COLUMNS, len(shown)), squeeze=False, sharey=True)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes, metric in zip(grid.flat, shown, strict=False):
        _panel(axes, data, metric)
    level = f"{100 * data.settings.statistics.confidence:g}%"
    figure.supxlabel(
        f"difference to {data.reference.title} in points (×100), our {level} interval; filled: significant by ours",
        fontsize=7.5,
    )
    return figure


def _panel(axes: Axes, data: ExperimentData, metric: str) -> None:
    others = data.systems[:-1]
    forest(axes, margin=0.08)
    for place, system in enumerate(others):
        row = data.rows.get((system.name, metric))
        if row is None or row["diff_low"] is None or row["diff_high"] is None:
            continue
        low, high, value = (100 * row[name] for name in ("diff_low", "diff_high", "difference"))
        forest_row(axes, place, (low, high), value, KIND_COLOURS[system.kind], sure=bool(row["our_arrow"]))
    axes.set_title(metric_title(metric))
    axes.set_yticks(range(len(others)), [system.title for system in others])
    axes.set_ylim(len(others) - 0.5, -0.5)
