"""Panels of the paper's figures: F1 of labels (2), Stage 1 against Stage 2 by epoch (3, 4), precision by size (3, 5).

The points of a panel come from `plant.paper.grid.points`. Hollow black marks are what the paper prints. A place is
item/dataset or item/dataset/row of the transcription.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from plant.paper.figures.labels import HIGH_F1, draw_groups, draw_violin, finish_violins, frequency_groups, share_above
from plant.paper.figures.style import EndLabel, Mark, label_ends, marks
from plant.paper.figures.training import draw_curves
from plant.paper.systems import KIND_COLOURS, Kind, System
from plant.paper.values.transcription import PaperValues
from plant.paper.wording import metric_title

PAPER = "black"
RARE = 10
"""The text counts the labels with fewer documents."""
_PLAIN = FuncFormatter(lambda x, _: f"{x:,.0f}")
_DASHES: dict[Kind, str] = {"planted": "solid", "control": "dotted", "unplanted": "dashed"}
_METRIC_MARKERS = {"p@5": "o", "p@15": "s"}
_PAPER_COLUMNS = {"macro_f1_all": "macro_f1", "p@15": "p@15"}
_DOTTED: dict[str, Any] = {"color": PAPER, "linewidth": 0.7, "linestyle": (0, (1, 2))}
_WITHOUT = Mark(KIND_COLOURS["unplanted"], "o", "dashed", KIND_COLOURS["unplanted"])
_PLANTED = Mark(KIND_COLOURS["planted"], "o", "solid", KIND_COLOURS["planted"])
LOOK = dict.fromkeys(("single_stage", "awd_laat", "awd_laat_60"), _WITHOUT)
LOOK |= dict.fromkeys(("plant", "awd_plant", "awd_plant_60"), _PLANTED)
_MEAN, _SHARE = 123, 170
"""Places of the two columns of numbers, in units of the x axis."""


def draw_frequency(
    axes: Axes, points: pl.DataFrame, *, titles: Mapping[str, str], starts: Sequence[int], dataset: str
) -> None:
    """Mean F1 of the labels of each frequency group. `starts` are the lower ends of the groups, in documents."""
    groups = frequency_groups(points, starts)
    if _begin(axes, groups, f"a  all labels, {dataset}"):
        draw_groups(axes, groups, LOOK, titles, starts, height=2.0)
        axes.set_xlabel("training documents of a label")


def draw_violins(axes: Axes, points: pl.DataFrame, *, values: PaperValues, place: str, dataset: str) -> None:
    """Violins of the F1 of labels, with quartiles and our mean. The paper's mean is a hollow mark and in brackets."""
    axes.set_title(f"b  rare labels, {dataset}")
    rows = list(dict.fromkeys(cell.row for cell in values.within(place).values()))
    for height, row in enumerate(rows):
        cells = values.within(f"{place}/{row}")
        system = cells["mean_f1_text"].system
        own = points.filter(system=system).get_column("f1").drop_nulls().to_numpy()
        if len(own):
            draw_violin(axes, height, own, LOOK[system].ink)
            axes.plot(own.mean(), height, "o", color=LOOK[system].ink, markeredgecolor="white", markersize=5)
        share = cells.get("share_above_0.7")
        _papers(axes, height, own, cells["mean_f1_text"].value, None if share is None else share.value)
    names = [
        f"{row}\n(quoted)" if "PLANT" not in row and "Mistral" not in row else row.replace(" + ", "\n+ ")
        for row in rows
    ]
    finish_violins(axes, names, right=196, columns={"mean": _MEAN, f"share > {HIGH_F1}": _SHARE})
    labels = points.get_column("label").n_unique()
    axes.set_xlabel(f"F1 of {labels} labels\n(test, ×100, mean over seeds)", x=0.27)


def _papers(axes: Axes, row: int, own: np.ndarray, mean: Decimal, share: Decimal | None) -> None:
    """The paper's mean as a hollow mark above ours, and its numbers in brackets after ours."""
    above = row - 0.36 * bool(len(own))
    _hollow(axes, 100 * float(mean), above, size=4.5)
    ours = (f"{own.mean():.1f} ", f"{share_above(own):.1f}% ") if len(own) else ("", "")
    printed = (f"[{100 * mean:.1f}]", "" if share is None else f"[{share:.1f}%]")
    for place, number, papers in zip((_MEAN, _SHARE), ours, printed, strict=True):
        axes.text(place, row, f"{number}{papers}", ha="center", va="center", fontsize=6.5)


def draw_epochs(axes: Axes, points: pl.DataFrame, *, values: PaperValues, place: tuple[str, str], metric: str) -> None:
    """nDCG@k after Stage 1 against a metric after Stage 2. Points are seeds; a line joins the means of one recipe.

    `place` is dataset and backbone. The paper prints nDCG@k after 1 and 10 epochs (item F3) and its full setup (Table
    12).
    """
    if not _begin(axes, points, ", ".join(place)):
        return
    colour = KIND_COLOURS["planted"]
    axes.plot(points["ndcg"], points["value"], "o", color=colour, markersize=3, alpha=0.4, mew=0)
    axes.margins(x=0.1, y=0.18)
    for _, run in points.group_by("recipe", maintain_order=True):
        means = run.group_by("epoch").agg(pl.col("ndcg", "value").mean()).sort("epoch")
        axes.plot(means["ndcg"], means["value"], "o-", color=colour, mec="white")
        for epoch, x, y in means.iter_rows():
            axes.annotate(str(epoch), (x, y), (0, 4), textcoords="offset points", ha="center", fontsize=6, color=colour)
    _paper_epochs(axes, values, place, metric)
    axes.set_xlabel("nDCG@k after Stage 1 (validation)")
    axes.set_ylabel(f"{metric_title(metric)}, test, ×100")


