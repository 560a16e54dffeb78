"""Tables 2 to 12 of the paper beside ours, as CSV (long, full precision), Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from plant.ground.errors import InputError
from plant.paper.audit.findings import Finding, audit, load_explanations
from plant.paper.grid.cells import JUDGED, SECOND_READING, GridCell, block_cells, is_an_epoch
from plant.paper.grid.corpus import corpus_cells
from plant.paper.grid.layout import OTHER_CONVENTION, QUOTED, Footnotes, result_table, statistics_table
from plant.paper.grid.results import Grid
from plant.paper.render import Table, latex_escape, to_longtable, to_markdown
from plant.paper.systems import budget_notes, list_systems
from plant.paper.values.transcription import AT_MICRO, TRANSCRIPTION, Block, PaperItem, Values, load_values
from plant.paper.values.verdicts import tally
from plant.paper.wording import ONE_SEED, interval_over

CORPUS_ITEMS = ("T7", "T8")
ABLATION_ITEMS = ("T6", "T12")
APPENDIX_C = {"T7": ("AC", ("mimic3_full", "mimic3_few", "mimic3_rare50"))}
"""Sizes that the text prints and Table 7 does not, or prints differently: item and datasets."""
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
class Part:
    """What a table shows of one dataset."""

    title: str
    item: PaperItem
    block: Block
    cells: tuple[GridCell, ...]
    second: bool = False
    """Another reading of the dataset: not counted with the table."""

    @property
    def dataset(self) -> str:
        """That ours is measured on."""
        return self.cells[0].dataset if self.cells else self.block.dataset


@dataclass(frozen=True)
class Sheet:
    """A table of the paper before it is dressed."""

    name: str
    title: str
    parts: tuple[Part, ...]
    tables: tuple[Table, ...]
    """One a part."""
    banner: str
    summary: tuple[str, ...]
    notes: tuple[str, ...]


def build_sheet(name: str, grid: Grid, values: Values) -> Sheet:
    """A table of the paper from whatever has run.

    Args:
        name: "table_2" to "table_12".
        grid: what has run.
        values: the paper's numbers.

    Raises:
        InputError: values.yaml has no such table, or a result file is unreadable.
    """
    item = find_item(values, f"T{name.removeprefix('table_')}")
    parts = tuple(_parts(grid, values, item))
    footnotes = Footnotes()
    tables = tuple(_table(name, part, footnotes) for part in parts)
    cells = [cell for part in parts for cell in part.cells]
    return Sheet(
        name=name,
        title=f"Table {item.item[1:]} of the paper beside ours: {item.title}",
        parts=parts,
        tables=tables,
        banner=BANNER if any(cell.stand_in for cell in cells) else "",
        summary=tuple(_summary(parts)),
        notes=(
            *(f"({letter}) {why}." for why, letter in footnotes.reasons.items()),
            *_reading(item, cells),
            *_sources(grid, parts),
            *_findings(item),
        ),
    )


def find_item(values: Values, name: str) -> PaperItem:
    """An item of values.yaml.

    Raises:
        InputError: there is none of that name.
    """
    for item in values.items:
        if item.item == name:
            return item
    known = ", ".join(item.item for item in values.items)
    raise InputError(TRANSCRIPTION.name, expected=f"one of {known}", got=repr(name), fix="Correct `paper.items`.")


def to_frame(sheet: Sheet) -> pl.DataFrame:
    """One row a number: what the CSV holds. Numbers are in the paper's unit (percent, or counts)."""
    numbers = ("paper", "paper_low", "paper_high", "ours", "low", "high")
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(("item", "dataset", "row", "column", "kind"), pl.String)
    schema |= dict.fromkeys(numbers, pl.Float64) | {"seeds": pl.Int64}
    schema |= dict.fromkeys(("verdict", "why", "experiment"), pl.String) | {"stand_in": pl.Boolean}
    schema |= dict.fromkeys(("metric", "cite", "over"), pl.String)
    rows = []
    for part in sheet.parts:
        for cell in part.cells:
            row = {name: getattr(cell, name) for name in schema} | {"item": sheet.name}
            rows.append(row | {name: None if row[name] is None else float(row[name]) for name in numbers})
    return pl.DataFrame(rows, schema=schema, orient="row")


def to_page(sheet: Sheet) -> str:
    """Markdown: what the numbers are, the verdicts counted, one table a dataset, notes."""
    head = [f"# {sheet.title}", ""]
    head += [f"> **{sheet.banner}**", ""] if sheet.banner else []
    head += [*(f"**{line}**  " for line in sheet.summary), ""]
    notes = [f"- {note}" for note in sheet.notes]
    return "\n".join([*head, *(to_markdown(table) for table in sheet.tables), *notes]) + "\n"


def to_tex(sheet: Sheet) -> str:
    r"""A `longtable` a dataset for \input, with the notes below the last."""
    needs = r"% needs \usepackage{amssymb,booktabs,longtable} and one column of text"
    head = [needs, r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}"]
    banner = f"{sheet.banner} " if sheet.banner else ""
    body = [to_longtable(table, f"{banner}{sheet.title}. {table.title}") for table in sheet.tables]
    notes = " ".join(map(latex_escape, (*sheet.summary, *sheet.notes)))
    return "\n".join([*head, *body, rf"\par\noindent {notes}\par\endgroup"]) + "\n"


