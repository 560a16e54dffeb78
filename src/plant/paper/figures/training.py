"""Stage 1 against Stage 2 (form of Fig. 3, left), and the training curves of both stages, by epoch and over time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plant.paper.contents import ReportFigure
from plant.paper.experiment.budgets import training_curves
from plant.paper.experiment.data import ExperimentData
from plant.paper.experiment.headline import leading
from plant.paper.figures.style import (
    COLUMN,
    MANY,
    PAGE,
    EndLabel,
    Mark,
    label_ends,
    marks,
    new_figure,
    rest_note,
    sentence,
    width_for,
)
from plant.paper.inputs import read_histories

STAGE1_COLUMNS = ("loss", "ndcg_val", "attention_mass")
NOT_OVER_WORDS = ("attention_mass",)  # a Stage 1 over the vocabulary reads no document
STAGE2_COLUMNS = ("loss", "macro_f1")


def stage_figure(data: ExperimentData) -> Figure:
    """A point for each seed. nDCG@k is that of the epoch from which Stage 2 starts: the best, or `pretraining_epoch`.

    A system without Stage 1 has no place on the x axis; a line shows its mean.
    """
    stage1 = read_histories(data.inputs.pretrainings, STAGE1_COLUMNS, NOT_OVER_WORDS)
    f1 = data.metrics.filter(metric="macro_f1_present").select("system", "seed", pl.col("value") * 100)
    if stage1.is_empty():
        return sentence("No system of this experiment has a Stage 1.")
    figure = new_figure(width_for(data.systems, COLUMN + 0.6), 2.6)
    axes = figure.add_subplot()
    systems = [system for system in data.systems if system.kind != "no network"]
    look, ends = marks(systems, leading(data)), []
    for system in systems:
        own, mark = f1.filter(system=system.name), look[system.name]
        mean = own["value"].mean()
        if system.pretraining is not None:
            epoch = data.settings.variants[system.name].pretraining_epoch
            ran = stage1.filter(pl.lit(epoch is None) | (pl.col("epoch") == (epoch or 0)), name=system.pretraining)
            pairs = own.join(ran.group_by("seed").agg(pl.col("ndcg_val").max()), on="seed").sort("seed")
            axes.plot(pairs["ndcg_val"], pairs["value"], mark.marker or "o", color=mark.colour,
                      markeredgecolor="white", markersize=6, markeredgewidth=0.5, zorder=2 + mark.named)  # fmt: skip
        elif isinstance(mean, float):
            axes.axhline(mean, color=mark.colour, linewidth=1, linestyle=mark.dash)
        if mark.named and isinstance(mean, float):
            ends.append((mean, system.title, mark.ink))
    axes.margins(x=0.12, y=0.15)
    axes.set_xlim(*axes.get_xlim())
    axes.set_ylim(0, None)
    recipes = [data.settings.pretrainings[system.pretraining] for system in systems if system.pretraining]
    k = "/".join(map(str, sorted({recipe.ndcg_k or recipe.k for recipe in recipes})))
    axes.set_xlabel(
        f"nDCG@{k} at the end of Stage 1 (validation, 0 to 1),\nagainst the recipe's own relevance; lines: no Stage 1"
        f"{rest_note(look.values())}"
    )
    axes.set_ylabel("macro-F1 (present), test, ×100")
    label_ends(axes, [EndLabel(axes.get_xlim()[1], *end) for end in ends], height=1.9)
    return figure


NDCG_AND_MACRO_F1 = ReportFigure(
    name="ndcg_and_macro_f1",
    function="stage_figure",
    section="stages",
    place=1,
    heading="Stage 1 against Stage 2",
    caption="One point a seed (the form of the paper's Fig. 3, left). nDCG@k is taken against the recipe's own "
    "relevance: it says how well that relevance was learnt, not whether it was worth learning.",
    alt="Scatter plot of nDCG@k after Stage 1 against test macro-F1 after Stage 2.",
)


Line = tuple[str, str, Mark]
"""A line of a panel: name in the histories, printed title, look."""


def curves_figure(data: ExperimentData) -> Figure:
    """Loss and quality by epoch: Stage 1 above, Stage 2 below."""
    look = _look_of_networks(data)
    recipes: dict[str, Line] = {}
    for system in [data.reference, *data.systems[:-1]]:  # a recipe has the look of the first system that has it
        if system.pretraining is not None:
            recipes.setdefault(system.pretraining, (system.pretraining, system.pretraining, look[system.name]))
    networks = [(name, network.title, look[network.name]) for name, network in data.networks.items()]
    rows = [
        (read_histories(data.inputs.pretrainings, STAGE1_COLUMNS, NOT_OVER_WORDS), list(recipes.values()),
         (("loss", "Stage 1 loss", 1), ("ndcg_val", "Stage 1 nDCG@k, validation", 1),
          ("attention_mass", "attention on top k, val. (%)", 100))),
        (read_histories(data.inputs.finetunings, STAGE2_COLUMNS), networks,
         (("loss", "Stage 2 loss", 1), ("macro_f1", "Stage 2 macro-F1, validation (×100)", 100))),
    ]  # fmt: skip
    rows = [row for row in rows if not row[0].is_empty()]
    if not rows:
        return sentence("No system of this experiment was trained by epochs.")
    figure = new_figure(PAGE, 1.9 * len(rows))
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, (histories, lines, panels) in zip(parts, rows, strict=True):
        grid = part.subplots(1, len(panels), squeeze=False)[0]
        for axes, (column, title, factor) in zip(grid, panels, strict=True):
            draw_curves(axes, histories.with_columns(pl.col(column) * factor), column, lines, named=axes is grid[-1])
            axes.set_title(title)
            axes.set_xlabel("epoch" + rest_note(mark for _, _, mark in lines))
    return figure


TRAINING_CURVES = ReportFigure(
    name="training_curves",
    function="curves_figure",
    section="stages",
    place=2,
    heading="Training",
    caption="Thin lines are seeds, thick lines their mean. Stage 1 above, Stage 2 below. nDCG@k is blind to the "
    "scale of the scores, so the attention mass on the top k tokens stands beside it.",
    alt="Line charts of loss and validation quality by epoch for both stages.",
    wide=True,
)


def draw_curves(axes: Axes, histories: pl.DataFrame, column: str, lines: Sequence[Line], *, named: bool) -> None:
    """A column of the histories by epoch; `named`: with the titles at the ends of the lines."""
    ends = []
    for line in lines:
        own = histories.filter(name=line[0]).drop_nulls(column)
        mean = own.group_by("epoch").agg(pl.col(column).mean()).sort("epoch")
        if not mean.is_empty():
            ends += _draw_line(axes, own, mean, ("epoch", column), line)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    if named:
        label_ends(axes, ends, height=1.2)


def _draw_line(
    axes: Axes, runs: pl.DataFrame, mean: pl.DataFrame, columns: tuple[str, str], line: Line
) -> list[EndLabel]:
    """Thin lines for the seeds and a thick one for their mean; what stands at its end."""
    (x, y), (_, title, mark) = columns, line
    for _, run in runs.group_by("seed", maintain_order=True) if mark.named else ():
        axes.plot(run[x], run[y], color=mark.colour, linewidth=0.5, alpha=0.5)
    axes.plot(mean[x], mean[y], color=mark.colour, marker=mark.marker, markersize=2.5, linestyle=mark.dash,
              zorder=2 + mark.named)  # fmt: skip
    return [EndLabel(mean[x][-1], mean[y][-1], title, mark.ink, mark)] if mark.named else []


def _look_of_networks(data: ExperimentData) -> dict[str, Mark]:
    """The marks of the systems, which are grey if there are too many networks."""
    return marks(data.systems, leading(data) if len(data.networks) > MANY else None)


def seconds_figure(data: ExperimentData) -> Figure:
    """Macro-F1 on validation against CPU seconds, those of Stage 1 first."""
    curves = training_curves(data)
    if curves.is_empty():
        return sentence("No system of this experiment was trained by epochs.")
    curves = curves.with_columns(pl.col("macro_f1") * 100)
    systems, look, ends = list(data.networks.values()), _look_of_networks(data), []
    figure = new_figure(width_for(systems, COLUMN + 1.6), 2.6)
    axes = figure.add_subplot()
    for name, network in data.networks.items():
        own = curves.filter(name=name)
        mean = own.group_by("epoch").agg(pl.col("seconds", "macro_f1").mean(), pl.len()).sort("epoch")
        mean = mean.filter(pl.col("len") == own["seed"].n_unique())  # epochs that all seeds have
        ends += _draw_line(axes, own, mean, ("seconds", "macro_f1"), (name, network.title, look[network.name]))
    grey = rest_note(look[network.name] for network in systems)
    axes.set_xlabel(f"CPU seconds of training, Stage 1 included{grey}")
    axes.set_ylabel("macro-F1, validation, ×100")
    label_ends(axes, ends, height=1.9)
    return figure


LEARNING_OVER_TIME = ReportFigure(
    name="learning_over_time",
    function="seconds_figure",
    section="stages",
    place=3,
    heading="Learning over time",
    caption="Thin lines are seeds, thick lines their mean. The seconds of Stage 1 come first. Epochs of a run are "
    "taken as equally long.",
    alt="Line chart of validation quality against CPU seconds, one line a system.",
)
