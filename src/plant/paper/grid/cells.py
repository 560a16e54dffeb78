"""The cells of a result table of the paper (2 to 6, 9 to 12): the paper's number, ours, and the verdict.

Three kinds of rows are kept apart: the paper's own systems, which we measure and judge; published systems, which the
paper quotes and we quote from it; and systems of ours that the paper lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from plant.baselines.registry import baselines
from plant.paper.grid.results import Grid, Number
from plant.paper.systems import list_systems
from plant.paper.values.transcription import (
    AVERAGE,
    BEST,
    Block,
    Cell,
    Convention,
    Direction,
    Item,
    Row,
    Values,
    metric_of,
)
from plant.paper.values.verdicts import judge

Kind = Literal["value", "gain", "quoted", "measured", "difference", "ceiling", "size"]
"""value, gain: the paper's own systems, judged. quoted: from the paper, never judged. measured, difference: ours alone.
ceiling, size: corpus statistics that are no claim of the table (grid_corpus)."""
JUDGED: tuple[Kind, ...] = ("value", "gain")
TABLES = ("T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12")
SECOND_READING = {"mimic3_few": "mimic3_few_full_test"}
"""Dataset of a table -> the dataset of its other reading (choice C20)."""
QUOTED_GAIN = (
    "the paper measures this gain from the best quoted number of the column; quoted numbers have no documents to pair "
    "with (audit A28)"
)


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One number of a table with everything that stands beside it. Numbers are in the paper's unit."""

    item: str
    dataset: str
    row: str
    column: str
    kind: Kind
    metric: str = ""
    """Name of our metric: says which macro-F1, and which threshold."""
    paper: Decimal | None = None
    paper_low: Decimal | None = None
    paper_high: Decimal | None = None
    decimals: int = 1
    interval_decimals: int = 1
    arrow: Direction = ""
    convention: Convention | None = None
    """Macro-F1 of a quoted number."""
    cite: str = ""
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int | None = None
    over: str = ""
    """What the interval is over; empty without one."""
    verdict: str = ""
    why: str = ""
    experiment: str = ""
    stand_in: bool = False


def comparable(cell: GridCell) -> bool:
    """False for a quoted macro-F1 of another convention than the column's, or of an unknown one."""
    return cell.convention in {None, "all"}


def block_cells(grid: Grid, values: Values, item: Item, block: Block, *, dataset: str | None = None) -> list[GridCell]:
    """All cells of the part of a table that is about one dataset, row by row.

    Args:
        grid: what has run.
        values: the paper's numbers.
        item: the table.
        block: its part.
        dataset: measure on this dataset instead of the block's; quoted rows are left out then.
    """
    place = dataset or block.dataset
    cells: list[GridCell] = []
    for row in block.rows:
        printed = [
            cell
            for column in block.columns
            if (cell := values.cells.get(f"{item.item}/{block.dataset}/{row.row}/{column}")) is not None
        ]
        for cell in printed:
            if cell.origin == "quoted":
                cells += [] if dataset else [_quoted(cell)]
            elif row.system == AVERAGE:
                cells.append(_average(grid, block, cell, place))
            else:
                cells += _own(grid, block, row, cell, place)
    return cells + list(_measured(grid, values, item, block, cells, place))


def printed_part(cell: Cell, place: str) -> GridCell:
    """What the paper prints of a value."""
    return GridCell(
        item=cell.item,
        dataset=place,
        row=cell.row,
        column=cell.column,
        kind="value",
        metric=cell.metric or "",
        paper=cell.value,
        decimals=cell.decimals,
        interval_decimals=cell.interval_decimals,
        arrow=cell.arrow,
    )


def judged(cell: GridCell, number: Number, *, stand_in: bool) -> GridCell:
    """The cell with our number and the verdict."""
    verdict = "not attempted"
    if cell.paper is not None and number.low is not None and number.high is not None:
        verdict = judge(cell.paper, number.low, number.high, decimals=cell.decimals)
    return replace(with_number(cell, number), verdict=verdict, stand_in=stand_in)


def with_number(cell: GridCell, number: Number) -> GridCell:
    """The cell with our number."""
    return replace(
        cell,
        ours=number.value,
        low=number.low,
        high=number.high,
        seeds=number.seeds,
        over=number.over,
        why=number.why,
        experiment=number.experiment,
    )


def _quoted(cell: Cell) -> GridCell:
    part = replace(
        printed_part(cell, cell.dataset),
        kind="quoted",
        metric="" if cell.column == "macro_f1" else cell.metric or "",
        convention=cell.convention,
        cite=cell.cite or "",
    )
    return part if comparable(part) else replace(part, why=f"macro-F1 ({cell.convention}): not comparable")


