"""The one writer of tables: CSV, Markdown and LaTeX (booktabs) from the same cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from plant.ground.files import write_text
from plant.paper.wording import ARROWS, MINUS
from plant.statistics.significance import Arrow

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", MINUS: "$-$",
    "±": r"$\pm$", "×": r"$\times$", "–": "--", "≥": r"$\geq$", "≤": r"$\leq$", "†": r"\textsuperscript{\dag}",
    "‡": r"\textsuperscript{\ddag}", "▲": r"\textsuperscript{$\blacktriangle$}",
    "▼": r"\textsuperscript{$\blacktriangledown$}",
})  # fmt: skip


def template(package: str, name: str, **functions: Any) -> jinja2.Template:
    """A template in the folder of a package, which may use `functions`. One for HTML escapes what it prints."""
    environment = _environment(loader=jinja2.PackageLoader(package, ""), autoescape=name.endswith(".html.j2"))
    environment.globals.update(functions)
    return environment.get_template(name)


def render_text(text: str, values: Mapping[str, Any]) -> str:
    """A text with what stands in its braces."""
    return _environment().from_string(text).render(values)


_environment = partial(jinja2.Environment, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@dataclass(frozen=True)
class TableCell:
    """`main` arrow `detail`, as in "14.7▲ (+1.2, [0.6, 1.8])"."""

    main: str
    arrow: Arrow = ""
    detail: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """The content of a table, the same for all formats. The first column names the row.

    A table of an experiment gets name, title and notes from its entry in `plant.paper.contents`.
    """

    name: str = ""
    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[TableCell, ...], ...] = ()
    data: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Content of the CSV: long form, numbers at full precision."""
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the notes of an entry of `plant.paper.contents` print."""
    rules: tuple[int, ...] = ()
    """Rows with a line above them."""
    text_columns: int = 1
    """The first columns, which hold text and are set flush left."""
    stacked: bool = False
    """True: LaTeX sets the detail of a cell below its main text, so that many columns fit a page."""


def row_of(*cells: TableCell | str) -> tuple[TableCell, ...]:
    """A row of a table. A plain text is a cell with a main text only."""
    return tuple(TableCell(cell) if isinstance(cell, str) else cell for cell in cells)


def breaks(groups: Sequence[object]) -> tuple[int, ...]:
    """Rows at which another group begins, for `Table.rules`.

    >>> breaks(["a", "a", "b", "a"])
    (2, 3)
    """
    return tuple(place for place, (before, group) in enumerate(pairwise(groups), start=1) if group != before)


def to_csv(frame: pl.DataFrame) -> str:
    """CSV that is safe to open in a spreadsheet: a text that looks like a formula gets a `'` before it.

    >>> to_csv(pl.DataFrame({"label": ["=1+1", "-0.5", "a"]}))
    "label\\n'=1+1\\n-0.5\\na\\n"
    """
    text = pl.col(pl.String)
    formula = text.str.contains(r"^[=+\-@\t\r]") & text.cast(pl.Float64, strict=False).is_null()
    return frame.with_columns(pl.when(formula).then("'" + text).otherwise(text).name.keep()).write_csv()


def to_markdown(table: Table) -> str:
    """Pipe table with the notes as a list below."""
    numbers = len(table.columns) - table.text_columns
    dashes = ["---"] * table.text_columns + ["---:"] * numbers
    rows = [map(markdown_escape, table.columns), dashes, *(map(_markdown_cell, row) for row in table.rows)]
    lines = [f"**{table.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
    lines += ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def write_table(table: Table, folder: Path) -> None:
    """Write {name}.csv, {name}.md and {name}.tex into `folder`."""
    for kind, text in (("csv", to_csv(table.data)), ("md", to_markdown(table)), ("tex", to_latex(table))):
        write_text(Path(folder) / f"{table.name}.{kind}", text)


def to_latex(table: Table) -> str:
    r"""A `table*` for \input, never larger than a page. It needs adjustbox, amssymb and booktabs."""
    cell = (
        r"\shortstack[r]{{{main}\\ {{\scriptsize {detail}}}}}" if table.stacked else r"{main} {{\scriptsize {detail}}}"
    )
    notes = [r"\par\smallskip\raggedright\footnotesize " + " ".join(map(latex_escape, table.notes))]
    return "\n".join([
        r"% needs \usepackage{adjustbox,amssymb,booktabs}",
        r"\begin{table*}[t]",
        r"\centering",
        rf"\caption{{{latex_escape(table.title)}}}",
        rf"\label{{tab:{table.name}}}",
        r"\begin{adjustbox}{max width=\textwidth, max totalheight=.85\textheight}",
        rf"\begin{{tabular}}{{{_latex_columns(table)}}}",
        r"\toprule",
        _latex_head(table),
        r"\midrule",
        *_latex_body(table, cell),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        *(notes if table.notes else []),
        r"\end{table*}",
    ]) + "\n"  # fmt: skip


def to_longtable(table: Table, caption: str) -> str:
    """A `longtable`, which may break over pages. It needs amssymb, booktabs and longtable."""
    head = _latex_head(table)
    return "\n".join([
        rf"\begin{{longtable}}{{{_latex_columns(table)}}}",
        rf"\caption{{{latex_escape(caption)}}}\label{{tab:{table.name}}}\\",
        r"\toprule", head, r"\midrule", r"\endfirsthead",
        r"\toprule", head, r"\midrule", r"\endhead",
        r"\bottomrule", r"\endfoot",
        *_latex_body(table, r"\shortstack[r]{{{main}\\ {detail}}}"),
        r"\end{longtable}",
    ])  # fmt: skip


def _latex_columns(table: Table) -> str:
    return "l" * table.text_columns + "r" * (len(table.columns) - table.text_columns)


def _latex_head(table: Table) -> str:
    return " & ".join(map(latex_escape, table.columns)) + r" \\"


def _latex_body(table: Table, form: str) -> list[str]:
    """The rows and the lines between them. `form` is the LaTeX of a cell with a detail."""
    lines = []
    for number, row in enumerate(table.rows):
        lines += [r"\midrule"] if number in table.rules else []
        lines.append(" & ".join(_latex_cell(cell, form) for cell in row) + r" \\")
    return lines


def _latex_cell(cell: TableCell, form: str) -> str:
    main = latex_escape(cell.main)
    main = (rf"\textbf{{{main}}}" if cell.bold else main) + latex_escape(ARROWS[cell.arrow])
    return form.format(main=main, detail=latex_escape(cell.detail)) if cell.detail else main


def latex_escape(text: str) -> str:
    r"""Text as LaTeX code.

    >>> latex_escape("macro_f1 < 5%")
    'macro\\_f1 $<$ 5\\%'
    """
    escaped = text.translate(_LATEX)
    return re.sub(r"^[\[*]", r"{\g<0>}", escaped)  # after a row's \\ these would start an argument


def markdown_escape(text: str) -> str:
    r"""Text as a cell of a Markdown table shows it.

    >>> markdown_escape("plant_static < 5% | <b> *a*")
    'plant_static < 5% \\| \\<b> \\*a\\*'
    """
    return re.sub(r"[\\`*|~$]|<(?=[\w/!?])|&(?=#?\w+;)|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)


def _markdown_cell(cell: TableCell) -> str:
    main, detail = markdown_escape(cell.main), markdown_escape(cell.detail)
    return (f"**{main}**" if cell.bold else main) + ARROWS[cell.arrow] + (f" {detail}" if detail else "")
