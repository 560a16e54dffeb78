"""The tables and figures of an experiment, in the order of its report.

To add one, write the function that makes it in a module of `plant.paper.experiment` or `plant.paper.figures`, and its
entry below the function: a ReportTable or a ReportFigure with literal values. The files that the workflow declares, the
report with its contents, the notes below a table and the captions follow from the entry.

The Snakefile reads the entries at every start. So they are read from the source: nothing here imports polars or
matplotlib.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

Section = Literal["results", "rare", "stages", "attention", "corpus", "costs", "choices", "provenance"]
SECTIONS: dict[Section, str] = {
    "results": "Results",
    "rare": "Rare labels",
    "stages": "The two stages",
    "attention": "Attention",
    "corpus": "Corpus",
    "costs": "Costs",
    "choices": "Method choices",
    "provenance": "Provenance",
}
"""Sections of the report, with their titles."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A table or a figure of an experiment."""

    name: str
    """Name of its files."""
    function: str
    """Name of the function in the entry's module. It gets the ExperimentData and returns a Table or a Figure."""
    section: Section
    place: int
    """Its place in the section, from 1."""
    heading: str
    """Its name in the contents of the report."""
    caption: str
    """What it shows. The report of Snakemake prints it beside the file, and our report below a figure."""
    module: str = ""
    """Import path of the entry's module. `contents` fills it in."""

    def load(self) -> Callable[..., Any]:
        """The function; imports its module."""
        return getattr(import_module(self.module), self.function)


@dataclass(frozen=True, kw_only=True)
class ReportTable(Part):
    """A table, written as .csv (long, full precision), .md and .tex.

    `title` and `notes` are Jinja templates. They can use `data` (ExperimentData), `statistics` (the section of the
    config), `level` (of the intervals), `alpha` (of the tests), and the `values` of the Table.
    """

    title: str
    notes: str = ""
    """A paragraph is a note. A note that its conditions leave empty is left out."""
    folded: bool = False
    """Whether the report shows it only when its heading is clicked."""


@dataclass(frozen=True, kw_only=True)
class ReportFigure(Part):
    """A figure, written as .pdf and .png. One with nothing to show says why."""

    alt: str
    """For readers who cannot see it."""
    wide: bool = False
    """Whether it keeps its width on a narrow screen, where it can be scrolled."""


PACKAGES = ("plant.paper.experiment", "plant.paper.figures")
"""The modules of these packages have the entries."""


@cache
def contents() -> tuple[Part, ...]:
    """All tables and figures, in the order of the report. They are read from the source and no module is imported."""
    parts = (
        part
        for package in PACKAGES
        for folder in getattr(find_spec(package), "submodule_search_locations", None) or ()
        for path in sorted(Path(folder).glob("*.py"))
        for part in _entries(f"{package}.{path.stem}", path)
    )
    return tuple(sorted(parts, key=lambda part: (list(SECTIONS).index(part.section), part.place)))


def _entries(module: str, source: Path) -> Iterator[Part]:
    """The entries of a module: its assignments of a ReportTable or a ReportFigure, with literal values."""
    kinds = {kind.__name__: kind for kind in (ReportTable, ReportFigure)}
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        called = node.value.func
        if isinstance(called, ast.Name) and called.id in kinds:
            values = {str(each.arg): ast.literal_eval(each.value) for each in node.value.keywords}
            yield kinds[called.id](module=module, **values)


def report_tables() -> dict[str, ReportTable]:
    """Name -> table."""
    return {part.name: part for part in contents() if isinstance(part, ReportTable)}


def report_figures() -> dict[str, ReportFigure]:
    """Name -> figure."""
    return {part.name: part for part in contents() if isinstance(part, ReportFigure)}
