"""The numbers of the paper, as one table of cells. Transcribed in values.yaml, whose head explains the form.

Values are `Decimal`, so that 8.70 and 0.1 + 0.2 are what is printed. Nothing here is measured by this pipeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from plant.ground.errors import InputError
from plant.ground.settings.base import Frozen

TRANSCRIPTION = Path(__file__).with_name("values.yaml")

Direction = Literal["up", "down", ""]
Origin = Literal["own", "quoted"]
Convention = Literal["all", "present", "caml", "unknown"]
Rule = Literal["difference", "mean_difference", "ratio", "mean", "least", "greatest", "equal"]

OVER_ALL_LABELS = ("macro_precision", "macro_recall")
AT_MICRO = ("micro_f1", "micro_precision", "micro_recall")
"""Judged at the threshold tuned for micro-F1 (choice C12)."""
AVERAGE = "average_gain"
"""The system of a row that holds the mean of a column's gains."""
BEST = "best"
"""What a gain is measured from when it is the best other row of the block."""


class PaperRow(Frozen):
    """A row of a table; lists have one entry a column."""

    row: str
    system: str
    backbone: str | None = None
    origin: Origin | None = None
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
    origin: Origin = "own"
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...] = Field(min_length=1)


class PaperItem(Frozen):
    """A table, a figure or a section."""

    item: str
    version: Literal["llm", "awd"]
    title: str
    decimals: int | tuple[int, ...]
    interval_decimals: int | None = None
    blocks: tuple[Block, ...] = Field(min_length=1)


class SamePlaces(Frozen):
    """Two places (item/dataset, or item/dataset/row) that are compared."""

    a: str
    b: str
    why: str = ""


class Published(Frozen):
    """Counts that others publish."""

    name: str
    counts: tuple[int, ...]
    source: str


class Claim(Frozen):
    """A number of the text, and what it must follow from."""

    id: str
    where: str
    says: Decimal
    decimals: int
    rule: Rule
    of: tuple[str, ...] = Field(min_length=1)
    at_least: bool = False
    tolerance: Decimal | None = None
    """Instead of half a unit of the last place."""


