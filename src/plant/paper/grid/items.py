"""The paper's tables and figures by name, cell by cell beside ours, from whatever has run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from plant.ground.files import write_text
from plant.ground.settings import Item, Settings
from plant.paper.costs import write_costs
from plant.paper.figures.grid import grid_figure
from plant.paper.figures.style import look, save
from plant.paper.grid.results import Grid
from plant.paper.grid.tables import Sheet, build_sheet, to_frame, to_page, to_tex
from plant.paper.grid.words import word_table
from plant.paper.inputs import Inputs
from plant.paper.render import Table, to_csv, to_longtable, to_markdown
from plant.paper.values.transcription import load_values

WORDS = "awd_table_11"
"""The only table of words; the others have numbers."""


def needs(item: Item, settings: Settings) -> tuple[list[str], list[str]]:
    """(experiments, datasets) that an item is made from: what it asks of a grid in which nothing has run."""
    grid = Grid(settings, {})
    with look():
        _make(item, grid)
    return list(grid.experiments), list(grid.datasets)


def write_item(item: Item | Literal["cost"], settings: Settings, paths: Mapping[str, Inputs], folder: Path) -> None:
    """Write a table or a figure of the paper, or the table of what everything cost.

    Args:
        item: of `settings.Item`, such as "table_2", "figure_2" or "awd_table_2" (earlier version), or "cost".
        settings: the whole config; datasets, backbones and variants are matched with values.yaml by name.
        paths: experiment -> where its results are, or will be.
        folder: gets `tables/{item}.{csv,md,tex}` or `figures/{item}.{pdf,png}`.
    """
    folder = Path(folder)  # the workflow passes a text
    if item == "cost":
        write_costs(settings, folder)
        return
    log = logging.getLogger("plant")
    with look():
        made = _make(item, Grid(settings, paths))
        if isinstance(made, Figure):
            save(made, folder / "figures" / item)
            log.info("%s: %s", item, folder / "figures" / f"{item}.png")
            return
    said: tuple[str, ...] = ()
    if isinstance(made, Table):
        texts = {"csv": to_csv(made.data), "md": to_markdown(made), "tex": to_longtable(made, made.title)}
    else:
        texts = {"csv": to_csv(to_frame(made)), "md": to_page(made), "tex": to_tex(made)}
        said = (*([made.banner] if made.banner else []), *made.summary)
    for kind, text in texts.items():
        write_text(folder / "tables" / f"{item}.{kind}", text)
    for line in (folder / "tables" / f"{item}.md", *said):
        log.info("%s: %s", item, line)


def _make(item: Item, grid: Grid) -> Figure | Table | Sheet:
    """A figure, the table of words, or a table of numbers. Call it inside `style.look()`."""
    if "figure_" in item:
        return grid_figure(item, grid, load_values())
    return word_table(grid, load_values()) if item == WORDS else build_sheet(item, grid, load_values())
