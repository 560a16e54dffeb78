"""One look for all figures, and saving them so that the same numbers give the same bytes.

matplotlib's settings are in style.yaml. They turn formulas off: a dollar sign in a label or a word is a dollar sign.
The hue shows the kind of a system; lightness and marker show which one it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.transforms import offset_copy
from scipy.optimize import isotonic_regression

from plant.ground.files import atomic_path
from plant.paper.inputs import read_yaml
from plant.paper.systems import KIND_COLOURS, Kind, System

COLUMN, PAGE = 3.5, 7.0
"""Width of one column and of a page, inches."""
_MARKERS: dict[Kind, str] = {"planted": "osX", "control": "^vP", "unplanted": "s<>", "no network": "DdX"}
_TINTS = (0.0, 0.35, 0.55)
_DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1.5, 1)))
MANY = 8
"""The largest number of systems whose lines can be told apart. Of more systems only the leading ones have a colour."""
_REST = "#C4C4C4"
FALLBACKS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "Microsoft YaHei", "Hiragino Sans")
"""Fonts for signs that the font of style.yaml lacks, such as Chinese ones. Those that the machine has are used."""
_SETTINGS = Path(__file__).with_name("style.yaml")


@dataclass(frozen=True)
class Mark:
    """How a system is drawn, in every figure."""

    colour: str
    marker: str
    dash: Any
    ink: str
    """Colour of text: the hue without the tint, as a tint is too pale to read."""
    named: bool = True
    """False for a grey mark in the background."""


def marks(systems: Sequence[System], leading: Collection[str] | None = None) -> dict[str, Mark]:
    """System name -> its mark: the hue of its kind, a tint and a marker of its own among three of a kind.

    Args:
        systems: the last one is the reference and has the full hue.
        leading: names of those that keep their colour if there are more than `MANY` systems. The others are grey.
    """
    counts: dict[Kind, int] = {}
    look_of = {}
    for system in [*systems[-1:], *systems[:-1]]:
        if leading is not None and len(systems) > MANY and system.name not in leading:
            look_of[system.name] = Mark(_REST, "", "solid", _REST, named=False)
            continue
        place = counts.get(system.kind, 0) % len(_TINTS)
        counts[system.kind] = counts.get(system.kind, 0) + 1
        colour = _lighter(KIND_COLOURS[system.kind], _TINTS[place])
        look_of[system.name] = Mark(colour, _MARKERS[system.kind][place], _DASHES[place], KIND_COLOURS[system.kind])
    return look_of


def rest_note(look: Iterable[Mark]) -> str:
    """What the grey marks are, for the axis label; empty without grey marks."""
    grey = sum(not mark.named for mark in look)
    return f"\ngrey: {grey} other systems, all in the table" if grey else ""


def _lighter(colour: str, share: float) -> str:
    """Mix a colour with white.

    >>> _lighter("#000000", 0.5)
    '#808080'
    """
    return to_hex([channel + (1 - channel) * share for channel in to_rgb(colour)])


@contextmanager
def look() -> Iterator[None]:
    """The style inside the block. After it matplotlib's settings are as before."""
    settings, installed = read_yaml(_SETTINGS), {font.name for font in fontManager.ttflist}
    families = [settings["font.family"], *(name for name in FALLBACKS if name in installed)]
    with mpl.rc_context(settings | {"font.family": families}):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that belongs to no global state, sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def width_for(systems: Sequence[System], width: float) -> float:
    """`width` in inches, and room for the letters of the longest title beyond 25.

    >>> width_for([System("a", "PLANT", "planted"), System("b", 35 * "x", "planted")], 3.5)
    4.1
    """
    return width + 0.06 * max(0, max(len(system.title) for system in systems) - 25)


def save(figure: Figure, target: Path, kinds: Sequence[str] = ("pdf", "png")) -> None:
    """Write `target`.pdf and `target`.png, or one of them, without dates and names of programs."""
    nothing: dict[str, dict[str, Any]] = {
        "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
        "png": {"Software": None},
    }
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, for both files
    for kind in kinds:
        with atomic_path(target.with_name(f"{target.name}.{kind}")) as partial:
            figure.savefig(partial, format=kind, metadata=nothing[kind])


def sentence(text: str) -> Figure:
    """A figure that says why there is none."""
    figure = new_figure(COLUMN, 1.0)
    figure.text(0.5, 0.5, text, ha="center", va="center", wrap=True, color="#333333")
    return figure


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Move labels apart until neighbours are at least `gap` from each other, with the least sum of squared moves.

    After i * gap is subtracted from the i-th lowest label, this is isotonic regression.

    >>> spread([0.0, 0.25, 5.0], 1.0)
    [-0.375, 0.625, 5.0]
    """
    order = np.argsort(positions, kind="stable")
    steps = gap * np.arange(len(order))
    moved = np.empty(len(order))
    moved[order] = isotonic_regression(np.asarray(positions, dtype=float)[order] - steps).x + steps
    return [float(place) for place in moved]


@dataclass(frozen=True)
class EndLabel:
    """A name beside the end of a line, instead of a legend."""

    x: float
    y: float
    text: str
    colour: str
    sign: Mark | None = None
    """Of the line, drawn before the name: labels that were moved apart no longer lie beside their ends."""


def label_ends(axes: Axes, labels: Sequence[EndLabel], *, height: float) -> None:
    """Write the labels to the right of the rightmost end, moved apart so that none overlap.

    Args:
        height: of the axes, inches; the axis limits must be final.
    """
    if not labels:
        return
    low, high = axes.get_ylim()
    gap = (high - low) * 8.5 / (72 * height)  # 8.5 points a line of text
    right = max(label.x for label in labels)
    for label, y in zip(labels, spread([label.y for label in labels], gap), strict=True):
        sign = label.sign
        axes.annotate(
            label.text, xy=(right, y), xytext=(12 if sign else 5, 0), textcoords="offset points", va="center",
            fontsize=6.5, color=label.colour, annotation_clip=False,
        )  # fmt: skip
        if sign and (figure := axes.get_figure(root=True)):
            place = offset_copy(axes.transData, figure, x=7, units="points")
            point = Line2D([right], [y], marker=sign.marker, color=sign.colour, markersize=3.5, transform=place)
            figure.add_artist(point)