def draw_sizes(
    axes: Axes, points: pl.DataFrame, *, systems: Sequence[System], values: PaperValues, place: tuple[str, str],
    papers: Sequence[str],
) -> None:  # fmt: skip
    """P@5 and P@15 by number of training documents: PLANT solid, without Stage 1 dashed, small points for seeds.

    `place` is dataset and backbone; `papers` are the places of the paper's PLANT and of its system without Stage 1.
    """
    if not _begin(axes, points, ", ".join(place)):
        return
    axes.set_xscale("log")
    look, ends = marks(systems), []
    for metric, marker in _METRIC_MARKERS.items():
        for system in systems:
            own = points.filter(metric=metric, system=system.name)
            mean = own.group_by("documents").agg(pl.col("value").mean()).sort("documents")
            if mean.is_empty():
                continue
            x, y, colour = mean["documents"].to_list(), mean["value"].to_list(), look[system.name].colour
            axes.plot(own["documents"], own["value"], marker, color=colour, markersize=2.5, alpha=0.4, mew=0)
            axes.plot(x, y, marker, linestyle=_DASHES.get(system.kind, "solid"), color=colour, markersize=3.5,
                      markeredgecolor="white", markeredgewidth=0.4)  # fmt: skip
            ends.append(EndLabel(x[-1], y[-1], f"{system.title}, {metric_title(metric)}", look[system.name].ink))
    _paper_sizes(axes, values, papers)
    axes.set_ylim(0, None)
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("training documents")
    axes.set_ylabel("precision (test, ×100)")
    label_ends(axes, ends, height=2.0)


def draw_ranked(axes: Axes, points: pl.DataFrame, *, dataset: str) -> None:
    """Documents of each label by its rank, both on logarithmic axes."""
    if not _begin(axes, points, f"a  labels of {dataset} by rank"):
        return
    axes.loglog(range(1, len(points) + 1), points["documents"], color=KIND_COLOURS["no network"])
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.yaxis.set_major_formatter(_PLAIN)
    axes.set_xlabel("rank of the label")
    axes.set_ylabel("documents, all splits")


def draw_cumulated(axes: Axes, points: pl.DataFrame, *, values: PaperValues, place: str, dataset: str) -> None:
    """The share of labels with fewer documents than x. Hollow: the share with fewer than `RARE` that the text gives."""
    if not _begin(axes, points, f"b  rare labels of {dataset}"):
        return
    sizes = np.unique([*points["documents"], RARE])
    below = [100 * (points["documents"] < size).mean() for size in sizes]
    axes.step(sizes, below, where="pre", color=KIND_COLOURS["no network"])
    axes.axvline(RARE, **_DOTTED)
    cells = values.within(place)
    printed = 100 * float(cells["labels_under_10"].value) / float(cells["labels"].value)
    _hollow(axes, RARE, printed)
    axes.set_xscale("log")
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.set_xlabel("documents of a label, x")
    axes.set_ylabel("labels with fewer than x (%)")


def draw_training(
    axes: Axes, points: pl.DataFrame, *, column: str, titles: Mapping[str, str], title: str, epochs: Sequence[float]
) -> None:
    """A column of the histories by epoch; dotted lines at the epochs that the paper names."""
    lines = [(name, printed, LOOK[name]) for name, printed in titles.items()]
    draw_curves(axes, points, column, lines, named=column == "macro_f1")
    axes.set_title(title)
    axes.set_xlabel("epoch")
    for epoch in epochs:
        axes.axvline(epoch, **_DOTTED)


def _begin(axes: Axes, points: pl.DataFrame, title: str) -> bool:
    """The title of a panel, and whether there is something to draw. A panel without numbers of ours says so."""
    axes.set_title(title)
    if points.is_empty():
        axes.set_axis_off()
        axes.text(0.5, 0.5, "not run yet", ha="center", va="center", transform=axes.transAxes, color="#333333")
    return not points.is_empty()


def _hollow(axes: Axes, x: float, y: float, marker: str = "D", *, size: float = 5) -> None:
    """A number of the paper."""
    axes.plot(x, y, marker, color="none", markeredgecolor=PAPER, markersize=size)


def _paper_epochs(axes: Axes, values: PaperValues, place: tuple[str, str], metric: str) -> None:
    """Dotted lines at the paper's nDCG@k and at its full setup, and a mark where both are known."""
    cells = values.cells.values()
    reported = [float(cell.value) for cell in cells if (cell.item, cell.dataset, cell.backbone) == ("F3", *place)]
    for x in reported:
        axes.axvline(x, **_DOTTED)
    full = float(values.cells[f"T12/{place[0]}/PLANT (full setup)/{_PAPER_COLUMNS[metric]}"].value)
    axes.axhline(full, **_DOTTED)
    if reported:
        _hollow(axes, max(reported), full)


def _paper_sizes(axes: Axes, values: PaperValues, papers: Sequence[str]) -> None:
    """The sizes at which both systems reach the precision that the text names, joined by a line."""
    points = [values.within(row) for row in papers]
    for metric in _METRIC_MARKERS:
        x = [float(cells[f"documents_for_{metric}"].value) for cells in points]
        y = [100 * float(cells[metric].value) for cells in points]
        axes.plot(x, y, **_DOTTED)
        for mark, x_of, y_of in zip("Ds", x, y, strict=True):
            _hollow(axes, x_of, y_of, mark, size=4.5)
        middle = math.sqrt(x[0] * x[-1])
        axes.annotate(f"paper {metric_title(metric)}", (middle, y[0]), (0, 3.5), textcoords="offset points",
                      ha="center", va="bottom", fontsize=5.8, color="#333333")  # fmt: skip
