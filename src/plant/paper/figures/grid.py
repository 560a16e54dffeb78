"""Figures of both versions of the paper from our runs. Hollow black marks are what the paper prints."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from matplotlib.figure import Figure

from plant.ground.errors import InputError
from plant.paper.figures.grid_panels import LOOK, draw_epochs, draw_frequency, draw_sizes, draw_violins
from plant.paper.figures.style import PAGE, new_figure, sentence
from plant.paper.figures.training import draw_curves
from plant.paper.grid.points import Points, epoch_points, label_points, size_points, training_points
from plant.paper.grid.results import Grid, target
from plant.paper.values.transcription import PaperValues

BANNER = "Synthetic stand-in text: our marks show that the machinery works, nothing about the paper."
MISTRAL, LLAMA, AWD = "mistral_7b", "llama3_8b", "awd_lstm"
PAIRS = (("mimic3_full", MISTRAL), ("mimic4_full", LLAMA))
"""Dataset and backbone of figure 4 (and of ablation 8)."""
_PAPERS = {
    "mimic3_full": ("S4/mimic3_full/Mistral-7B + PLANT", "S4/mimic3_full/Mistral-7B"),
    "mimic4_full": ("S4/mimic4_full/Mistral-7B + PLANT", "S4/mimic4_full/Mistral-7B"),
    "awd_mimic3_full": ("awd-S5/mimic3_full/PLANT", "awd-S5/mimic3_full/LAAT"),
    "awd_mimic4_full": ("awd-S5/mimic4_full/PLANT", "awd-S5/mimic4_full/LAAT"),
}
"""Dataset -> rows with the sizes at which the paper's systems reach one precision: PLANT, and without Stage 1."""
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

_TRAINING = (
    "Thin lines are seeds, thick ones their mean. Dotted: epochs 40 and 60. The text says that LAAT overfits after 40, "
    "and that PLANT does not within 60. The paper draws loss and P@15 of the test split after every epoch. Here the "
    "test split is read once. The paper's curves are in a picture only; to read them off a picture is not attempted."
)


def grid_figure(name: str, grid: Grid, values: PaperValues) -> Figure:
    """A figure of the paper; call it inside `style.look()`. One that has nothing to show says what is missing.

    Raises:
        InputError: no figure of that name, or a result file is unreadable.
    """
    sizes = {name: _PAPERS[name] for name in ("mimic3_full", "mimic4_full")}
    earlier_sizes = {name: _PAPERS[name] for name in ("awd_mimic3_full", "awd_mimic4_full")}
    draw: dict[str, Callable[[Grid, PaperValues], Figure]] = {
        "figure_2": partial(
            _labels, ("mimic3_full", "mimic3_few"), MISTRAL, ("single_stage", "plant"), "F2/mimic3_few"
        ),
        "figure_3": _figure_3,
        "figure_4": _figure_4,
        "figure_5": partial(_sizes, sizes, MISTRAL, _LLM),
        "awd_figure_2": partial(
            _labels, ("awd_mimic3_full", "awd_mimic3_few"), AWD, ("awd_laat", "awd_plant"), "awd-F2/mimic3_few"
        ),
        "awd_figure_3": partial(_sizes, earlier_sizes, AWD, _EARLIER),
        "awd_figure_5": partial(_training, "awd_mimic4_full", ("awd_laat_60", "awd_plant_60"), "awd-F5/mimic4_full"),
    }
    if name not in draw:
        raise InputError("paper.items", expected=", ".join(draw), got=repr(name), fix="Correct the name.")
    return draw[name](grid, values)


def _labels(
    datasets: tuple[str, str], backbone: str, systems: tuple[str, str], papers: str, grid: Grid, values: PaperValues
) -> Figure:
    """Two panels, figure 2 of both versions: F1 by frequency of all labels, and F1 of rare labels."""
    whole, few = (label_points(grid, name, backbone, systems) for name in datasets)
    if whole.data.is_empty() and few.data.is_empty():
        return _nothing([whole, few])
    figure = new_figure(PAGE, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=(0.8, 1))
    draw_frequency(left, whole, grid.settings.evaluation.frequency_groups, title=f"a  all labels, {datasets[0]}")
    draw_violins(right, few, values, papers, title=f"b  rare labels, {datasets[1]}")
    return _finish(figure, [whole, few], _RARE.format(*systems))


