"""The cells of a result table of the paper, in either version: the paper's number, ours, and the verdict.

A table has three kinds of rows: the paper's own systems, which we measure and judge; published systems, whose numbers
we quote from the paper; and systems of ours that the paper lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, get_args

from plant.baselines.registry import baselines
from plant.paper.grid.results import Grid, Number
from plant.paper.systems import list_systems
from plant.paper.values.transcription import (
    AVERAGE,
    BEST,
    Block,
    Convention,
    Direction,
    PaperCell,
    PaperItem,
    PaperRow,
    PaperValues,
    half_unit,
    is_table,
    metric_of,
)

CellKind = Literal["value", "gain", "quoted", "measured", "difference", "ceiling", "size"]
"""value, gain: the paper's own systems, judged. quoted: from the paper, never judged. measured, difference: ours alone.
ceiling, size: statistics of a corpus that are no claim of the table (plant.paper.grid.corpus)."""
Verdict = Literal["within", "above", "below", "not attempted"]
"""above: ours is above the paper's."""
JUDGED: tuple[CellKind, ...] = ("value", "gain")
SECOND_READING = {"mimic3_few": "mimic3_few_full_test", "awd_mimic3_few": "awd_mimic3_few_full_test"}
"""Dataset of a table -> the dataset of its other reading (choice C20)."""
QUOTED_GAIN = (
    "the paper measures this gain from the best quoted number of the column; quoted numbers have no documents to pair "
    "with (audit A28)"
)


@dataclass(frozen=True, kw_only=True)
class GridCell(Number):
    """One number of a table and all that is said about it. Numbers are in the paper's unit."""

    row: str
    column: str
    kind: CellKind
    metric: str = ""
    """Name of our metric, which says the macro-F1 and the threshold."""
    paper: Decimal | None = None
    paper_low: Decimal | None = None
    paper_high: Decimal | None = None
    decimals: int = 1
    interval_decimals: int = 1
    arrow: Direction = ""
    convention: Convention | None = None
    """Macro-F1 of a quoted number."""
    cite: str = ""
    verdict: str = ""

    @property
    def is_comparable(self) -> bool:
        """False for a quoted macro-F1 of another convention than the column's, or of an unknown one."""
        return self.convention in {None, "all"}

    def judged(self, number: Number) -> GridCell:
        """The cell with our number and the verdict."""
        verdict: Verdict = "not attempted"
        if self.paper is not None and number.low is not None and number.high is not None:
            verdict = judge(self.paper, number.low, number.high, decimals=self.decimals)
        return replace(self, **vars(number), verdict=verdict)


def judge(printed: Decimal, low: float, high: float, *, decimals: int) -> Verdict:
    """Whether a number that the paper prints is in our interval.

    Many numbers round to the printed one. It is enough if our interval, low to high in the paper's unit, holds one of
    them. For a count both ends are the count.

    >>> [judge(Decimal("57.0"), *ours, decimals=1) for ours in ((56.9, 57.4), (57.1, 57.4), (56.1, 56.9), (57.04, 58))]
    ['within', 'above', 'below', 'within']
    """
    half = half_unit(decimals)
    if Decimal(repr(low)) > printed + half:
        return "above"
    return "below" if Decimal(repr(high)) < printed - half else "within"


def tally(verdicts: Iterable[str]) -> str:
    """How many verdicts there are of each kind, as one line.

    >>> tally(["within", "above", "within", "not attempted"])
    '4 cells: 2 within, 1 above, 0 below, 1 not attempted'
    """
    given = list(verdicts)
    counts = ", ".join(f"{given.count(verdict)} {verdict}" for verdict in get_args(Verdict))
    return f"{len(given)} cell{'' if len(given) == 1 else 's'}: {counts}"


def printed_part(cell: PaperCell) -> GridCell:
    """What the paper prints."""
    return GridCell(
        row=cell.row, column=cell.column, kind="value", metric=cell.metric or "", paper=cell.value, arrow=cell.arrow,
        decimals=cell.decimals, interval_decimals=cell.interval_decimals,
    )  # fmt: skip


def block_cells(grid: Grid, values: PaperValues, item: PaperItem, block: Block, dataset: str) -> list[GridCell]:
    """All cells of the part of a table that is about one dataset, row by row.

    Ours is measured on `dataset`, if the row names no other. Quoted rows belong to the dataset of the block alone.
    """
    cells: list[GridCell] = []
    for row in block.rows:
        for cell in values.within(f"{item.item}/{block.dataset}/{row.row}").values():
            if cell.origin == "quoted":
                cells += [_quoted(cell)] if dataset == block.place else []
            elif row.system == AVERAGE:
                cells.append(_average(grid, block, cell, dataset))
            else:
                cells += _own(grid, values, block, row, cell, row.measured_on or dataset)
    return cells + list(_measured(grid, values, item, block, cells, dataset))


def _quoted(cell: PaperCell) -> GridCell:
    metric = "" if cell.column == "macro_f1" else cell.metric or ""
    part = replace(printed_part(cell), kind="quoted", metric=metric, convention=cell.convention, cite=cell.cite or "")
    return part if part.is_comparable else replace(part, why=f"macro-F1 ({cell.convention}): not comparable")


