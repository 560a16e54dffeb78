"""Attention over the words of a few documents, planted and random side by side."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plant.paper.experiment.attention import UNDERLINED, Panel, Reading
from plant.paper.figures.style import PAGE, new_figure, sentence
from plant.paper.systems import KIND_COLOURS

_POINTS = 6.2
"""Size of the fixed-width type; a character is 0.602 of it wide in DejaVu Sans Mono."""
_LINE = 1.55 * _POINTS
_MARGIN, _FOOT = 0.08, 0.2
"""Beside the panels and below them, inches."""


def attention_figure(
    readings: Sequence[Reading], *, reason: str = "No attention was recorded.", mark: str = ""
) -> Figure:
    """One row for each document, one panel for each system. Shade is attention weight; tokens of T_l are underlined.

    The shade of a row is linear, from 0 to the largest weight of its panels.

    Args:
        readings: as `plant.paper.experiment.attention.readings` returns them.
        reason: printed if there are no readings.
        mark: printed in red below, if not everybody may see the text.
    """
    if not readings:
        return sentence(reason)
    columns = max(len(reading.panels) for reading in readings)
    width = PAGE / columns - 2 * _MARGIN
    characters = int(width * 72 / (0.602 * _POINTS))
    layouts = [_lines(reading, characters) for reading in readings]
    heights = [0.45 + (max(line for line, _ in layout) + 1) * _LINE / 72 for layout in layouts]
    whole = sum(heights) + _FOOT
    figure = new_figure(PAGE, whole)
    figure.set_layout_engine("none")
    figure.text(
        _MARGIN / PAGE, 0.06 / whole, "Shade: attention weight after Stage 2, linear from 0 to the largest of the row. "
        f"Underlined: the document's {UNDERLINED} most relevant tokens.", fontsize=5.6, color="#333333",
    )  # fmt: skip
    if mark:
        figure.text(
            1 - _MARGIN / PAGE, 0.06 / whole, mark, fontsize=5.6, fontweight="bold", color="#b00020", ha="right"
        )
    top = whole
    for reading, layout, height in zip(readings, layouts, heights, strict=True):
        top -= height
        for column, panel in enumerate(reading.panels):
            box = (column / columns + _MARGIN / PAGE, top / whole, width / PAGE, height / whole)
            axes = figure.add_axes(box)
            _panel(axes, reading, panel, layout, width * 72, height * 72)
    return figure


def _panel(
    axes: Axes, reading: Reading, panel: Panel, layout: list[tuple[int, int]], width: float, height: float
) -> None:
    """Draw in points: x from the left, y from the top."""
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    part = reading.excerpt()
    axes.text(
        0, 4, f"{panel.system.title}", fontsize=7.5, fontweight="bold", va="top", color=KIND_COLOURS[panel.system.kind]
    )
    cut = (
        f", {100 * float(panel.weights[part].sum()):.0f}% shown" if part.stop - part.start < len(panel.weights) else ""
    )
    axes.text(
        0, 14, f"document {reading.document}, label {reading.label}: probability {panel.probability:.2f}; largest "
        f"weight {panel.weights.max():.2f}{cut}", fontsize=5.6, va="top", color="#333333",
    )  # fmt: skip
    step = 0.602 * _POINTS
    pieces = reading.pieces[part]
    for index, (piece, (line, column)) in enumerate(zip(pieces, layout, strict=True), start=part.start):
        text = piece.lstrip()
        x, y = column * step, 30 + line * _LINE
        share = float(panel.weights[index]) / reading.largest
        axes.add_patch(
            Rectangle((x - 0.3, y - 0.75 * _LINE), len(text) * step + 0.6, _LINE * 0.95, linewidth=0,
                      facecolor=KIND_COLOURS[panel.system.kind], alpha=0.75 * share)
        )  # fmt: skip
        axes.text(x, y, text, fontsize=_POINTS, family="DejaVu Sans Mono", va="baseline")
        if reading.relevant[index]:
            axes.plot([x, x + len(text) * step], [y + 1.6] * 2, color="black", linewidth=0.6)


def _lines(reading: Reading, characters: int) -> list[tuple[int, int]]:
    """(line, column) of every piece of the excerpt; lines break between words."""
    pieces = reading.pieces[reading.excerpt()]
    line = column = 0
    places = []
    for index, piece in enumerate(pieces):
        starts_word = piece.startswith(" ")
        end = next((i for i in range(index + 1, len(pieces)) if pieces[i].startswith(" ")), len(pieces))
        word = sum(len(part.lstrip()) for part in pieces[index:end])
        if starts_word and column:
            column += 1
            if column + word > characters:
                line, column = line + 1, 0
        elif column + len(piece.lstrip()) > characters:
            line, column = line + 1, 0
        places.append((line, column))
        column += len(piece.lstrip())
    return places
