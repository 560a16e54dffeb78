"""Figure 2: mean F1 by label frequency (our counterpart of 2a), and F1 of single rare labels as violins (2b)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from matplotlib.axes import Axes

from plant.paper.figures.labels import HIGH_F1, draw_groups, draw_violin, finish_violins, frequency_groups, share_above
from plant.paper.figures.style import Mark, empty
from plant.paper.grid.points import Points
from plant.paper.systems import KIND_COLOURS
from plant.paper.values.transcription import Values

_WITHOUT = Mark(KIND_COLOURS["unplanted"], "o", "dashed", KIND_COLOURS["unplanted"])
_PLANTED = Mark(KIND_COLOURS["planted"], "o", "solid", KIND_COLOURS["planted"])
LOOK = {"single_stage": _WITHOUT, "plant": _PLANTED, "awd_laat": _WITHOUT, "awd_plant": _PLANTED,
        "awd_laat_60": _WITHOUT, "awd_plant_60": _PLANTED}  # fmt: skip
_MEAN, _SHARE = 123, 170
"""Places of the two columns of numbers, in units of the x axis."""


def draw_frequency(axes: Axes, points: Points, starts: Sequence[int], *, title: str) -> None:
    """Mean F1 of the labels of each frequency group.

    Args:
        axes: to draw on.
        points: as `label_points` returns them.
        starts: lower ends of the groups, by training documents.
        title: of the panel.
    """
    axes.set_title(title)
    groups = frequency_groups(points.data, starts)
    if groups.is_empty():
        empty(axes)
        return
    draw_groups(axes, groups, LOOK, points.titles, starts, height=2.0)
    axes.set_xlabel("training documents of a label")


def draw_violins(axes: Axes, points: Points, values: Values, place: str, *, title: str) -> None:
    """Violins of the F1 of labels, with quartiles and our mean. The paper's mean is a hollow mark and in brackets.

    Args:
        axes: to draw on.
        points: as `label_points` returns them.
        values: the paper's numbers.
        place: item/dataset of those of the figure: mean F1, and the share of labels above HIGH_F1 if it is printed.
        title: of the panel.
    """
    axes.set_title(title)
    rows = list(dict.fromkeys(cell.row for cell in values.within(place).values()))
    for height, row in enumerate(rows):
        cells = values.within(f"{place}/{row}")
        system = cells["mean_f1_text"].system
        own = points.data.filter(system=system).get_column("f1").drop_nulls().to_numpy()
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
    labels = points.data.get_column("label").n_unique()
    axes.set_xlabel(f"F1 of {labels} labels\n(test, ×100, mean over seeds)", x=0.27)


def _papers(axes: Axes, row: int, own: np.ndarray, mean: Decimal, share: Decimal | None) -> None:
    """The paper's mean as a hollow mark above ours, and its numbers in brackets after ours."""
    above = row - 0.36 * bool(len(own))
    axes.plot(100 * float(mean), above, "D", color="none", markeredgecolor="black", markersize=4.5)
    ours = (f"{own.mean():.1f} ", f"{share_above(own):.1f}% ") if len(own) else ("", "")
    printed = (f"[{100 * mean:.1f}]", "" if share is None else f"[{share:.1f}%]")
    for place, number, papers in zip((_MEAN, _SHARE), ours, printed, strict=True):
        axes.text(place, row, f"{number}{papers}", ha="center", va="center", fontsize=6.5)
