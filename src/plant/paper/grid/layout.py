"""How the cells of a table are laid out: for each row of the paper a line of its numbers, of ours, and of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from plant.paper.grid.cells import CellKind, GridCell
from plant.paper.grid.corpus import TITLES
from plant.paper.render import Table, TableCell, breaks
from plant.paper.wording import MISSING, ONE_SEED, fixed, interval, metric_title

MEASURED_HERE = "measured here, not in the paper"
QUOTED, OTHER_CONVENTION = "†", "‡"
LOUD = ("above", "below", "out of reach", "differs")
"""Verdicts in bold."""
Line = tuple[TableCell, ...]
Footnotes = dict[str, str]
"""Reason why a number is missing -> its letter."""


def footnote(why: str, notes: Footnotes) -> str:
    """The letter of a reason in parentheses; nothing for no reason.

    >>> notes = {}
    >>> [footnote(why, notes) for why in ("not run", "no interval", "not run", "")]
    ['(a)', '(b)', '(a)', '']
    """
    return f"({notes.setdefault(why, _letters(len(notes)))})" if why else ""


printed = partial(fixed, comma=",")
"""A number as the paper prints it."""
bounds = partial(interval, scale=1, comma=",")


def result_table(name: str, title: str, columns: Sequence[str], cells: Sequence[GridCell], notes: Footnotes) -> Table:
    """The cells of one dataset in the form of the paper's table; our own systems below a rule.

    `name` is the label in LaTeX. `notes` collects the reasons for what is missing.
    """
    rows: dict[tuple[str, str], list[GridCell]] = {}
    for cell in cells:
        rows.setdefault((_owner(cell), cell.row), []).append(cell)
    body: list[Line] = []
    rules = []
    before = ""
    for (owner, row), own in rows.items():
        if before and (before, owner) != ("quoted", "quoted"):
            rules.append(len(body))
        if owner == "measured" and before != owner:
            body.append((TableCell(MEASURED_HERE, bold=True), *[TableCell("")] * (len(columns) + 1)))
        body += _lines(row, columns, own, notes)
        before = owner
    metrics = {cell.column: cell.metric for cell in reversed(cells) if cell.metric}
    titles = ("System", "", *(_column_title(metrics.get(column, column)) for column in columns))
    return Table(name, title, titles, tuple(body), rules=tuple(rules), text_columns=2)


def statistics_table(name: str, title: str, cells: Sequence[GridCell], notes: Footnotes) -> Table:
    """One row for each statistic: the paper's, ours, verdict; ceilings and expected sizes below a rule."""
    body = []
    for cell in cells:
        numbers = (TableCell(printed(number, cell.decimals)) for number in (cell.paper, cell.ours))
        body.append((TableCell(_statistic_title(cell)), *numbers, _verdict(cell, notes)))
    rules = breaks([cell.kind for cell in cells])
    return Table(name, title, ("Statistic", "paper", "ours", "verdict"), tuple(body), rules=rules)


def _owner(cell: GridCell) -> str:
    """Whose row a cell is in: "own" (the paper's systems), "quoted" or "measured" (ours alone)."""
    return {"quoted": "quoted", "measured": "measured", "difference": "measured"}.get(cell.kind, "own")


def _column_title(metric: str) -> str:
    """A metric's title, and whether it is a mean over all labels.

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
    return TITLES[cell.column]


def _lines(row: str, columns: Sequence[str], cells: Sequence[GridCell], notes: Footnotes) -> Iterator[Line]:
    """The lines of one row; its name is in the first. A line of ours is left out where nothing has run."""
    first, verdict = cells[0], partial(_verdict, notes=notes)
    reference = next((cell.why for cell in cells if cell.kind == "difference"), "")
    lines: tuple[tuple[CellKind, str, Callable[[GridCell], TableCell]], ...] = (
        ("quoted", "quoted", _quoted),
        ("value", "paper", _paper),
        ("value", "ours", _ours),
        ("value", "verdict", verdict),
        ("gain", "gain, paper", _paper),
        ("gain", "gain, ours", _ours),
        ("gain", "verdict of the gain", verdict),
        ("measured", "ours", partial(_measured, notes=notes)),
        ("difference", f"ours {reference}", _ours),
    )
    name, blank = row, ""
    if first.kind == "quoted":
        name, blank = f"{row}{QUOTED}" + (f" ({first.cite})" if first.cite else ""), MISSING
    for kind, part, draw in lines:
        own = {cell.column: cell for cell in cells if cell.kind == kind}
        if own and (draw is not _ours or any(cell.ours is not None for cell in own.values())):
            numbers = (draw(own[column]) if column in own else TableCell(blank) for column in columns)
            yield TableCell(name), TableCell(part), *numbers
            name = ""


def _paper(cell: GridCell) -> TableCell:
    gain = cell.kind == "gain"
    detail = bounds(cell.paper_low, cell.paper_high, cell.interval_decimals)
    return TableCell(printed(cell.paper, cell.decimals, signed=gain), cell.arrow if gain else "", detail)


def _ours(cell: GridCell) -> TableCell:
    number = printed(cell.ours, cell.decimals, signed=cell.kind in {"gain", "difference"})
    return TableCell(number, detail=bounds(cell.low, cell.high, cell.decimals))


def _measured(cell: GridCell, notes: Footnotes) -> TableCell:
    """A system of ours alone. No verdict follows that would say why there is no interval."""
    drawn = _ours(cell)
    return drawn if drawn.detail else TableCell(drawn.main, detail=footnote(cell.why, notes))


def _quoted(cell: GridCell) -> TableCell:
    detail = "" if cell.is_comparable else f"{OTHER_CONVENTION} {cell.convention}"
    return TableCell(printed(cell.paper, cell.decimals), detail=detail)


def _verdict(cell: GridCell, notes: Footnotes) -> TableCell:
    why = footnote(cell.why, notes) if cell.verdict == "not attempted" else "one seed" if cell.over == ONE_SEED else ""
    return TableCell(cell.verdict, detail=why, bold=cell.verdict in LOUD)


def _letters(place: int) -> str:
    """a, b, ..., z, aa, ab, ...

    >>> [_letters(place) for place in (0, 25, 26, 27)]
    ['a', 'z', 'aa', 'ab']
    """
    tens, ones = divmod(place, 26)
    return (_letters(tens - 1) if tens else "") + chr(ord("a") + ones)
