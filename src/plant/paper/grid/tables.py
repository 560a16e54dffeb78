"""The tables of both versions of the paper beside ours, as CSV (long, full precision), Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from plant.paper.audit.findings import Finding, audit, load_explanations
from plant.paper.grid.cells import JUDGED, SECOND_READING, GridCell, block_cells, is_an_epoch, tally
from plant.paper.grid.corpus import corpus_cells
from plant.paper.grid.layout import OTHER_CONVENTION, QUOTED, Footnotes, result_table, statistics_table
from plant.paper.grid.results import Grid
from plant.paper.render import Table, latex_escape, to_longtable, to_markdown
from plant.paper.systems import budget_notes, list_systems
from plant.paper.values.transcription import AT_MICRO, Block, PaperItem, PaperValues, load_values
from plant.paper.wording import ONE_SEED, interval_over

ABLATION_ITEMS = ("T6", "T12")
VERSIONS = {"llm": "paper", "awd": "earlier version of the paper"}
SIZES_OF_THE_TEXT = {
    "T7": ("AC", "appendix C", ("mimic3_full", "mimic3_few", "mimic3_rare50")),
    "awd-T8": ("awd-A6", "appendix A.6", ("mimic3_full", "mimic3_few")),
}
"""Sizes that the text prints and a table does not, or prints differently: item, its name, datasets."""
BANNER = (
    "SYNTHETIC STAND-IN TEXT, not the corpora that the datasets are named for. The numbers of ours say nothing about "
    "the paper; verdicts show only that the machinery works."
)
INTERVALS = {
    interval_over(2): (
        "Source of interval: training seeds and test documents together; what another training run on another test set "
        "would show. Where seeds differ much, a nominal 95% is at worst 92% with three seeds and 87% with two."
    ),
    ONE_SEED: (
        "Marked one seed: the interval is over test documents alone, as there is one training run. Another run may lie "
        "outside of it."
    ),
    interval_over(1, trained=False): (
        "Source of interval of systems without training: test documents alone; they have no seeds."
    ),
}
"""What our interval is over -> the note that says it."""


@dataclass(frozen=True)
class TablePart:
    """What a table shows of one dataset."""

    title: str
    item: PaperItem
    block: Block
    dataset: str
    """Where ours is measured."""
    cells: tuple[GridCell, ...]
    stand_in: bool

    @property
    def is_second_reading(self) -> bool:
        """Whether ours is measured on another dataset than the paper's. Not counted with the table."""
        return self.dataset != self.block.place


@dataclass(frozen=True)
class Sheet:
    """A table of the paper before it is written as a file."""

    name: str
    title: str
    parts: tuple[TablePart, ...]
    tables: tuple[Table, ...]
    """One for each part."""
    banner: str
    summary: tuple[str, ...]
    notes: tuple[str, ...]


def build_sheet(name: str, grid: Grid, values: PaperValues) -> Sheet:
    """A table of the paper from whatever has run.

    Args:
        name: "table_2" to "table_12", or "awd_table_2" to "awd_table_10" and "awd_appendix_11" (earlier version).

    Raises:
        InputError: a result file is unreadable.
    """
    item = next(item for item in values.items if item.target == name)
    parts = tuple(_parts(grid, values, item))
    footnotes: Footnotes = {}
    tables = tuple(_table(name, part, footnotes) for part in parts)
    return Sheet(
        name=name,
        title=f"{item.printed_name} of the {VERSIONS[item.version]} beside ours: {item.title}",
        parts=parts,
        tables=tables,
        banner=BANNER if any(part.stand_in for part in parts) else "",
        summary=tuple(_summary(parts)),
        notes=(
            *(f"({letter}) {why}." for why, letter in footnotes.items()),
            *_reading(item, parts),
            *_sources(grid, parts),
            *_findings(item),
        ),
    )