def _figure_3(grid: Grid, values: PaperValues) -> Figure:
    epochs = epoch_points(grid, "mimic4_full", LLAMA, "macro_f1_all")
    sizes = {metric: size_points(grid, "mimic4_full", MISTRAL, metric) for metric in ("p@5", "p@15")}
    if epochs.data.is_empty() and all(each.data.is_empty() for each in sizes.values()):
        return _nothing([epochs, *sizes.values()])
    figure = new_figure(PAGE, 3.1)
    left, right = figure.subplots(1, 2)
    draw_epochs(left, epochs, values, ("mimic4_full", LLAMA), "macro_f1_all")
    draw_sizes(right, sizes, values, ("mimic4_full", MISTRAL), _PAPERS["mimic4_full"])
    return _finish(figure, [epochs, *sizes.values()], f"Left: {_EPOCHS} Right: {_LLM}")


def _figure_4(grid: Grid, values: PaperValues) -> Figure:
    metrics = ("macro_f1_all", "p@15")
    points = {(pair, metric): epoch_points(grid, *pair, metric) for pair in PAIRS for metric in metrics}
    if all(each.data.is_empty() for each in points.values()):
        return _nothing(list(points.values()))
    figure = new_figure(PAGE, 5.2)
    panels = figure.subplots(2, 2)
    for axes, ((pair, metric), each) in zip(panels.flat, points.items(), strict=True):
        draw_epochs(axes, each, values, pair, metric)
    return _finish(figure, list(points.values()), _EPOCHS)


def _sizes(
    papers: Mapping[str, tuple[str, str]], backbone: str, caption: str, grid: Grid, values: PaperValues
) -> Figure:
    """Precision by training size, a panel for each dataset: figure 5, and figure 3 of the earlier version.

    Args:
        papers: dataset -> rows of `values` with the paper's reference points.
    """
    points = {
        name: {metric: size_points(grid, name, backbone, metric) for metric in ("p@5", "p@15")} for name in papers
    }
    every = [each for panel in points.values() for each in panel.values()]
    if all(each.data.is_empty() for each in every):
        return _nothing(every)
    figure = new_figure(PAGE, 3.1)
    for axes, (name, panel) in zip(figure.subplots(1, 2), points.items(), strict=True):
        draw_sizes(axes, panel, values, (name, backbone), papers[name])
    return _finish(figure, every, caption)


def _training(dataset: str, systems: tuple[str, str], papers: str, grid: Grid, values: PaperValues) -> Figure:
    """Two panels, figure 5 of the earlier version: training loss and validation macro-F1 by epoch."""
    points = training_points(grid, dataset, AWD, systems)
    if points.data.is_empty():
        return _nothing([points])
    figure = new_figure(PAGE, 2.6)
    lines = [(name, points.titles[name], LOOK[name]) for name in systems]
    panels = (("loss", "training loss"), ("macro_f1", "macro-F1, validation (×100)"))
    for axes, (column, title) in zip(figure.subplots(1, 2), panels, strict=True):
        draw_curves(axes, points.data, column, lines, named=column == "macro_f1")
        axes.set_title(f"{title}, {dataset}")
        axes.set_xlabel("epoch")
        for cell in values.within(papers).values():
            axes.axvline(float(cell.value), color="black", linewidth=0.7, linestyle=(0, (1, 2)))
    return _finish(figure, [points], _TRAINING)


def _nothing(points: Sequence[Points]) -> Figure:
    return sentence("Not attempted. " + _missing(points, most=4))


def _finish(figure: Figure, points: Sequence[Points], caption: str) -> Figure:
    """Below the panels: how to read them and what is missing. Above: whether the text is synthetic."""
    if any(each.stand_in for each in points):
        figure.suptitle(BANNER, fontsize=6.5, color="#B00000")
    missing = _missing(points, most=2)
    lines = [caption, *([f"Missing: {missing}."] if missing else [])]
    text = "\n".join(line for each in lines for line in textwrap.wrap(each, _LINE))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=6, color="#333333")
    return figure


def _missing(points: Sequence[Points], *, most: int) -> str:
    """The first reasons, and the targets to run."""
    lines = dict.fromkeys(line for each in points for line in each.missing)
    names = list(dict.fromkeys(name for each in points for name in each.to_run))
    shown = [*list(lines)[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]
    if names:
        rest = f" and {len(names) - most} more" if len(names) > most else ""
        shown.append(f"not run yet: target {target(*names[:most])}{rest}")
    return "; ".join(shown)