def _parts(grid: Grid, values: Values, item: PaperItem) -> list[Part]:
    if item.item in CORPUS_ITEMS:
        more, datasets = APPENDIX_C.get(item.item, ("", ()))
        text = [(other, block) for other, block in values.blocks() if other.item == more and block.dataset in datasets]
        return [
            Part(
                block.dataset + ("" if source is item else ", sizes in the text of appendix C"),
                source, block, tuple(corpus_cells(grid, values, source, block)),
            )
            for source, block in [*((item, block) for block in item.blocks), *text]
        ]  # fmt: skip
    parts = []
    for block in item.blocks:
        parts.append(Part(block.dataset, item, block, tuple(block_cells(grid, values, item, block))))
        other = SECOND_READING.get(block.dataset)
        if other is not None:
            cells = tuple(block_cells(grid, values, item, block, dataset=other))
            title = f"{other}: the same labels on all test documents, the second reading of {block.dataset}"
            parts.append(Part(f"{title} (choice C20)", item, block, cells, second=True))
    return parts


def _table(name: str, part: Part, footnotes: Footnotes) -> Table:
    label = f"{name}-{part.item.item}-{part.dataset}".replace("_", "-")
    if part.item.item in CORPUS_ITEMS or part.item.item == "AC":
        return statistics_table(label, part.title, part.cells, footnotes)
    return result_table(label, part.title, part.block.columns, part.cells, footnotes)


def _summary(parts: Sequence[Part]) -> list[str]:
    """Verdicts of the whole table, then of each dataset where there are several."""

    def count(some: Sequence[Part]) -> str:
        cells = [cell for part in some for cell in part.cells if cell.kind in JUDGED]
        single = sum(cell.over == ONE_SEED for cell in cells)
        return tally(cell.verdict for cell in cells) + (f"; {single} of the verdicts on one seed" if single else "")

    first = [part for part in parts if not part.second]
    lines = [f"{count(first)}."]
    if len(first) > 1:
        lines += [f"{part.title}: {count([part])}." for part in first]
    return lines + [f"{part.dataset}, not counted above: {count([part])}." for part in parts if part.second]


def _reading(item: PaperItem, cells: Sequence[GridCell]) -> list[str]:
    """How to read the table; only what its cells call for."""
    if item.item in CORPUS_ITEMS:
        return [
            "Verdict: within if our number rounds to the paper's, else above or below it. Counts are over all splits.",
            "A ceiling is mean(min(|Y|, k) / k) over test documents with labels: no system has a higher P@k.",
        ]
    notes = [
        (
            "Numbers are ×100. Ours: mean over training seeds, with our interval in brackets (choice C11). Verdict: "
            "within if our interval holds a number that the paper would print like this; above or below says where "
            "ours is. Above is a discrepancy too."
        )
    ]
    over = dict.fromkeys(cell.over for cell in cells if cell.over)
    notes += [text for name, text in INTERVALS.items() if name in over]
    if item.item in ABLATION_ITEMS:
        notes.append("Where the gain is a drop, below means that ours is the larger drop.")
    if any(cell.column == "macro_f1" for cell in cells):
        notes.append("Macro-F1 is that of the paper's appendix E, over all labels (macro_f1_all, choice C12).")
    if any(cell.column in AT_MICRO for cell in cells):
        notes.append(
            "Micro-F1, micro precision and micro recall are at the threshold tuned on validation for micro-F1 "
            "(@micro); macro ones at the threshold of `evaluation.tune_for` (choice C12)."
        )
    if any(cell.kind == "quoted" for cell in cells):
        notes.append(f"{QUOTED} Quoted by the paper from the publication named; not measured here, no verdict.")
    if any(cell.convention not in {None, "all"} for cell in cells):
        notes.append(
            f"{OTHER_CONVENTION} Macro-F1 of another convention (present: over labels with a test positive; caml: "
            "harmonic mean of macro precision and recall) or of an unknown one: not comparable with the column."
        )
    if any(cell.dataset in SECOND_READING.values() for cell in cells):
        notes.append("Which reading a quoted row of MIMIC-III-few belongs to is not known to this table (choice C20).")
    return notes


def _sources(grid: Grid, parts: Sequence[Part]) -> list[str]:
    """Which experiment each system's numbers come from, and which others would do."""
    measured: dict[str, dict[str, None]] = {}  # experiment -> rows
    others: dict[str, None] = {}
    for part in parts:
        for cell in part.cells:
            if cell.kind == "value" and cell.ours is not None:
                measured.setdefault(cell.experiment, {})[cell.row] = None
        for row in part.block.rows:
            match = grid.find(part.dataset, row.backbone, [row.system])
            if match.others:
                others[f"{match.name} was taken; {', '.join(match.others)} would do too"] = None
    notes = []
    budgets: dict[str, None] = {}
    for name, rows in measured.items():
        experiment = grid.settings.experiments[name]
        seeds = len(experiment.seeds)
        of = "" if rows.keys() == {"corpus"} else f", {seeds} seed{'s' if seeds > 1 else ''}: {'; '.join(rows)}"
        notes.append(f"Experiment {name}{of}.")
        systems = [each for each in list_systems(grid.settings, experiment) if not is_an_epoch(grid, each.name)]
        budgets |= dict.fromkeys(budget_notes(grid.settings, experiment, systems, experiment.reference))
    notes += budgets
    if others:
        order = "what has intervals, what has run, what is not on request, more seeds, the first of the config"
        notes.append(f"More than one experiment qualifies ({order}): {'. '.join(others)}.")
    return notes


def _findings(item: PaperItem) -> list[str]:
    """The findings of the audit that touch this table."""
    here = [
        each.id for each in _audited() if any(key.partition("#")[0].startswith(f"{item.item}/") for key in each.cells)
    ]
    return [f"Findings of the audit about this table (docs/audit.md): {', '.join(here)}."] if here else []


@cache
def _audited() -> tuple[Finding, ...]:
    """The audit of the transcription, once."""
    return audit(load_values(), load_explanations()).findings
