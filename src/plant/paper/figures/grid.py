"""Figures of both versions of the paper from our runs. Hollow black marks are what the paper prints."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plant.paper.figures.grid_panels import (
    draw_cumulated,
    draw_epochs,
    draw_frequency,
    draw_ranked,
    draw_sizes,
    draw_training,
    draw_violins,
)
from plant.paper.figures.style import PAGE, new_figure, sentence
from plant.paper.grid.points import epoch_points, frequency_points, label_points, size_points, training_points
from plant.paper.grid.results import Grid, target
from plant.paper.systems import system_title
from plant.paper.values.transcription import PaperValues

BANNER = "Synthetic stand-in text: our marks show that the machinery works, nothing about the paper."
MISTRAL, LLAMA, AWD = "mistral_7b", "llama3_8b", "awd_lstm"
PAIRS = (("mimic3_full", MISTRAL), ("mimic4_full", LLAMA))
"""Dataset and backbone of figure 4 (and of ablation 8)."""
_PAPERS = {
    MISTRAL: ("S4/{}/Mistral-7B + PLANT", "S4/{}/Mistral-7B"), AWD: ("awd-S5/{}/PLANT", "awd-S5/{}/LAAT"),
}  # fmt: skip
"""Backbone -> places of the sizes at which the paper's systems reach one precision: PLANT, and without Stage 1."""
_LINE = 150
"""Characters of a line of the caption."""
_RARE = (
    "Mean F1 of the labels of {} and {} by training documents (our counterpart of the paper's 2a, which "
    "quotes other systems), and their F1 on rare labels. Black diamonds and brackets: the paper's numbers."
)
_EPOCHS = (
    "Numbers are epochs of Stage 1, small marks seeds, the line joins means. Dotted: what the paper reports (nDCG@k "
    "after 1 and 10 epochs, metric of its full setup); diamond: its full setup."
)
_SIZES = (
    "Solid: PLANT, dashed: without Stage 1; circles: P@5, squares: P@15; small marks are seeds. Black and hollow: the "
    "sizes at which the paper's PLANT (diamond) and its {} (square, up to 5 epochs) reach one precision."
)
_LLM, _EARLIER = (_SIZES.format(name) for name in ("single stage", "LAAT, the decoder without S and P"))
_SKEWNESS = (
    "Every label of the corpus, over all splits. Hollow: the share of labels with fewer than 10 documents by the "
    "numbers of the text (dotted: 10). The paper draws the first panel in a picture only."
)
_TRAINING = (
    "Thin lines are seeds, thick ones their mean. Dotted: epochs 40 and 60. The text says that LAAT overfits after 40, "
    "and that PLANT does not within 60. The paper draws loss and P@15 of the test split after every epoch. Here the "
    "test split is read once. The paper's curves are in a picture only; to read them off a picture is not attempted."
)

Panel = tuple[pl.DataFrame, Callable[[Axes, pl.DataFrame], None]]
"""The numbers of a panel, and what draws it."""


class PaperFigure(NamedTuple):
    """What a figure of the paper is made of."""

    datasets: tuple[str, ...]
    height: float
    caption: str
    panels: Sequence[Panel]
    """Two stand in a line."""
    widths: tuple[float, float] = (1, 1)


def grid_figure(name: str, grid: Grid, values: PaperValues) -> Figure:
    """A figure of the paper; call it inside `style.look()`. One that has nothing to show says what is missing.

    Raises:
        InputError: a result file is unreadable.
    """
    made = FIGURES[name](grid, values)
    if all(points.is_empty() for points, _ in made.panels):
        return sentence("Not attempted. " + _missing(grid, most=4))
    figure = new_figure(PAGE, made.height)
    panels = figure.subplots(len(made.panels) // 2, 2, width_ratios=made.widths)
    for axes, (points, draw) in zip(panels.flat, made.panels, strict=True):
        draw(axes, points)
    if any(grid.is_stand_in(dataset) for dataset in made.datasets):
        figure.suptitle(BANNER, fontsize=6.5, color="#B00000")
    missing = _missing(grid, most=2)
    lines = [made.caption, *([f"Missing: {missing}."] if missing else [])]
    text = "\n".join(line for each in lines for line in textwrap.wrap(each, _LINE))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=6, color="#333333")
    return figure


def _titles(grid: Grid, names: tuple[str, ...]) -> dict[str, str]:
    """System -> how it is printed, for those that the config has."""
    return {name: system_title(grid.settings, name) for name in names if name in grid.settings.variants}


