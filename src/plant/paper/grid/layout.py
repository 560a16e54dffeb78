"""How the grid's cells are laid out: for each row of the paper a line of its numbers, of ours, and of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

import polars as pl

from plant.paper.grid.cells import GridCell, Kind, comparable
from plant.paper.grid.corpus import STATISTIC_TITLES
from plant.paper.render import Table, TableCell
from plant.paper.wording import MINUS, MISSING, ONE_SEED, metric_title

MEASURED_HERE = "measured here, not in the paper"
QUOTED, OTHER_CONVENTION = "†", "‡"
LOUD = ("above", "below", "out of reach", "differs")
"""Verdicts in bold."""
Line = tuple[TableCell, ...]
_LINES: tuple[tuple[Kind, str, str, str], ...] = (
    ("value", "paper", "ours", "verdict"),
    ("gain", "gain, paper", "gain, ours", "verdict of the gain"),
)


@dataclass
class Footnotes:
    """Why something was not attempted, a letter for each reason."""

    reasons: dict[str, str] = field(default_factory=dict)

    def mark(self, why: str) -> str:
        """The letter of a reason in parentheses; nothing for none.

        >>> notes = Footnotes()
        >>> notes.mark("not run"), notes.mark("no interval"), notes.mark("not run"), notes.mark("")
        ('(a)', '(b)', '(a)', '')
        """
        if not why:
            return ""
        if why not in self.reasons:
            self.reasons[why] = _letters(len(self.reasons))
        return f"({self.reasons[why]})"


def printed(value: float | Decimal | None, decimals: int, *, signed: bool = False) -> str:
    """A number as the paper prints it; never "-0.0".

    >>> printed(57.04, 1), printed(-0.02, 1, signed=True), printed(1.25, 1, signed=True), printed(52722, 0)
    ('57.0', '0.0', '+1.2', '52,722')
    """
    if value is None:
        return MISSING
    text = f"{abs(value):,.{decimals}f}"
    if not float(text.replace(",", "")):
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def bounds(low: float | Decimal | None, high: float | Decimal | None, decimals: int) -> str:
    """`[0.6, 1.8]`; empty without bounds."""
    return "" if low is None or high is None else f"[{printed(low, decimals)}, {printed(high, decimals)}]"


def result_table(name: str, title: str, columns: Sequence[str], cells: Sequence[GridCell], notes: Footnotes) -> Table:
    """The cells of one dataset in the form of the paper's table; our own systems below a rule.

    Args:
        name: of the table's label in LaTeX.
        title: caption.
        columns: of the paper's table.
        cells: as `block_cells` returns them.
        notes: collects the reasons for what is missing.
    """
    rows = list(dict.fromkeys((_part(cell), cell.row) for cell in cells))
    metrics = {cell.column: cell.metric for cell in reversed(cells) if cell.metric}
    body: list[Line] = []
    rules = []
    for place, (part, row) in enumerate(rows):
        before = rows[place - 1][0] if place else ""
        if place and (part, before) != ("quoted", "quoted"):
            rules.append(len(body))
        if part == "measured" and part != before:
            body.append((TableCell(MEASURED_HERE, bold=True), *(TableCell("") for _ in range(len(columns) + 1))))
        body += _lines(row, columns, [cell for cell in cells if (_part(cell), cell.row) == (part, row)], notes)
    titles = ("System", "", *(_column_title(metrics.get(column, column)) for column in columns))
    return Table(name, title, titles, tuple(body), data=pl.DataFrame(), rules=tuple(rules), text_columns=2)


def statistics_table(name: str, title: str, cells: Sequence[GridCell], notes: Footnotes) -> Table:
    """One row a statistic: the paper's, ours, verdict; ceilings and expected sizes below a rule."""
    body = []
    for cell in cells:
        numbers = (TableCell(printed(number, cell.decimals)) for number in (cell.paper, cell.ours))
        body.append((TableCell(_statistic_title(cell)), *numbers, _verdict(cell, notes)))
    rules = tuple(place for place in range(1, len(cells)) if cells[place].kind != cells[place - 1].kind)
    return Table(name, title, ("Statistic", "paper", "ours", "verdict"), tuple(body), data=pl.DataFrame(), rules=rules)