def _own(
    grid: Grid, values: PaperValues, block: Block, row: PaperRow, cell: PaperCell, dataset: str
) -> Iterator[GridCell]:
    """A value of the paper, and its gain: as the paper prints it, or the difference of two printed values."""
    part = printed_part(cell)
    match = grid.find(dataset, cell.backbone, [cell.system])
    yield part.judged(Number(why=match.why) if match.name is None else grid.value(match.name, cell.system, part.metric))
    printed = cell.gain
    if printed is None and cell.against not in {None, BEST}:
        printed = cell.value - values.cells[f"{cell.item}/{cell.dataset}/{cell.against}/{cell.column}"].value
    if printed is not None:
        gain = replace(part, kind="gain", paper=printed, paper_low=cell.low, paper_high=cell.high)
        quoted = cell.against == BEST
        yield gain.judged(Number(why=QUOTED_GAIN) if quoted else _gain(grid, block, row, part.metric, dataset))


def _gain(grid: Grid, block: Block, row: PaperRow, metric: str, dataset: str) -> Number:
    """Our difference between a row and the row that the paper measures its gain from."""
    other = next(each.system for each in block.rows if each.row == row.against)
    match = grid.find(dataset, row.backbone, [row.system, other], paired=True)
    return Number(why=match.why) if match.name is None else grid.difference(match.name, row.system, other, metric)


def _average(grid: Grid, block: Block, cell: PaperCell, dataset: str) -> GridCell:
    """The mean of a column's gains, once all its rows have run."""
    rows = [row for row in block.rows if row.gains is not None]
    part = replace(printed_part(cell), kind="gain")
    gains = [_gain(grid, block, row, part.metric, dataset) for row in rows]
    return part.judged(average(gains, names=[row.row for row in rows]))


def average(gains: Sequence[Number], *, names: Sequence[str]) -> Number:
    """The mean of gains with the mean of their bounds; no number while a gain is missing.

    All gains are measured on the same documents, so their errors are not independent. Whatever their correlation, the
    standard error of a mean is at most the mean of the standard errors: this interval is never too narrow.
    """
    lacking = [name for name, gain in zip(names, gains, strict=True) if gain.low is None or gain.high is None]
    if lacking:
        return Number(why=f"needs the gains of all {len(names)} rows; without an interval: {', '.join(lacking)}")
    value, low, high = (
        sum(getattr(gain, part) or 0.0 for gain in gains) / len(gains) for part in ("ours", "low", "high")
    )
    used = dict.fromkeys(gain.experiment for gain in gains)
    fewest = min(gains, key=lambda gain: gain.seeds or 0)
    return Number(value, low, high, fewest.seeds, experiment=", ".join(used), over=fewest.over)


def _measured(
    grid: Grid, values: PaperValues, item: PaperItem, block: Block, cells: Sequence[GridCell], dataset: str
) -> Iterator[GridCell]:
    """Systems that no table of the paper has, from the experiments behind the rows of the block."""
    settings = grid.settings
    names = dict.fromkeys(cell.experiment for cell in cells if cell.kind == "value" and cell.experiment)
    used = {name: settings.experiments[name] for name in names}
    several = len({experiment.backbone for experiment in used.values()}) > 1
    shown = _systems_of_the_paper(grid, values, dataset)
    for name, experiment in used.items():
        for system in list_systems(settings, experiment):
            baseline = system.name in baselines()  # the same run for all backbones
            key = (None if baseline else experiment.backbone, system.name)
            if key in shown or is_an_epoch(grid, system.name) or not grid.has_run(name, system.name):
                continue
            shown.add(key)
            title = f"{system.title}, {experiment.backbone}" if several and not baseline else system.title
            decimals = item.decimals if isinstance(item.decimals, int) else 1
            for column in block.columns:
                cell = GridCell(row=title, column=column, kind="measured", metric=metric_of(column), decimals=decimals)
                yield replace(cell, **vars(grid.value(name, system.name, cell.metric)))
                gap = grid.difference(name, system.name, experiment.reference, cell.metric)
                if system.name != experiment.reference and gap.ours is not None:
                    yield replace(cell, **vars(gap) | {"kind": "difference", "why": f"minus {experiment.reference}"})


def _systems_of_the_paper(grid: Grid, values: PaperValues, dataset: str) -> set[tuple[str | None, str]]:
    """(backbone, system) of the rows that the tables have on a dataset, in either reading."""
    readings = {dataset, *(first for first, second in SECOND_READING.items() if second == dataset)}
    return {
        (row.backbone or grid.settings.paper.main_backbone, row.system)
        for item, block in values.blocks()
        if is_table(item.item) and block.place in readings
        for row in block.rows
    }


def is_an_epoch(grid: Grid, system: str) -> bool:
    """Whether a variant starts from one epoch of Stage 1. Such variants are points of figures 3 and 4."""
    return getattr(grid.settings.variants.get(system), "pretraining_epoch", None) is not None
