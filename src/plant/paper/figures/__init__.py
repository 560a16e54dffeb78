"""All figures of an experiment, as PDF and PNG, by their entries in `plant.paper.contents`."""

from __future__ import annotations

from pathlib import Path

from plant.paper.contents import report_figures
from plant.paper.experiment.data import ExperimentData
from plant.paper.figures.style import look, save


def write_figures(data: ExperimentData, folder: Path) -> None:
    """Write every figure into `folder`; the same inputs give the same bytes."""
    with look():
        for name, entry in report_figures().items():
            save(entry.load()(data), Path(folder) / name)