def to_frame(sheet: Sheet) -> pl.DataFrame:
    """One row for each number: what the CSV holds. Numbers are in the paper's unit (percent, or counts)."""
    texts, numbers = pl.String(), pl.Float64()
    schema = pl.Schema(
        dict.fromkeys(("item", "dataset", "row", "column", "kind"), texts)
        | dict.fromkeys(("paper", "paper_low", "paper_high", "ours", "low", "high"), numbers)
        | {"seeds": pl.Int64()}
        | dict.fromkeys(("verdict", "why", "experiment"), texts)
        | {"stand_in": pl.Boolean()}
        | dict.fromkeys(("metric", "cite", "over"), texts)
    )
    rows = []
    for part in sheet.parts:
        for cell in part.cells:
            row = vars(cell) | {"item": sheet.name, "dataset": part.dataset}
            row |= {name: float(row[name]) for name in schema if schema[name] == numbers and row[name] is not None}
            rows.append(row | {"stand_in": part.stand_in and cell.kind != "quoted"})
    return pl.DataFrame(rows, schema=schema)


def to_page(sheet: Sheet) -> str:
    """Markdown: what the numbers are, the verdicts counted, one table for each dataset, notes."""
    head = [f"# {sheet.title}", ""]
    head += [f"> **{sheet.banner}**", ""] if sheet.banner else []
    head += [*(f"**{line}**  " for line in sheet.summary), ""]
    notes = [f"- {note}" for note in sheet.notes]
    return "\n".join([*head, *(to_markdown(table) for table in sheet.tables), *notes]) + "\n"


def to_tex(sheet: Sheet) -> str:
    r"""A `longtable` for each dataset, for \input; the notes follow the last."""
    needs = r"% needs \usepackage{amssymb,booktabs,longtable} and one column of text"
    head = [needs, r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}"]
    banner = f"{sheet.banner} " if sheet.banner else ""
    body = [to_longtable(table, f"{banner}{sheet.title}. {table.title}") for table in sheet.tables]
    notes = " ".join(map(latex_escape, (*sheet.summary, *sheet.notes)))
    return "\n".join([*head, *body, rf"\par\noindent {notes}\par\endgroup"]) + "\n"


def _parts(grid: Grid, values: PaperValues, item: PaperItem) -> Iterator[TablePart]:
    """The parts of a table, by dataset."""
    more, where, datasets = SIZES_OF_THE_TEXT.get(item.item, ("", "", ()))
    text = [(other, block) for other, block in values.blocks() if other.item == more and block.dataset in datasets]
    for source, block in [*((item, block) for block in item.blocks), *text]:
        titles = {block.place: block.place + ("" if source is item else f", sizes in the text of {where}")}
        if (other := SECOND_READING.get(block.place)) and not block.is_corpus:
            reading = f"the same labels on all test documents, the second reading of {block.place} (choice C20)"
            titles[other] = f"{other}: {reading}"
        for place, title in titles.items():
            cells = (corpus_cells if block.is_corpus else block_cells)(grid, values, source, block, place)
            yield TablePart(title, source, block, place, tuple(cells), grid.is_stand_in(place))


def _table(name: str, part: TablePart, footnotes: Footnotes) -> Table:
    label = f"{name}-{part.item.item}-{part.dataset}".replace("_", "-")
    if part.block.is_corpus:
        return statistics_table(label, part.title, part.cells, footnotes)
    return result_table(label, part.title, part.block.columns, part.cells, footnotes)


def _summary(parts: Sequence[TablePart]) -> Iterator[str]:
    """Verdicts of the whole table, then of each dataset if there are several."""

    def count(*some: TablePart) -> str:
        cells = [cell for part in some for cell in part.cells if cell.kind in JUDGED]
        single = sum(cell.over == ONE_SEED for cell in cells)
        return tally(cell.verdict for cell in cells) + (f"; {single} of the verdicts on one seed" if single else "")

    counted = [part for part in parts if not part.is_second_reading]
    yield f"{count(*counted)}."
    if len(counted) > 1:
        yield from (f"{part.title}: {count(part)}." for part in counted)
    yield from (f"{part.dataset}, not counted above: {count(part)}." for part in parts if part.is_second_reading)


