"""The page `attention_page_<experiment>`: texts shaded by attention at each point of training, beside relevance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.ground.files import write_text
from plant.ground.settings import Settings
from plant.paper.attention.pairs import POINT_TITLES
from plant.paper.experiment.attention import heaviest, spaced
from plant.paper.inputs import read_table
from plant.paper.render import template
from plant.paper.systems import list_systems

COLUMNS = ("document_id", "label", "position", "token", "relevance", "marked", *POINT_TITLES)
FAINT = 0.03
"""A shade below this is left out: the text is plain."""


def write_attention_page(settings: Settings, experiment: str, tables: Mapping[str, Path], target: Path) -> None:
    """Write one HTML file that needs nothing else. It holds texts.

    Args:
        tables: system -> attention_points.parquet of one seed.
    """
    systems = {system.name: system.title for system in list_systems(settings, settings.experiments[experiment])}
    views = list(_views({systems[name]: read_table(Path(path), COLUMNS) for name, path in tables.items()}))
    has_marks = any(any(view["marked"]) for view in views)
    page = template(__package__, "page.html.j2", zip=zip, faint=FAINT)
    write_text(target, page.render(experiment=experiment, views=views, has_marks=has_marks))


def _views(tables: Mapping[str, pl.DataFrame]) -> Iterator[dict[str, Any]]:
    """The documents and labels that all systems have read alike, in the order of the first system: one text, and panels
    with a shade between 0 and 1 for each piece. The largest weight of a panel has 1."""
    first = next(iter(tables.values()))
    for document, label in first.select("document_id", "label").unique(maintain_order=True).rows():
        own = {title: each.filter(document_id=document, label=label).sort("position") for title, each in tables.items()}
        text = next(iter(own.values()))
        weights = {
            f"{title}: {name}": each[point].to_numpy()
            for title, each in own.items() if each["token"].equals(text["token"])
            for point, name in POINT_TITLES.items()
        }  # fmt: skip
        part = heaviest(list(weights.values()))
        relevance = _panel(
            "Relevance (MIG) of the token for the label", text["relevance"].to_numpy(), part, "relevance"
        )
        pieces = spaced(text["token"].to_list())[part]
        yield {
            "document": document, "label": label, "pieces": pieces, "cut": len(pieces) < text.height,
            "marked": text["marked"].fill_null(False).to_list()[part],
            "panels": [relevance, *(_panel(title, values, part, "attention") for title, values in weights.items())],
        }  # fmt: skip


def _panel(title: str, values: np.ndarray, part: slice, what: str) -> dict[str, Any]:
    largest = float(values.max())
    shown = values[part] / largest if largest > 0 else np.zeros(len(values[part]))
    detail = f"largest {what} {largest:.3f}"
    if what == "attention" and len(shown) < len(values):
        detail += f", {100 * float(values[part].sum()):.0f} % of the attention is shown"
    return {"title": title, "shades": [round(float(shade), 2) for shade in shown], "detail": detail}