class Transcription(Frozen):
    """values.yaml."""

    items: tuple[PaperItem, ...]
    same: tuple[SamePlaces, ...]
    independent: tuple[SamePlaces, ...]
    published: tuple[Published, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class PaperCell:
    """One number of the paper and everything that is printed with it."""

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
    """Which macro-F1; None where the column is another metric."""
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
        """Half a unit of the last printed place."""
        return half_unit(self.decimals)

    @property
    def metric(self) -> str | None:
        """The name of this pipeline's metric that the cell can be set beside; None where the convention is unknown."""
        return None if self.convention == "unknown" else metric_of(self.column, self.convention or "all")


@dataclass(frozen=True)
class Values:
    """The cells by key, and what relates them."""

    cells: dict[str, PaperCell]
    items: tuple[PaperItem, ...]
    same: tuple[SamePlaces, ...]
    independent: tuple[SamePlaces, ...]
    published: dict[str, Published]
    claims: tuple[Claim, ...]

    def blocks(self) -> Iterator[tuple[PaperItem, Block]]:
        for item in self.items:
            for block in item.blocks:
                yield item, block

    def within(self, place: str) -> dict[str, PaperCell]:
        """Cells of item/dataset (keyed row/column) or of item/dataset/row (keyed by column).

        Raises:
            InputError: no cell is there.
        """
        inside = {key[len(place) + 1 :]: cell for key, cell in self.cells.items() if key.startswith(f"{place}/")}
        if not inside:
            raise InputError(
                TRANSCRIPTION.name, expected="a place that has cells", got=repr(place), fix="Correct the place."
            )
        return inside

    def number(self, address: str) -> Decimal:
        """The number behind `key`, `key#gain`, `key#low`, `key#high`, or a published count's name.

        Raises:
            InputError: there is none.
        """
        if address in self.published:
            return Decimal(sum(self.published[address].counts))
        key, _, part = address.partition("#")
        cell = self.cells.get(key)
        number = getattr(cell, part or "value") if cell is not None and part in {"", "gain", "low", "high"} else None
        if not isinstance(number, Decimal):
            raise InputError(
                TRANSCRIPTION.name, expected="the address of a number", got=repr(address), fix="Correct the address."
            )
        return number


def metric_of(column: str, convention: Convention = "all") -> str:
    """The metric of a column; the paper's own macro-F1 is over all labels (appendix E).

    >>> metric_of("macro_f1"), metric_of("macro_recall"), metric_of("micro_recall"), metric_of("p@15")
    ('macro_f1_all', 'macro_recall_all', 'micro_recall@micro', 'p@15')
    """
    if column == "macro_f1":
        return f"macro_f1_{convention}"
    if column in AT_MICRO:
        return f"{column}@micro"
    return f"{column}_all" if column in OVER_ALL_LABELS else column


def half_unit(decimals: int) -> Decimal:
    """Half a unit of the last place.

    >>> half_unit(1), half_unit(0)
    (Decimal('0.05'), Decimal('0.5'))
    """
    return Decimal(5).scaleb(-decimals - 1)


def load_values(source: Path = TRANSCRIPTION) -> Values:
    """Read and check the transcription.

    Raises:
        InputError: the form is wrong, a row is longer or shorter than its columns, a number has more decimals than the
            item prints, two cells have one key, or a pair or a claim points at nothing.
    """
    try:
        read = Transcription.model_validate(read_yaml(source))
    except (yaml.YAMLError, ValidationError) as error:
        raise InputError(
            source.name, expected="the form that its head explains", got=str(error), fix="Correct it."
        ) from None
    cells = [
        cell for item in read.items for block in item.blocks for row in block.rows for cell in _cells(item, block, row)
    ]
    repeated = [key for key, times in Counter(cell.key for cell in cells).items() if times > 1]
    if repeated:
        raise InputError(source.name, expected="one cell a key", got=f"twice {repeated[0]}", fix="Rename one row.")
    published = {entry.name: entry for entry in read.published}
    values = Values({cell.key: cell for cell in cells}, read.items, read.same, read.independent, published, read.claims)
    for pair in (*values.same, *values.independent):
        values.within(pair.a), values.within(pair.b)
    for claim in values.claims:
        for address in claim.of:
            values.number(address)
    return values


def read_yaml(source: Path) -> Any:
    """The content of a YAML file, by the compiled parser where there is one."""
    return yaml.load(source.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _cells(item: PaperItem, block: Block, row: PaperRow) -> Iterator[PaperCell]:
    """The cells of a row; a dash of the paper has none."""
    origin = row.origin or block.origin
    _require_form(item, block, row, quoted=origin == "quoted")
    for at, (column, value) in enumerate(zip(block.columns, row.values, strict=True)):
        if value is None:
            continue
        decimals = item.decimals if isinstance(item.decimals, int) else item.decimals[at]
        low, high = row.intervals[at] if row.intervals else (None, None)
        gain = row.gains[at] if row.gains else None
        cell = PaperCell(
            item=item.item, version=item.version, dataset=block.dataset, row=row.row, column=column,
            system=row.system, backbone=row.backbone, origin=origin, cite=row.cite, against=row.against,
            convention=_convention(row, origin) if column == "macro_f1" else None,
            value=value, decimals=decimals, gain=gain, low=low, high=high,
            interval_decimals=decimals if item.interval_decimals is None else item.interval_decimals,
            arrow=row.arrows if isinstance(row.arrows, str) else row.arrows[at],
            bold=row.bold == "all" or column in row.bold,
        )  # fmt: skip
        _require_printed(cell)
        yield replace(cell, value=round(value, decimals), gain=None if gain is None else round(gain, decimals))


def _convention(row: PaperRow, origin: Origin) -> Convention:
    """Appendix E defines the paper's own macro-F1 over all labels; a quoted row has that of its source."""
    return row.macro_f1 or ("all" if origin == "own" else "unknown")


def _require_form(item: PaperItem, block: Block, row: PaperRow, *, quoted: bool) -> None:
    where = f"{item.item}/{block.dataset}/{row.row}"
    lists = {name: getattr(row, name) for name in ("values", "gains", "intervals", "arrows")}
    columns = len(block.columns)
    for name, entries in (*lists.items(), ("decimals", item.decimals)):
        if isinstance(entries, tuple) and len(entries) != columns:
            raise InputError(
                where, expected=f"{columns} {name}, one a column", got=str(len(entries)), fix="Read the paper again."
            )
    if row.bold != "all" and not set(row.bold) <= set(block.columns):
        raise InputError(where, expected="bold columns of the block", got=str(row.bold), fix="Correct `bold`.")
    if row.against not in {None, BEST, *(other.row for other in block.rows)}:
        raise InputError(where, expected="a row of the block", got=repr(row.against), fix="Correct `against`.")
    if quoted and item.version == "llm" and not row.cite:
        raise InputError(where, expected="the publication of a quoted row", got="none", fix="Add `cite`.")


def _require_printed(cell: PaperCell) -> None:
    """No number has more decimals than the paper prints there, and intervals stand the right way round."""
    for number, decimals in (
        (cell.value, cell.decimals),
        (cell.gain, cell.decimals),
        (cell.low, cell.interval_decimals),
        (cell.high, cell.interval_decimals),
    ):
        if number is not None and number != round(number, decimals):
            raise InputError(
                cell.key, expected=f"at most {decimals} decimals", got=str(number), fix="Read the paper again."
            )
    if cell.low is not None and cell.high is not None and cell.low > cell.high:
        raise InputError(cell.key, expected="low <= high", got=f"[{cell.low}, {cell.high}]", fix="Swap them.")