def _labels(
    datasets: tuple[str, str], backbone: str, systems: tuple[str, str], papers: str, grid: Grid, values: PaperValues
) -> PaperFigure:
    """Figure 2 of both versions: F1 by frequency of all labels, and F1 of rare labels."""
    whole, few = (label_points(grid, name, backbone, systems) for name in datasets)
    titles, starts = _titles(grid, systems), grid.settings.evaluation.frequency_groups
    panels = (
        (whole, partial(draw_frequency, titles=titles, starts=starts, dataset=datasets[0])),
        (few, partial(draw_violins, values=values, place=papers, dataset=datasets[1])),
    )
    return PaperFigure(datasets, 3.2, _RARE.format(*systems), panels, widths=(0.8, 1))


def _epochs(grid: Grid, values: PaperValues, dataset: str, backbone: str, metric: str) -> Panel:
    """A panel of figures 3 and 4."""
    points = epoch_points(grid, dataset, backbone, metric)
    return points, partial(draw_epochs, values=values, place=(dataset, backbone), metric=metric)


def _size(grid: Grid, values: PaperValues, dataset: str, backbone: str) -> Panel:
    """A panel of precision by training size."""
    systems, points = size_points(grid, dataset, backbone, ("p@5", "p@15"))
    papers = [row.format(dataset.removeprefix("awd_")) for row in _PAPERS[backbone]]
    return points, partial(draw_sizes, systems=systems, values=values, place=(dataset, backbone), papers=papers)


def _figure_3(grid: Grid, values: PaperValues) -> PaperFigure:
    epochs = _epochs(grid, values, "mimic4_full", LLAMA, "macro_f1_all")
    sizes = _size(grid, values, "mimic4_full", MISTRAL)
    return PaperFigure(("mimic4_full",), 3.1, f"Left: {_EPOCHS} Right: {_LLM}", (epochs, sizes))


def _figure_4(grid: Grid, values: PaperValues) -> PaperFigure:
    panels = [_epochs(grid, values, *pair, metric) for pair in PAIRS for metric in ("macro_f1_all", "p@15")]
    return PaperFigure(tuple(dataset for dataset, _ in PAIRS), 5.2, _EPOCHS, panels)


def _sizes(datasets: tuple[str, str], backbone: str, caption: str, grid: Grid, values: PaperValues) -> PaperFigure:
    """Precision by training size, a panel for each dataset: figure 5, and figure 3 of the earlier version."""
    return PaperFigure(datasets, 3.1, caption, [_size(grid, values, name, backbone) for name in datasets])


def _frequencies(dataset: str, papers: str, grid: Grid, values: PaperValues) -> PaperFigure:
    """Figure 4 of the earlier version: how skewed the frequencies of labels are."""
    points = frequency_points(grid, dataset)
    panels = (
        (points, partial(draw_ranked, dataset=dataset)),
        (points, partial(draw_cumulated, values=values, place=papers, dataset=dataset)),
    )
    return PaperFigure((dataset,), 2.6, _SKEWNESS, panels)


def _training(dataset: str, systems: tuple[str, str], papers: str, grid: Grid, values: PaperValues) -> PaperFigure:
    """Figure 5 of the earlier version: training loss and validation macro-F1 by epoch."""
    points, titles = training_points(grid, dataset, AWD, systems), _titles(grid, systems)
    epochs = [float(cell.value) for cell in values.within(papers).values()]
    columns = {"loss": "training loss", "macro_f1": "macro-F1, validation (×100)"}
    panels = [
        (points, partial(draw_training, column=column, titles=titles, title=f"{title}, {dataset}", epochs=epochs))
        for column, title in columns.items()
    ]
    return PaperFigure((dataset,), 2.6, _TRAINING, panels)


FIGURES: dict[str, Callable[[Grid, PaperValues], PaperFigure]] = {
    "figure_2": partial(_labels, ("mimic3_full", "mimic3_few"), MISTRAL, ("single_stage", "plant"), "F2/mimic3_few"),
    "figure_3": _figure_3,
    "figure_4": _figure_4,
    "figure_5": partial(_sizes, ("mimic3_full", "mimic4_full"), MISTRAL, _LLM),
    "awd_figure_2": partial(
        _labels, ("awd_mimic3_full", "awd_mimic3_few"), AWD, ("awd_laat", "awd_plant"), "awd-F2/mimic3_few"
    ),
    "awd_figure_3": partial(_sizes, ("awd_mimic3_full", "awd_mimic4_full"), AWD, _EARLIER),
    "awd_figure_4": partial(_frequencies, "awd_mimic3_full", "S1/mimic3_full/corpus"),
    "awd_figure_5": partial(_training, "awd_mimic4_full", ("awd_laat_60", "awd_plant_60"), "awd-F5/mimic4_full"),
}


def _missing(grid: Grid, *, most: int) -> str:
    """The first reasons, and the targets to run."""
    lines, names = list(grid.missing), list(grid.to_run)
    shown = [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]
    if names:
        rest = f" and {len(names) - most} more" if len(names) > most else ""
        shown.append(f"not run yet: target {target(*names[:most])}{rest}")
    return "; ".join(shown)