def _reading(item: PaperItem, parts: Sequence[TablePart]) -> list[str]:
    """How to read the table: the notes that its cells call for."""
    if item.blocks[0].is_corpus:
        return [
            "Verdict: within if our number rounds to the paper's, else above or below it. Counts are over all splits.",
            "A ceiling is mean(min(|Y|, k) / k) over test documents with labels: no system has a higher P@k.",
        ]
    cells = [cell for part in parts for cell in part.cells]
    columns, over = {cell.column for cell in cells}, {cell.over for cell in cells}
    source = " from the publication named" if any(cell.cite for cell in cells) else ""
    applies: dict[str, bool] = {
        (
            "Numbers are ×100. Ours: mean over training seeds, with our interval in brackets (choice C11). Verdict: "
            "within if our interval holds a number that the paper would print like this; above or below says where "
            "ours is. Above is a discrepancy too."
        ): True,
        **{text: name in over for name, text in INTERVALS.items()},
        "Where the gain is a drop, below means that ours is the larger drop.": item.item in ABLATION_ITEMS,
        "A gain of the paper is the difference of two values that it prints.": any(
            row.against and not row.gains for part in parts for row in part.block.rows
        ),
        "Rows of ablations are measured on a part of the training split (choice C38).": any(
            row.measured_on for part in parts for row in part.block.rows
        ),
        "Macro-F1 is that of the paper's appendix E, over all labels (macro_f1_all, choice C12).": (
            "macro_f1" in columns
        ),
        (
            "Micro-F1, micro precision and micro recall are at the threshold tuned on validation for micro-F1 "
            "(@micro); macro ones at the threshold of `evaluation.tune_for` (choice C12)."
        ): not columns.isdisjoint(AT_MICRO),
        f"{QUOTED} Quoted by the paper{source}; not measured here, no verdict.": (
            any(cell.kind == "quoted" for cell in cells)
        ),
        (
            f"{OTHER_CONVENTION} Macro-F1 of another convention (present: over labels with a test positive; caml: "
            "harmonic mean of macro precision and recall) or of an unknown one: not comparable with the column."
        ): not all(cell.is_comparable for cell in cells),
        "Which reading a quoted row of MIMIC-III-few belongs to is not known to this table (choice C20).": (
            any(part.is_second_reading for part in parts)
        ),
    }
    return [text for text, needed in applies.items() if needed]


def _sources(grid: Grid, parts: Sequence[TablePart]) -> Iterator[str]:
    """The experiment behind each system's numbers, unequal budgets, and other experiments that would do."""
    rows_of: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for part in parts:
        for cell in part.cells:
            if cell.kind == "value" and cell.ours is not None:
                rows_of.setdefault(cell.experiment, {})[cell.row] = None
        for row in part.block.rows:
            match = grid.find(row.measured_on or part.dataset, row.backbone, [row.system])
            if match.others:
                others[f"{match.name} was taken; {', '.join(match.others)} would do too"] = None
    budgets: dict[str, None] = {}
    for name, rows in rows_of.items():
        experiment = grid.settings.experiments[name]
        seeds = len(experiment.seeds)
        trained = f", {seeds} seed{'s' if seeds > 1 else ''}: {'; '.join(rows)}"
        yield f"Experiment {name}{'' if rows.keys() == {'corpus'} else trained}."
        systems = list_systems(grid.settings, experiment)
        shown = [each for each in systems if not is_an_epoch(grid, each.name)]
        budgets |= dict.fromkeys(budget_notes(shown, systems[-1]))
    yield from budgets
    if others:
        order = "what has intervals, what has run, what is not on request, more seeds, the first of the config"
        yield f"More than one experiment qualifies ({order}): {'. '.join(others)}."


def _findings(item: PaperItem) -> list[str]:
    """The findings of the audit that touch this table."""
    here = [each.entry.id for each in _audited() if any(key.startswith(f"{item.item}/") for key in each.cells)]
    return [f"Findings of the audit about this table (docs/reference/audit.md): {', '.join(here)}."] if here else []


@cache
def _audited() -> tuple[Finding, ...]:
    """The audit of the transcription, once."""
    return audit(load_values(), load_explanations()).findings