def _part(cell: GridCell) -> str:
    """Whose row a cell stands in: "own" (of the paper), "quoted" or "measured" (ours alone)."""
    return {"quoted": "quoted", "measured": "measured", "difference": "measured"}.get(cell.kind, "own")


def _column_title(metric: str) -> str:
    """A metric's title, with the labels that it is a mean over.

    >>> _column_title("macro_f1_all"), _column_title("macro_recall_all"), _column_title("p@5")
    ('macro-F1 (all)', 'macro-recall (all)', 'P@5')
    """
    base = metric.removesuffix("_all")
    return metric_title(base) + (" (all)" if base != metric else "")


def _statistic_title(cell: GridCell) -> str:
    if cell.kind == "ceiling":
        return f"highest {metric_title(cell.column)} that the corpus allows, beside the paper's ({cell.why})"
    if cell.kind == "size":
        return f"{cell.column}: expected by the config, found"
    return STATISTIC_TITLES[cell.column]


def _lines(row: str, columns: Sequence[str], cells: Sequence[GridCell], notes: Footnotes) -> Iterator[Line]:
    """The lines of one row of the paper; its name stands in the first."""
    of = {(cell.kind, cell.column): cell for cell in cells}

    def line(name: str, part: str, kind: Kind, draw: Callable[[GridCell], TableCell], blank: str = "") -> Line:
        own = [of.get((kind, column)) for column in columns]
        return (TableCell(name), TableCell(part), *(draw(cell) if cell else TableCell(blank) for cell in own))

    ours = partial(_ours, notes=notes)
    if cells[0].kind == "quoted":
        yield line(f"{row}{QUOTED} ({cells[0].cite})", "quoted", "quoted", _quoted, MISSING)
        return
    if cells[0].kind == "measured":
        yield line(row, "ours", "measured", partial(_ours, notes=notes, explained=True))
        reference = next((cell.why for cell in cells if cell.kind == "difference"), "")
        if reference:
            yield line("", f"ours {reference}", "difference", ours)
        return
    name = row
    for kind, paper, here, verdict in _LINES:
        own = [cell for cell in cells if cell.kind == kind]
        if not own:
            continue
        yield line(name, paper, kind, _paper)
        if any(cell.ours is not None for cell in own):
            yield line("", here, kind, ours)
        yield line("", verdict, kind, partial(_verdict, notes=notes))
        name = ""


def _paper(cell: GridCell) -> TableCell:
    gain = cell.kind == "gain"
    detail = bounds(cell.paper_low, cell.paper_high, cell.interval_decimals)
    return TableCell(printed(cell.paper, cell.decimals, signed=gain), cell.arrow if gain else "", detail)


def _ours(cell: GridCell, notes: Footnotes, *, explained: bool = False) -> TableCell:
    """Our number and its interval; where no verdict follows, with the reason why there is no interval."""
    number = printed(cell.ours, cell.decimals, signed=cell.kind in {"gain", "difference"})
    detail = bounds(cell.low, cell.high, cell.decimals)
    return TableCell(number, detail=detail or (notes.mark(cell.why) if explained else ""))


def _quoted(cell: GridCell) -> TableCell:
    detail = "" if comparable(cell) else f"{OTHER_CONVENTION} {cell.convention}"
    return TableCell(printed(cell.paper, cell.decimals), detail=detail)


def _verdict(cell: GridCell, notes: Footnotes) -> TableCell:
    why = notes.mark(cell.why) if cell.verdict == "not attempted" else "one seed" if cell.over == ONE_SEED else ""
    return TableCell(cell.verdict, detail=why, bold=cell.verdict in LOUD)


def _letters(place: int) -> str:
    """a, b, ..., z, aa, ab, ...

    >>> [_letters(place) for place in (0, 25, 26, 27)]
    ['a', 'z', 'aa', 'ab']
    """
    tens, ones = divmod(place, 26)
    return (_letters(tens - 1) if tens else "") + chr(ord("a") + ones)
