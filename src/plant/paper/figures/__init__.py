"""All figures of an experiment, as PDF and PNG under fixed names (`plant.paper.FIGURES`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from plant.paper.experiment.data import ExperimentData
from plant.paper.figures.differences import interval_figure
from plant.paper.figures.labels import frequency_figure, rare_label_figure
from plant.paper.figures.style import look, save
from plant.paper.figures.training import curves_figure, seconds_figure, stage_figure

DRAW: dict[str, Callable[[ExperimentData], Figure]] = {
    "ndcg_and_macro_f1": stage_figure,
    "rare_label_f1": rare_label_figure,
    "differences": interval_figure,
    "frequency_groups": frequency_figure,
    "training_curves": curves_figure,
    "learning_over_time": seconds_figure,
}
"""Name -> the function that draws it; call it inside `style.look()`."""


def write_figures(data: ExperimentData, folder: Path) -> None:
    """Write every figure of `FIGURES` into `folder`; the same inputs give the same bytes.

    Raises:
        InputError: an input is missing or lacks a column.
    """
    with look():
        for name, draw in DRAW.items():
            save(draw(data), Path(folder) / name)
