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
_JUDGED_LINES: tuple[tuple[CellKind, str, str, str], ...] = (
    ("value", "paper", "ours", "verdict"),
    ("gain", "gain, paper", "gain, ours", "verdict of the gain"),
)


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
    """The lines of one row; its name is in the first."""
    cell_of = {(cell.kind, cell.column): cell for cell in cells}
    first = cells[0]

    def line(name: str, part: str, kind: CellKind, draw: Callable[[GridCell], TableCell], blank: str = "") -> Line:
        own = (cell_of.get((kind, column)) for column in columns)
        return TableCell(name), TableCell(part), *(draw(cell) if cell else TableCell(blank) for cell in own)

    def measured(cell: GridCell) -> TableCell:  # no verdict follows that would say why there is no interval
        drawn = _ours(cell)
        return drawn if drawn.detail else TableCell(drawn.main, detail=footnote(cell.why, notes))

    if first.kind == "quoted":
        source = f" ({first.cite})" if first.cite else ""
        yield line(f"{row}{QUOTED}{source}", "quoted", "quoted", _quoted, MISSING)
    elif first.kind == "measured":
        yield line(row, "ours", "measured", measured)
        reference = next((cell.why for cell in cells if cell.kind == "difference"), "")
        if reference:
            yield line("", f"ours {reference}", "difference", _ours)
    else:
        for kind, paper, here, judged in _JUDGED_LINES:
            own = [cell for cell in cells if cell.kind == kind]
            if own:
                yield line(row if own[0] is first else "", paper, kind, _paper)
                if any(cell.ours is not None for cell in own):
                    yield line("", here, kind, _ours)
                yield line("", judged, kind, partial(_verdict, notes=notes))


def _paper(cell: GridCell) -> TableCell:
    gain = cell.kind == "gain"
    detail = bounds(cell.paper_low, cell.paper_high, cell.interval_decimals)
    return TableCell(printed(cell.paper, cell.decimals, signed=gain), cell.arrow if gain else "", detail)


def _ours(cell: GridCell) -> TableCell:
    number = printed(cell.ours, cell.decimals, signed=cell.kind in {"gain", "difference"})
    return TableCell(number, detail=bounds(cell.low, cell.high, cell.decimals))


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
