"""The page `attention_page_<experiment>`: texts shaded by attention at each point of training, beside relevance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plant.ground.files import write_text
from plant.ground.settings import Settings
from plant.paper.attention.pairs import POINT_TITLES
from plant.paper.experiment.attention import spaced
from plant.paper.inputs import read_table
from plant.paper.render import template
from plant.paper.systems import list_systems

COLUMNS = ("document_id", "label", "position", "token", "relevance", "marked", *POINT_TITLES)
LONGEST = 600
"""Tokens of a document that are shown. Of a longer one it is the part with the most attention of all panels."""
FAINT = 0.03
"""A shade below this is left out: the text is plain."""


@dataclass(frozen=True)
class Panel:
    """A text with one shade for each piece, between 0 and 1; the largest weight of the panel has 1."""

    title: str
    shades: tuple[float, ...]
    detail: str


@dataclass(frozen=True)
class View:
    """A document and one of its labels."""

    document: str
    label: str
    pieces: tuple[str, ...]
    marked: tuple[bool, ...]
    cut: bool
    panels: tuple[Panel, ...]


def write_attention_page(settings: Settings, experiment: str, tables: Mapping[str, Path], target: Path) -> None:
    """Write one HTML file that needs nothing else. It holds texts.

    Args:
        settings: the config.
        experiment: name of the experiment.
        tables: system -> attention_points.parquet of one seed.
        target: the file.

    Raises:
        InputError: a table is missing or damaged.
    """
    systems = {system.name: system.title for system in list_systems(settings, settings.experiments[experiment])}
    read = {systems[name]: read_table(Path(path), COLUMNS) for name, path in tables.items()}
    page = template(__package__, "page.html.j2", zip=zip, faint=FAINT)
    views = list(_views(read))
    has_marks = any(any(view.marked) for view in views)
    write_text(target, page.render(experiment=experiment, views=views, has_marks=has_marks))


def _views(tables: Mapping[str, pl.DataFrame]) -> Iterator[View]:
    """The documents and labels that all systems have read alike, in the order of the first system."""
    first = next(iter(tables.values()))
    for document, label in first.select("document_id", "label").unique(maintain_order=True).rows():
        own = {title: each.filter(document_id=document, label=label).sort("position") for title, each in tables.items()}
        text = next(iter(own.values()))
        own = {title: each for title, each in own.items() if each["token"].equals(text["token"])}
        weights = {
            f"{title}: {name}": each[point].to_numpy()
            for title, each in own.items()
            for point, name in POINT_TITLES.items()
        }
        part = _excerpt(np.sum(list(weights.values()), axis=0))
        panels = [
            _panel("Relevance (MIG) of the token for the label", text["relevance"].to_numpy(), part, of="relevance")
        ]
        panels += [_panel(title, values, part, of="attention") for title, values in weights.items()]
        marked = text["marked"].fill_null(False).to_list()[part]
        pieces = spaced(text["token"].to_list())[part]
        yield View(document, label, pieces, tuple(marked), len(pieces) < text.height, tuple(panels))


def _excerpt(total: np.ndarray) -> slice:
    """The `LONGEST` tokens in a row with the largest sum."""
    if len(total) <= LONGEST:
        return slice(0, len(total))
    first = int(np.argmax(np.convolve(total, np.ones(LONGEST), mode="valid")))
    return slice(first, first + LONGEST)


def _panel(title: str, values: np.ndarray, part: slice, *, of: str) -> Panel:
    largest = float(values.max())
    shown = values[part] / largest if largest > 0 else np.zeros(len(values[part]))
    detail = f"largest {of} {largest:.3f}"
    if of == "attention" and len(shown) < len(values):
        detail += f", {100 * float(values[part].sum()):.0f} % of the attention is shown"
    return Panel(title, tuple(round(float(shade), 2) for shade in shown), detail)
