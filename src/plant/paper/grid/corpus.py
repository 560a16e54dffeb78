"""The sizes of the corpora: the paper's numbers beside those of statistics.json.

Below them are two checks that the paper does not print: the highest P@k that the corpus allows beside the highest that
the paper reports, and the published sizes that the config expects beside those of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import reduce
from operator import getitem
from typing import Any

from plant.ground.files import read_json
from plant.paper.grid.cells import GridCell, printed_part
from plant.paper.grid.results import Grid, Number
from plant.paper.values.transcription import Block, PaperItem, PaperValues, half_unit, is_table

Record = Mapping[str, Any]
"""statistics.json: `splits` has an entry for each split, and `all`, if it is there, the same over all documents."""
Statistic = Callable[[Record], float | None]


def _of_all(*keys: str) -> Statistic:
    """A number over all documents; None where the file has no section `all`."""
    return lambda record: reduce(getitem, keys, record["all"]) if record.get("all") else None


def _total(record: Record, what: str, *splits: str) -> int:
    """Documents, or labels of documents (`assignments`), of some splits; of all, if none is named."""
    return sum(split[what] for name, split in record["splits"].items() if not splits or name in splits)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _percent(split: str) -> Statistic:
    return lambda record: _ratio(100 * _total(record, "documents", split), _total(record, "documents"))


LABELS, WORDS = "labels_per_document", "words_per_document"
STATISTICS: dict[str, tuple[str, Statistic]] = {
    "documents": ("documents", lambda record: _total(record, "documents")),
    "patients": ("patients", _of_all("groups")),
    "labels": ("labels", lambda record: record["labels"]),
    "labels_per_document_median": ("labels of a document, median", _of_all(LABELS, "median")),
    "labels_per_document_q1": ("labels of a document, first quartile", _of_all(LABELS, "quartile_1")),
    "labels_per_document_q3": ("labels of a document, third quartile", _of_all(LABELS, "quartile_3")),
    "words_median": ("words of a document, median", _of_all(WORDS, "median")),
    "words_q1": ("words of a document, first quartile", _of_all(WORDS, "quartile_1")),
    "words_q3": ("words of a document, third quartile", _of_all(WORDS, "quartile_3")),
    "train_percent": ("documents in train, %", _percent("train")),
    "val_percent": ("documents in val, %", _percent("val")),
    "test_percent": ("documents in test, %", _percent("test")),
    "train_documents": (
        "training documents (with what is held out for validation, choice C18)",
        lambda record: _total(record, "documents", "train", "val"),
    ),
    "test_documents": ("test documents", lambda record: _total(record, "documents", "test")),
    "labels_per_document_mean": (
        "labels of a document, mean", lambda record: _ratio(_total(record, "assignments"), _total(record, "documents")),
    ),
    "documents_per_label_mean": (
        "training documents of a label, mean",
        lambda record: _ratio(_total(record, "assignments", "train", "val"), record["labels"]),
    ),
}  # fmt: skip
"""Column of the paper's Tables 7 and 8 -> how it is printed, and the number; None where it is not known."""


def corpus_cells(grid: Grid, values: PaperValues, item: PaperItem, block: Block) -> list[GridCell]:
    """A corpus of the paper beside ours: its statistics, the ceilings of P@k, and the expected sizes."""
    path, experiment, why = grid.corpus_file(block.place, "statistics.json")
    record: Record | None = None if path is None else read_json(path)
    cells = []
    for row in block.rows:
        for column in block.columns:
            number = None if record is None else STATISTICS[column][1](record)
            lacking = why or "statistics.json has no section `all` (statistics over all documents)"
            measured = Number(why=lacking, experiment=experiment)
            if number is not None:
                measured = Number(float(number), float(number), float(number), experiment=experiment)
            cell = values.cells[f"{item.item}/{block.dataset}/{row.row}/{column}"]
            cells.append(printed_part(cell).judged(measured))
    if record is not None:
        cells += [*_ceilings(values, item, block, record, experiment), *_sizes(record, experiment)]
    return cells


def _ceilings(
    values: PaperValues, item: PaperItem, block: Block, record: Record, experiment: str
) -> Iterator[GridCell]:
    """The highest P@k of the paper's own systems, beside mean(min(|Y|, k) / k) over our test documents."""
    for name, ceiling in record.get("ceilings", {}).items():
        claims = [
            cell
            for cell in values.cells.values()
            if (cell.version, cell.dataset, cell.column, cell.origin) == (item.version, block.dataset, name, "own")
            and is_table(cell.item)
        ]
        claim = max(claims, key=lambda cell: cell.value, default=None)
        if claim is None or ceiling is None:
            continue
        reachable = Decimal(repr(100 * ceiling)) >= claim.value - half_unit(claim.decimals)
        yield GridCell(
            row="ceiling", column=name, kind="ceiling", metric=name, paper=claim.value, decimals=claim.decimals,
            ours=100 * ceiling, experiment=experiment, verdict="reachable" if reachable else "out of reach",
            why=f"{claim.row}, Table {claim.item.rpartition('T')[2]}",
        )  # fmt: skip


def _sizes(record: Record, experiment: str) -> Iterator[GridCell]:
    """Published sizes that the config expects, beside those of the corpus."""
    for name, (published, ours) in record.get("expected", {}).items():
        yield GridCell(
            row="published size", column=name, kind="size", decimals=0, paper=Decimal(published), ours=float(ours),
            verdict="equal" if published == ours else "differs", experiment=experiment,
        )  # fmt: skip
