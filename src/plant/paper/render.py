"""The one writer of tables: CSV, Markdown, LaTeX (booktabs) and HTML from the same cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import jinja2
import polars as pl
from markupsafe import Markup, escape

from plant.ground.files import write_text
from plant.paper.wording import ARROWS, MINUS
from plant.statistics.significance import Arrow

_SPOKEN_ARROWS = {"up": "significant gain", "down": "significant drop"}
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", MINUS: "$-$",
    "±": r"$\pm$", "×": r"$\times$", "–": "--", "≥": r"$\geq$", "≤": r"$\leq$", "†": r"\textsuperscript{\dag}",
    "‡": r"\textsuperscript{\ddag}", "▲": r"\textsuperscript{$\blacktriangle$}",
    "▼": r"\textsuperscript{$\blacktriangledown$}",
}  # fmt: skip

_HTML = jinja2.Template(
    """\
{%- macro set(cell) -%}
{% if cell.bold %}<strong>{{ cell.main }}</strong>{% else %}{{ cell.main }}{% endif %}
{%- if cell.arrow -%}
<span class="{{ cell.arrow }}" role="img" aria-label="{{ spoken[cell.arrow] }}">{{ arrows[cell.arrow] }}</span>
{%- endif %}
{#- a line breaks before an interval only, so that all columns of a page's width are seen #}
{%- if cell.detail %} <span class="detail">
{%- for part in cell.detail.split(", [") %}{% if not loop.first %},<br>[{% endif %}{{ part }}{% endfor -%}
</span>{% endif %}
{%- endmacro -%}
<div class="scroll" tabindex="0" role="region" aria-label="{{ table.title }}"><table id="table-{{ table.name }}">
{#- -#}
<caption>{{ table.title }}</caption>
<thead><tr>
{%- for column in table.columns -%}
<th scope="col"{% if loop.index0 < table.text_columns %} class="text"{% endif %}>{{ column }}</th>
{%- endfor -%}
</tr></thead>
<tbody>
{% for row in table.rows -%}
<tr{% if loop.index0 in table.rules %} class="rule"{% endif %}><th scope="row">{{ set(row[0]) }}</th>
{%- for cell in row[1:] -%}
<td{% if loop.index < table.text_columns %} class="text"{% endif %}>{{ set(cell) }}</td>
{%- endfor -%}
</tr>
{% endfor -%}
</tbody></table></div>
<ul class="notes">
{%- for note in table.notes %}<li>{{ with_links(note) }}</li>{% endfor -%}
</ul>""",
    autoescape=True,
)


@dataclass(frozen=True)
class TableCell:
    """`main` arrow `detail`, as in "14.7▲ (+1.2, [0.6, 1.8])"."""

    main: str
    arrow: Arrow = ""
    detail: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table before it is dressed. The first column names the row."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    data: pl.DataFrame
    """Long and numeric, at full precision: what the CSV holds."""
    notes: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()
    """A line is drawn above these rows."""
    text_columns: int = 1
    """Columns that hold text and are set flush left."""
    stacked: bool = False
    """True sets a cell's detail under its main value in LaTeX, so that many columns fit a page."""


def to_csv(frame: pl.DataFrame) -> str:
    """CSV that a spreadsheet may open: a text that it would take for a formula gets a `'` before it. Numbers stay.

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
    lines = [f"**{table.title}**", "", _pipe(table.columns), _pipe(dashes)]
    for row in table.rows:
        lines.append(_pipe([_markdown_cell(cell) for cell in row]))
    lines += ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def write_table(table: Table, folder: Path) -> None:
    """Write {name}.csv, {name}.md and {name}.tex into `folder`."""
    for kind, text in (("csv", to_csv(table.data)), ("md", to_markdown(table)), ("tex", to_latex(table))):
        write_text(Path(folder) / f"{table.name}.{kind}", text)


def to_latex(table: Table) -> str:
    r"""A `table*` for \input; needs adjustbox, amssymb and booktabs. Never larger than a page."""
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
    """A `longtable`, which may break over pages; needs amssymb, booktabs and longtable."""
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
    """The rows and the rules between them; `form` sets the detail of a cell."""
    lines = []
    for number, row in enumerate(table.rows):
        lines += [r"\midrule"] if number in table.rules else []
        lines.append(" & ".join(_latex_cell(cell, form) for cell in row) + r" \\")
    return lines


def _latex_cell(cell: TableCell, form: str) -> str:
    main = latex_escape(cell.main)
    main = (rf"\textbf{{{main}}}" if cell.bold else main) + latex_escape(ARROWS[cell.arrow])
    return form.format(main=main, detail=latex_escape(cell.detail)) if cell.detail else main


def to_html(table: Table) -> Markup:
    """A table with a caption and scoped headers; arrows carry a spoken text."""
    return Markup(_HTML.render(table=table, arrows=ARROWS, spoken=_SPOKEN_ARROWS, with_links=_with_links))


def _with_links(note: str) -> Markup:
    """The note with "choice C11" as a link to that row of the report."""
    return Markup(re.sub(r"(?<=choice )C\d\d", r'<a href="#\g<0>">\g<0></a>', str(escape(note))))


def latex_escape(text: str) -> str:
    r"""Text that LaTeX prints as it stands.

    >>> latex_escape("macro_f1 < 5%")
    'macro\\_f1 $<$ 5\\%'
    """
    escaped = re.sub(".", lambda match: _LATEX_SPECIAL.get(match[0], match[0]), text, flags=re.DOTALL)
    return re.sub(r"^[\[*]", r"{\g<0>}", escaped)  # after a row's \\ these would start an argument


def _pipe(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(cell: TableCell) -> str:
    main = f"**{cell.main}**" if cell.bold else cell.main
    return (main + ARROWS[cell.arrow] + (f" {cell.detail}" if cell.detail else "")).replace("|", r"\|")
