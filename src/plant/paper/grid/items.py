"""The paper's tables and figures by name, cell by cell beside ours, from whatever has run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from plant.ground.files import write_text
from plant.ground.settings import Item, Settings
from plant.paper.figures.grid import grid_figure
from plant.paper.figures.style import look, save
from plant.paper.grid.cost import write_costs
from plant.paper.grid.results import Grid
from plant.paper.grid.tables import build_sheet, to_frame, to_page, to_tex
from plant.paper.grid.words import word_table
from plant.paper.inputs import Inputs
from plant.paper.render import to_csv, to_longtable, to_markdown
from plant.paper.values.transcription import load_values

WORDS = "awd_table_11"
"""The only table of words; the others have numbers."""


def needs(item: Item, settings: Settings) -> tuple[list[str], list[str]]:
    """(experiments, datasets) that an item is made from: what it asks of a grid in which nothing has run."""
    grid = Grid(settings, {})
    if "figure_" in item:
        with look():
            grid_figure(item, grid, load_values())
    elif item == WORDS:
        word_table(grid, load_values())
    else:
        build_sheet(item, grid, load_values())
    return list(grid.experiments), list(grid.datasets)


def write_item(item: Item | Literal["cost"], settings: Settings, paths: Mapping[str, Inputs], folder: Path) -> None:
    """Write a table or a figure of the paper, or the table of what everything cost.

    Args:
        item: of `settings.Item`, such as "table_2", "figure_2" or "awd_table_2" (earlier version), or "cost".
        settings: the whole config; datasets, backbones and variants are matched with values.yaml by name.
        paths: experiment -> where its results are, or will be.
        folder: gets `tables/{item}.{csv,md,tex}` or `figures/{item}.{pdf,png}`.

    Raises:
        InputError: no such item, or a result file that is there is unreadable.
    """
    if item == "cost":
        write_costs(settings, folder)
        return
    grid, values, log = Grid(settings, paths), load_values(), logging.getLogger("plant")
    if "figure_" in item:
        with look():
            save(grid_figure(item, grid, values), Path(folder) / "figures" / item)
        log.info("%s: %s", item, Path(folder) / "figures" / f"{item}.png")
        return
    if item == WORDS:
        table = word_table(grid, values)
        texts = {"csv": to_csv(table.data), "md": to_markdown(table), "tex": to_longtable(table, table.title)}
        _write(texts, item, folder)
        return
    sheet = build_sheet(item, grid, values)
    _write({"csv": to_csv(to_frame(sheet)), "md": to_page(sheet), "tex": to_tex(sheet)}, item, folder)
    for line in (*([sheet.banner] if sheet.banner else []), *sheet.summary):
        log.info("%s: %s", item, line)


def _write(texts: Mapping[str, str], item: Item, folder: Path) -> None:
    for kind, text in texts.items():
        write_text(Path(folder) / "tables" / f"{item}.{kind}", text)
    logging.getLogger("plant").info("%s: %s", item, Path(folder) / "tables" / f"{item}.md")
