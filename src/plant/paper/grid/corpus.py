"""Tables 7 and 8, the sizes of the corpora: the paper's numbers beside those of statistics.json.

Two things stand below them that the paper does not print: the highest P@k that the corpus allows beside the highest
that the paper reports, and the published sizes that the config expects beside what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from plant.ground.files import read_json
from plant.paper.grid.cells import TABLES, GridCell, judged, printed_part
from plant.paper.grid.results import Grid, Number, target
from plant.paper.values.transcription import Block, PaperItem, Values, half_unit

Record = Mapping[str, Any]
STATISTIC_TITLES = {
    "documents": "documents",
    "patients": "patients",
    "labels": "labels",
    "labels_per_document_median": "labels of a document, median",
    "labels_per_document_q1": "labels of a document, first quartile",
    "labels_per_document_q3": "labels of a document, third quartile",
    "words_median": "words of a document, median",
    "words_q1": "words of a document, first quartile",
    "words_q3": "words of a document, third quartile",
    "train_percent": "documents in train, %",
    "val_percent": "documents in val, %",
    "test_percent": "documents in test, %",
    "train_documents": "training documents (with what is held out for validation, choice C18)",
    "test_documents": "test documents",
    "labels_per_document_mean": "labels of a document, mean",
    "documents_per_label_mean": "training documents of a label, mean",
}


def corpus_cells(grid: Grid, values: Values, item: PaperItem, block: Block) -> list[GridCell]:
    """A corpus of the paper beside ours: its statistics, the ceilings of P@k, and the expected sizes."""
    source = _statistics(grid, block.dataset)
    stand_in = grid.is_stand_in(block.dataset)
    cells = []
    for row in block.rows:
        for column in block.columns:
            cell = values.cells[f"{item.item}/{block.dataset}/{row.row}/{column}"]
            cells.append(judged(printed_part(cell, block.dataset), _number(source, column), stand_in=stand_in))
    if isinstance(source, str):
        return cells
    extra = [*_ceilings(values, item, block, source), *_sizes(item, block, source)]
    return cells + [replace(cell, stand_in=stand_in) for cell in extra]


def statistic(record: Record, column: str) -> float | None:
    """A number of the paper's Tables 7 and 8 from statistics.json; None where the file does not hold it.

    Args:
        record: statistics.json; `splits` has one entry a split, `all` the same over all documents.
        column: of values.yaml.
    """
    splits, whole = record["splits"], record.get("all")
    documents = sum(split["documents"] for split in splits.values())
    training = [splits[name] for name in ("train", "val")]
    match column:
        case "documents":
            return documents
        case "labels":
            return record["labels"]
        case "train_percent" | "val_percent" | "test_percent":
            return 100 * splits[column.removesuffix("_percent")]["documents"] / documents if documents else None
        case "train_documents":
            return sum(split["documents"] for split in training)
        case "test_documents":
            return splits["test"]["documents"]
        case "labels_per_document_mean":
            return sum(split["assignments"] for split in splits.values()) / documents if documents else None
        case "documents_per_label_mean":
            return sum(split["assignments"] for split in training) / record["labels"] if record["labels"] else None
        case "patients":
            return whole["groups"] if whole else None
    if whole is None:
        return None
    name, _, part = column.rpartition("_")
    quantity = {"labels_per_document": "labels_per_document", "words": "words_per_document"}[name]
    return whole[quantity][{"q1": "quartile_1", "q3": "quartile_3"}.get(part, part)]


def _statistics(grid: Grid, dataset: str) -> tuple[Record, str] | str:
    """(statistics.json, experiment) of a dataset, or why there is none."""
    names = [name for name, each in grid.settings.experiments.items() if each.dataset == dataset]
    if not names:
        return f"no experiment of this config is on {dataset}"
    grid.datasets[dataset] = None
    for name in names:
        if name in grid.paths:
            path = Path(grid.paths[name].corpus) / "statistics.json"
            if path.is_file():
                return read_json(path), name
    return f"not run yet: target `{target(names[0])}`"


def _number(source: tuple[Record, str] | str, column: str) -> Number:
    if isinstance(source, str):
        return Number(why=source)
    record, experiment = source
    value = statistic(record, column)
    if value is None:
        return Number(why="statistics.json has no section `all` (statistics over all documents)", experiment=experiment)
    return Number(float(value), float(value), float(value), experiment=experiment)


def _ceilings(values: Values, item: PaperItem, block: Block, source: tuple[Record, str]) -> Iterator[GridCell]:
    """The highest P@k that the paper's own systems reach, beside mean(min(|Y|, k) / k) over our test documents."""
    record, experiment = source
    for name, ceiling in record.get("ceilings", {}).items():
        claims = [
            cell
            for cell in values.cells.values()
            if (cell.dataset, cell.column, cell.origin) == (block.dataset, name, "own") and cell.item in TABLES
        ]
        claim = max(claims, key=lambda cell: cell.value, default=None)
        if claim is None or ceiling is None:
            continue
        reachable = Decimal(repr(100 * ceiling)) >= claim.value - half_unit(claim.decimals)
        yield GridCell(
            item=item.item, dataset=block.dataset, row="ceiling", column=name, kind="ceiling", metric=name,
            paper=claim.value, decimals=claim.decimals, ours=100 * ceiling, experiment=experiment,
            verdict="reachable" if reachable else "out of reach", why=f"{claim.row}, Table {claim.item[1:]}",
        )  # fmt: skip


def _sizes(item: PaperItem, block: Block, source: tuple[Record, str]) -> Iterator[GridCell]:
    """Published sizes that the config expects, and what was found."""
    record, experiment = source
    for name, (published, ours) in record.get("expected", {}).items():
        yield GridCell(
            item=item.item, dataset=block.dataset, row="published size", column=name, kind="size", decimals=0,
            paper=Decimal(published), ours=float(ours), verdict="equal" if published == ours else "differs",
            experiment=experiment,
        )  # fmt: skip
