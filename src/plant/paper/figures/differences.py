"""Forest plot: the difference of every system to the reference, with our interval."""

from __future__ import annotations

from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.paper.contents import ReportFigure
from plant.paper.experiment.data import ExperimentData
from plant.paper.figures.forest import forest, forest_row
from plant.paper.figures.style import PAGE, new_figure, sentence, width_for
from plant.paper.systems import KIND_COLOURS, System, group_systems
from plant.paper.wording import metric_title

_COLUMNS = 4
_WIDEST = 16
"""Letters of a panel's title that fit over it."""


def interval_figure(data: ExperimentData) -> Figure:
    """One panel per metric, one row per system, grouped by the stage in which it differs from the reference."""
    shown = [metric for metric in data.settings.paper.metrics if (data.results["metric"] == metric).any()]
    groups = group_systems(data.systems)
    rows: list[System | str] = []  # the systems, each group after its name; one group alone has no name
    for group, systems in groups.items():
        rows += [group, *systems] if len(groups) > 1 else systems
    if not shown or not rows:
        return sentence("There is nothing to compare with the reference.")
    lines = -(-len(shown) // _COLUMNS)
    figure = new_figure(width_for(data.systems, PAGE), 0.5 + lines * (0.5 + 0.19 * len(rows)))
    grid = figure.subplots(lines, min(_COLUMNS, len(shown)), squeeze=False, sharey=True)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes, metric in zip(grid.flat, shown, strict=False):
        _panel(axes, data, metric, rows)
    level = f"{100 * data.settings.statistics.confidence:g}%"
    figure.supxlabel(
        f"difference to {data.reference.title} in points (×100), our {level} interval; filled: significant by our test",
        fontsize=7.5,
    )
    return figure


DIFFERENCES = ReportFigure(
    name="differences",
    function="interval_figure",
    section="results",
    place=2,
    heading="Difference to the reference",
    caption="Each mark is a system minus the reference, with our interval (over training seeds and test documents; "
    "with one seed over documents alone). Filled marks: the interval excludes 0 and the randomisation test agrees.",
    alt="Forest plot, one panel a metric; the same numbers are in the table of intervals.",
    wide=True,
)


def _panel(axes: Axes, data: ExperimentData, metric: str, rows: list[System | str]) -> None:
    forest(axes, margin=0.08)
    for place, system in enumerate(rows):
        if isinstance(system, str):
            continue
        row = data.rows.get((system.name, metric))
        if row is None or row["diff_low"] is None or row["diff_high"] is None:
            continue
        low, high, value = (100 * row[name] for name in ("diff_low", "diff_high", "difference"))
        forest_row(axes, place, (low, high), value, KIND_COLOURS[system.kind], sure=bool(row["our_arrow"]))
    axes.set_title(fill(metric_title(metric), _WIDEST))
    axes.set_yticks(range(len(rows)), [row if isinstance(row, str) else row.title for row in rows])
    for label, shown in zip(axes.get_yticklabels(), rows, strict=False):  # only the first column has labels
        if isinstance(shown, str):
            label.set(fontstyle="italic", color="#555555")
    axes.set_ylim(len(rows) - 0.5, -0.5)
