"""The numbers of the paper, as one table of cells. They are transcribed in values.yaml; its head explains the form.

Values are `Decimal`, so that 8.70 stays 8.70, and 0.1 + 0.2 is 0.3. Nothing here is measured by this pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field

from plant.ground.errors import InputError
from plant.ground.settings.base import Frozen
from plant.paper.inputs import read_yaml

TRANSCRIPTION = Path(__file__).with_name("values.yaml")

Direction = Literal["up", "down", ""]
Origin = Literal["own", "quoted"]
Convention = Literal["all", "present", "caml", "unknown"]
Rule = Literal["difference", "mean_difference", "ratio", "mean", "least", "greatest", "equal"]

OVER_ALL_LABELS = ("macro_precision", "macro_recall")
AT_MICRO = ("micro_f1", "micro_precision", "micro_recall")
"""Metrics at the threshold that is tuned for micro-F1 (choice C12)."""
AVERAGE = "average_gain"
"""System of a row with the mean gain of each column."""
CORPUS = "corpus"
"""System of a row with the statistics of a corpus."""
APPENDICES = ("awd-A11",)
"""Items of an appendix's text that are written as a table of their own."""
BEST = "best"
"""`against` of a gain that is measured from the best other row of the block."""


class PaperRow(Frozen):
    """A row of a table. Each list has one entry per column."""

    row: str
    system: str
    backbone: str | None = None
    origin: Origin | None = None
    measured_on: str | None = None
    """Dataset on which ours is measured. None: that of the block."""
    cite: str | None = None
    macro_f1: Convention | None = None
    against: str | None = None
    values: tuple[Decimal | None, ...]
    gains: tuple[Decimal, ...] | None = None
    intervals: tuple[tuple[Decimal, Decimal], ...] | None = None
    arrows: Direction | tuple[Direction, ...] = ""
    bold: Literal["all"] | tuple[str, ...] = ()


class Block(Frozen):
    """The part of a table that is about one dataset."""

    dataset: str
    measured_on: str | None = None
    """Dataset of the config on which ours is measured. None: `dataset`."""
    origin: Origin = "own"
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...] = Field(min_length=1)

    @property
    def place(self) -> str:
        """Dataset on which ours is measured."""
        return self.measured_on or self.dataset

    @property
    def is_corpus(self) -> bool:
        """Whether the block is the statistics of a corpus."""
        return self.rows[0].system == CORPUS


class PaperItem(Frozen):
    """A table, a figure or a section."""

    item: str
    version: Literal["llm", "awd"]
    title: str
    decimals: int | tuple[int, ...]
    interval_decimals: int | None = None
    blocks: tuple[Block, ...] = Field(min_length=1)

    @property
    def target(self) -> str:
        """Target of the workflow that makes the table: `table_6`, `awd_table_6`, `awd_appendix_11`."""
        return self.item.replace("-", "_").replace("T", "table_").replace("A", "appendix_")

    @property
    def printed_name(self) -> str:
        """`Table 6`, `Appendix A.11`."""
        name = self.item.removeprefix("awd-")
        return f"Appendix A.{name[1:]}" if self.item in APPENDICES else f"Table {name[1:]}"


class PaperWords(Frozen):
    """Words that the text says a system attends to for a label."""

    label: str
    system: str
    words: tuple[str, ...]


class SamePlaces(Frozen):
    """Two places that are compared. A place is item/dataset or item/dataset/row."""

    a: str
    b: str
    why: str = ""


class Published(Frozen):
    """Counts that others publish."""

    counts: tuple[int, ...]
    source: str


class Claim(Frozen):
    """A number of the text, and the cells that it must follow from."""

    id: str
    where: str
    says: Decimal
    decimals: int
    rule: Rule
    of: tuple[str, ...] = Field(min_length=1)
    at_least: bool = False
    tolerance: Decimal | None = None
    """None: half a unit of the last decimal."""


@dataclass(frozen=True, kw_only=True)
class PaperCell:
    """One number of the paper, and everything that is printed with it."""

    item: str
    version: str
    dataset: str
    row: str
    column: str
    system: str
    backbone: str | None
    origin: Origin
    cite: str | None
    convention: Convention | None
    """Which macro-F1; None for another metric."""
    value: Decimal
    decimals: int
    gain: Decimal | None
    low: Decimal | None
    high: Decimal | None
    interval_decimals: int
    arrow: Direction
    bold: bool
    against: str | None

    @property
    def key(self) -> str:
        return f"{self.place}/{self.column}"

    @property
    def place(self) -> str:
        """item/dataset/row."""
        return f"{self.item}/{self.dataset}/{self.row}"

    @property
    def half(self) -> Decimal:
        """Half a unit of the last printed decimal."""
        return half_unit(self.decimals)

    @property
    def metric(self) -> str | None:
        """Name of the metric of this pipeline that compares with the cell; None if the convention is unknown."""
        return None if self.convention == "unknown" else metric_of(self.column, self.convention or "all")


