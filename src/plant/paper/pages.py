"""The one writer of pages: tables, a figure, and a Markdown page that shows both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from plant.ground.files import write_text
from plant.paper.figures.style import look, save
from plant.paper.render import Table, template, to_markdown, write_table


def write_page(
    folder: Path,
    tables: Sequence[Table],
    figures: dict[str, Callable[[], Figure]],
    package: str,
    name: str,
    **values: Any,
) -> None:
    """Write tables/*.{csv,md,tex}, figures/*.{pdf,png} and page.md into a folder.

    Args:
        figures: name -> the function that draws it.
        package: name of the package with the template of the page.
        name: of the template. It gets `tables`, `markdown` (a table as Markdown) and `zip`.
        values: what the template prints beside the tables.
    """
    for table in tables:
        write_table(table, Path(folder) / "tables")
    with look():
        for figure, draw in figures.items():
            save(draw(), Path(folder) / "figures" / figure)
    page = template(package, name, zip=zip).render(tables=tables, markdown=to_markdown, **values)
    write_text(Path(folder) / "page.md", f"{page.rstrip()}\n")