def _own(grid: Grid, block: Block, row: Row, cell: Cell, place: str) -> Iterator[GridCell]:
    part = printed_part(cell, place)
    stand_in = grid.is_stand_in(place)
    found = grid.find(place, cell.backbone, [cell.system])
    number = Number(why=found.why) if found.name is None else grid.value(found.name, cell.system, part.metric)
    yield judged(part, number, stand_in=stand_in)
    if cell.gain is None:
        return
    gain = replace(part, kind="gain", paper=cell.gain, paper_low=cell.low, paper_high=cell.high)
    if cell.against == BEST:
        yield judged(gain, Number(why=QUOTED_GAIN), stand_in=stand_in)
    else:
        yield judged(gain, _gain(grid, block, row, part.metric, place), stand_in=stand_in)


def _gain(grid: Grid, block: Block, row: Row, metric: str, place: str) -> Number:
    """Our difference between a row and the row that the paper measures its gain from."""
    other = next(each.system for each in block.rows if each.row == row.against)
    pair = [row.system, other]
    found = grid.find(place, row.backbone, pair, reference=pair)
    return Number(why=found.why) if found.name is None else grid.difference(found.name, row.system, other, metric)


def _average(grid: Grid, block: Block, cell: Cell, place: str) -> GridCell:
    """The mean of a column's gains, once every row of it has run."""
    rows = [row for row in block.rows if row.gains is not None]
    part = replace(printed_part(cell, place), kind="gain")
    gains = [_gain(grid, block, row, part.metric, place) for row in rows]
    return judged(part, average(gains, names=[row.row for row in rows]), stand_in=grid.is_stand_in(place))


def average(gains: list[Number], *, names: list[str]) -> Number:
    """The mean of gains with the mean of their bounds; none while one of them is missing.

    All gains are measured on the same documents, so their errors are not independent. Whatever their correlation, the
    standard error of a mean is at most the mean of the standard errors: this interval is never too narrow.
    """
    lacking = [name for name, gain in zip(names, gains, strict=True) if gain.low is None or gain.high is None]
    if lacking:
        return Number(why=f"needs the gains of all {len(names)} rows; without an interval: {', '.join(lacking)}")
    value, low, high = (
        sum(getattr(gain, part) or 0.0 for gain in gains) / len(gains) for part in ("value", "low", "high")
    )
    used = dict.fromkeys(gain.experiment for gain in gains)
    fewest = min(gains, key=lambda gain: gain.seeds or 0)
    return Number(value, low, high, fewest.seeds, experiment=", ".join(used), over=fewest.over)


def _measured(
    grid: Grid, values: Values, item: Item, block: Block, cells: list[GridCell], place: str
) -> Iterator[GridCell]:
    """Systems of the experiments behind the block's rows that have run and that no table of the paper has."""
    settings = grid.settings
    used = dict.fromkeys(cell.experiment for cell in cells if cell.kind == "value" and cell.experiment)
    several = len({settings.experiments[name].backbone for name in used}) > 1
    taken = _systems_of_the_paper(grid, values, place)
    seen: set[str] = set()
    for name in used:
        backbone = settings.experiments[name].backbone
        for system in list_systems(settings, settings.experiments[name]):
            baseline = system.name in baselines()  # the same runs, whatever the backbone of the experiment
            key = system.name if baseline else f"{backbone}/{system.name}"
            if key in seen or (backbone, system.name) in taken or is_an_epoch(grid, system.name):
                continue
            if not grid.has_run(name, system.name):
                continue
            seen.add(key)
            title = f"{system.title}, {backbone}" if several and not baseline else system.title
            for column in block.columns:
                cell = GridCell(
                    item=item.item,
                    dataset=place,
                    row=title,
                    column=column,
                    kind="measured",
                    metric=metric_of(column),
                    decimals=item.decimals if isinstance(item.decimals, int) else 1,
                    stand_in=grid.is_stand_in(place),
                )
                yield from _numbers(grid, cell, name, system.name)


def _numbers(grid: Grid, cell: GridCell, name: str, system: str) -> Iterator[GridCell]:
    """A measured value and its difference to the experiment's reference."""
    yield with_number(cell, grid.value(name, system, cell.metric))
    reference = grid.settings.experiments[name].reference
    if system != reference:
        number = grid.difference(name, system, reference, cell.metric)
        if number.value is not None:
            yield replace(with_number(replace(cell, kind="difference"), number), why=f"minus {reference}")


def _systems_of_the_paper(grid: Grid, values: Values, place: str) -> set[tuple[str | None, str]]:
    """(backbone, system) of the own rows that some table has on a dataset, in either reading of it."""
    names = {place, *(name for name, other in SECOND_READING.items() if other == place)}
    return {
        (row.backbone or grid.settings.paper.main_backbone, row.system)
        for item, block in values.blocks()
        if item.item in TABLES and block.dataset in names
        for row in block.rows
    }


def is_an_epoch(grid: Grid, system: str) -> bool:
    """Variants that start from one epoch of Stage 1 are points of figures 3 and 4."""
    variant = grid.settings.variants.get(system)
    return variant is not None and variant.pretraining_epoch is not None