class PaperValues(Frozen):
    """The content of values.yaml."""

    items: tuple[PaperItem, ...]
    words: tuple[PaperWords, ...] = ()
    same: tuple[SamePlaces, ...]
    independent: tuple[SamePlaces, ...]
    published: dict[str, Published]
    claims: tuple[Claim, ...]

    @cached_property
    def cells(self) -> dict[str, PaperCell]:
        """All cells by key.

        Raises:
            InputError: a row or a number has the wrong form, or two cells have the same key.
        """
        cells: dict[str, PaperCell] = {}
        for item, block in self.blocks():
            for row in block.rows:
                for cell in _cells(item, block, row):
                    if cell.key in cells:
                        raise _wrong(cell.key, "one cell per key", "two")
                    cells[cell.key] = cell
        return cells

    def blocks(self) -> Iterator[tuple[PaperItem, Block]]:
        return ((item, block) for item in self.items for block in item.blocks)

    def within(self, place: str) -> dict[str, PaperCell]:
        """Cells of item/dataset (keyed row/column) or of item/dataset/row (keyed by column).

        Raises:
            InputError: the place has no cells.
        """
        inside = {key[len(place) + 1 :]: cell for key, cell in self.cells.items() if key.startswith(f"{place}/")}
        if not inside:
            raise _wrong(TRANSCRIPTION.name, "a place that has cells", repr(place))
        return inside

    def number(self, address: str) -> Decimal:
        """The number at `key`, `key#gain`, `key#low` or `key#high`, or the sum of the published counts of that name.

        Raises:
            InputError: there is no such number.
        """
        if address in self.published:
            return Decimal(sum(self.published[address].counts))
        key, _, part = address.partition("#")
        number = getattr(self.cells.get(key), part or "value", None) if part in {"", "gain", "low", "high"} else None
        if not isinstance(number, Decimal):
            raise _wrong(TRANSCRIPTION.name, "the address of a number", repr(address))
        return number


def metric_of(column: str, convention: Convention = "all") -> str:
    """The metric of a column. The paper's own macro-F1 is over all labels (appendix E).

    >>> metric_of("macro_f1"), metric_of("macro_recall"), metric_of("micro_recall"), metric_of("p@15")
    ('macro_f1_all', 'macro_recall_all', 'micro_recall@micro', 'p@15')
    """
    if column == "macro_f1":
        return f"macro_f1_{convention}"
    if column in AT_MICRO:
        return f"{column}@micro"
    return f"{column}_all" if column in OVER_ALL_LABELS else column


def is_table(item: str) -> bool:
    """Whether an item is written as a table: a table of the paper, in either version, or one of APPENDICES.

    >>> is_table("T12"), is_table("awd-T7"), is_table("awd-A11"), is_table("awd-S5"), is_table("F2")
    (True, True, True, False, False)
    """
    return item.removeprefix("awd-").startswith("T") or item in APPENDICES


def half_unit(decimals: int) -> Decimal:
    """Half a unit of the last decimal.

    >>> half_unit(1), half_unit(0)
    (Decimal('0.05'), Decimal('0.5'))
    """
    return Decimal(5).scaleb(-decimals - 1)


def load_values(source: Path = TRANSCRIPTION) -> PaperValues:
    """Read the transcription."""
    return PaperValues.model_validate(read_yaml(source))


def _wrong(where: str, expected: str, got: str) -> InputError:
    return InputError(where, expected=expected, got=got, fix=f"Compare {TRANSCRIPTION.name} with the paper.")


def _cells(item: PaperItem, block: Block, row: PaperRow) -> Iterator[PaperCell]:
    """The cells of a row. A dash of the paper has no cell."""
    where, n = f"{item.item}/{block.dataset}/{row.row}", len(block.columns)
    decimals = (item.decimals,) * n if isinstance(item.decimals, int) else item.decimals
    gains, intervals = row.gains or (None,) * n, row.intervals or ((None, None),) * n
    arrows = (row.arrows,) * n if isinstance(row.arrows, str) else row.arrows
    entries = (block.columns, row.values, decimals, gains, intervals, arrows)
    if any(len(each) != n for each in entries):
        raise _wrong(where, f"{n} entries in each list, one per column", str(list(map(len, entries))))
    origin = row.origin or block.origin
    # appendix E defines the paper's own macro-F1 over all labels; a quoted row has that of its source
    convention = row.macro_f1 or ("all" if origin == "own" else "unknown")
    for column, value, places, gain, (low, high), arrow in zip(*entries, strict=True):
        if value is None:
            continue
        interval_places = places if item.interval_decimals is None else item.interval_decimals
        for number, most in ((value, places), (gain, places), (low, interval_places), (high, interval_places)):
            if number is not None and number != round(number, most):
                raise _wrong(f"{where}/{column}", f"at most {most} decimals", str(number))
        yield PaperCell(
            item=item.item, version=item.version, dataset=block.dataset, row=row.row, column=column,
            system=row.system, backbone=row.backbone, origin=origin, cite=row.cite, against=row.against,
            convention=convention if column == "macro_f1" else None,
            value=round(value, places), decimals=places, gain=None if gain is None else round(gain, places),
            low=low, high=high, interval_decimals=interval_places, arrow=arrow,
            bold=row.bold == "all" or column in row.bold,
        )  # fmt: skip
