"""Learning curves over time: what each second of training bought, Stage 1 included."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
from matplotlib.figure import Figure

from plant.paper.experiment.data import ExperimentData
from plant.paper.figures.style import COLUMN, EndLabel, label_ends, marks, new_figure, sentence, width_for
from plant.paper.inputs import STAGE1, STAGE2, TRAINING, read_costs, read_histories


def seconds_figure(data: ExperimentData) -> Figure:
    """Macro-F1 on validation against CPU seconds. Thin lines are seeds, thick ones their mean.

    A run's epochs are taken as equally long. A system that starts from Stage 1 begins after the seconds of Stage 1.
    """
    spent: dict[tuple[str, str, int], float] = defaultdict(float)
    for cost in read_costs(data.inputs):
        if cost["stage"] in TRAINING:
            spent[cost["stage"], cost["name"], cost["seed"]] += cost["cpu_seconds"]
    histories = read_histories(data.inputs.finetunings, ("macro_f1",))
    if histories.is_empty():
        return sentence("No system of this experiment was trained by epochs.")
    systems = list(data.networks.values())
    figure, look, ends = new_figure(width_for(systems, COLUMN + 1.6), 2.6), marks(data.systems), []
    axes = figure.add_subplot()
    for name, network in data.networks.items():
        mark, own = look[network.name], histories.filter(name=name)
        last = {seed: run.height for (seed,), run in own.group_by("seed")}
        x = [
            spent[STAGE1, str(network.pretraining), seed] + spent[STAGE2, name, seed] * epoch / last[seed]
            for seed, epoch in own.select("seed", "epoch").iter_rows()
        ]
        own = own.with_columns(x=pl.Series(x), y=pl.col("macro_f1") * 100)
        for _, run in own.group_by("seed", maintain_order=True):
            axes.plot(run["x"], run["y"], color=mark.colour, linewidth=0.5, alpha=0.5)
        mean = own.group_by("epoch").agg(pl.col("x", "y").mean(), pl.len()).sort("epoch")
        mean = mean.filter(pl.col("len") == len(last))  # epochs that all seeds have
        axes.plot(mean["x"], mean["y"], color=mark.colour, marker=mark.marker, markersize=2.5, linestyle=mark.dash)
        ends.append(EndLabel(mean["x"][-1], mean["y"][-1], network.title, mark.ink))
    axes.set_xlabel("CPU seconds of training, Stage 1 included")
    axes.set_ylabel("macro-F1, validation, ×100")
    label_ends(axes, ends, height=1.9)
    return figure
