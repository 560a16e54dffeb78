"""Learning curves over time: what each second of training bought, Stage 1 included."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from plant.paper.experiment.budgets import training_curves
from plant.paper.experiment.data import ExperimentData
from plant.paper.figures.style import COLUMN, EndLabel, label_ends, marks, new_figure, sentence, width_for


def seconds_figure(data: ExperimentData) -> Figure:
    """Macro-F1 on validation against CPU seconds. Thin lines are seeds, thick ones their mean.

    A run's epochs are taken as equally long. A system that starts from Stage 1 begins after the seconds of Stage 1.
    """
    curves = training_curves(data)
    if curves.is_empty():
        return sentence("No system of this experiment was trained by epochs.")
    curves = curves.with_columns(pl.col("macro_f1") * 100)
    systems = list(data.networks.values())
    figure, look, ends = new_figure(width_for(systems, COLUMN + 1.6), 2.6), marks(data.systems), []
    axes = figure.add_subplot()
    for name, network in data.networks.items():
        mark, own = look[network.name], curves.filter(name=name)
        for _, run in own.group_by("seed", maintain_order=True):
            axes.plot(run["seconds"], run["macro_f1"], color=mark.colour, linewidth=0.5, alpha=0.5)
        mean = own.group_by("epoch").agg(pl.col("seconds", "macro_f1").mean(), pl.len()).sort("epoch")
        mean = mean.filter(pl.col("len") == own["seed"].n_unique())  # epochs that all seeds have
        axes.plot(mean["seconds"], mean["macro_f1"], color=mark.colour, marker=mark.marker, markersize=2.5,
                  linestyle=mark.dash)  # fmt: skip
        ends.append(EndLabel(mean["seconds"][-1], mean["macro_f1"][-1], network.title, mark.ink))
    axes.set_xlabel("CPU seconds of training, Stage 1 included")
    axes.set_ylabel("macro-F1, validation, ×100")
    label_ends(axes, ends, height=1.9)
    return figure
