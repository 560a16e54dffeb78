"""The sizes of the corpora: the paper's numbers beside those of statistics.json.

Below them are two checks that the paper does not print: the highest P@k that the corpus allows beside the highest that
the paper reports, and the published sizes that the config expects beside those of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from plant.ground.files import read_json
from plant.paper.grid.cells import GridCell, printed_part
from plant.paper.grid.results import Grid, Number
from plant.paper.values.transcription import Block, PaperItem, PaperValues, half_unit, is_table

TITLES = {
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
"""Column of the paper's Tables 7 and 8 -> how it is printed."""


def statistics_of(record: Mapping[str, Any]) -> dict[str, float]:
    """Our number for each column of TITLES, from the content of statistics.json."""
    together, splits = record["all"], record["splits"]
    labels, words = together["labels_per_document"], together["words_per_document"]
    return {
        "documents": together["documents"],
        "patients": together["groups"],
        "labels": record["labels"],
        "labels_per_document_median": labels["median"],
        "labels_per_document_q1": labels["quartile_1"],
        "labels_per_document_q3": labels["quartile_3"],
        "words_median": words["median"],
        "words_q1": words["quartile_1"],
        "words_q3": words["quartile_3"],
        **{f"{name}_percent": 100 * split["documents"] / together["documents"] for name, split in splits.items()},
        "train_documents": splits["train"]["documents"] + splits["val"]["documents"],
        "test_documents": splits["test"]["documents"],
        "labels_per_document_mean": together["assignments"] / together["documents"],
        "documents_per_label_mean": (splits["train"]["assignments"] + splits["val"]["assignments"]) / record["labels"],
    }


def corpus_cells(grid: Grid, values: PaperValues, item: PaperItem, block: Block, dataset: str) -> list[GridCell]:
    """All cells of a block of statistics: those of the paper, then the two checks. `dataset` is where ours are."""
    path, experiment, why = grid.corpus_file(dataset, "statistics.json")
    record = None if path is None else read_json(path)
    ours = {} if record is None else {name: float(number) for name, number in statistics_of(record).items()}
    cells = []
    for cell in values.within(f"{item.item}/{block.dataset}").values():
        number = ours.get(cell.column)
        cells.append(printed_part(cell).judged(Number(number, number, number, why=why, experiment=experiment)))
    if record is not None:
        cells += [*_ceilings(values, item, block, record, experiment), *_sizes(record, experiment)]
    return cells


def _ceilings(
    values: PaperValues, item: PaperItem, block: Block, record: Mapping[str, Any], experiment: str
) -> Iterator[GridCell]:
    """The highest P@k of the paper's own systems, beside mean(min(|Y|, k) / k) over our test documents."""
    for name, ceiling in record["ceilings"].items():
        claims = [
            cell
            for cell in values.cells.values()
            if (cell.version, cell.dataset, cell.column, cell.origin) == (item.version, block.dataset, name, "own")
            and is_table(cell.item)
        ]
        if claims:
            claim = max(claims, key=lambda cell: cell.value)
            reachable = Decimal(repr(100 * ceiling)) >= claim.value - half_unit(claim.decimals)
            yield GridCell(
                row="ceiling", column=name, kind="ceiling", metric=name, paper=claim.value, decimals=claim.decimals,
                ours=100 * ceiling, experiment=experiment, verdict="reachable" if reachable else "out of reach",
                why=f"{claim.row}, Table {claim.item.rpartition('T')[2]}",
            )  # fmt: skip


def _sizes(record: Mapping[str, Any], experiment: str) -> Iterator[GridCell]:
    """Published sizes that the config expects, beside those of the corpus."""
    for name, (published, ours) in record["expected"].items():
        yield GridCell(
            row="published size", column=name, kind="size", decimals=0, paper=Decimal(published), ours=float(ours),
            verdict="equal" if published == ours else "differs", experiment=experiment,
        )  # fmt: skip
