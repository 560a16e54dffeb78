"""Identities and bounds: between the metrics of one row, and between the statistics of one corpus.

Each function takes the transcription and yields one `Check` a relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from plant.paper.values.transcription import AVERAGE, PaperCell, Values

HUNDRED = Decimal(100)


@dataclass(frozen=True)
class Check:
    """One relation, and whether the printed numbers satisfy it."""

    relation: str
    """Name of the kind: a key of `RELATIONS`."""
    place: str
    cells: tuple[str, ...]
    expected: str
    printed: str
    holds: bool

    @property
    def key(self) -> str:
        """Unique."""
        return f"{self.relation}:{self.place}"


def micro_f1_from_parts(values: Values) -> Iterator[Check]:
    """Micro-F1 = 2PR / (P + R) of micro-P and micro-R (appendix E)."""
    for row in _rows(values, "micro_f1", "micro_precision", "micro_recall"):
        f1, precision, recall = row
        low, high = _harmonic_range(precision, recall)
        holds = low - f1.half <= f1.value <= high + f1.half
        yield Check("micro-f1", f1.key, _keys(row), f"{low:.2f} to {high:.2f}", str(f1.value), holds=holds)


def macro_f1_from_parts(values: Values) -> Iterator[Check]:
    """Macro-F1 is 2PR / (P + R) of macro-P and macro-R (convention `caml`) or no more than that (all others).

    The harmonic mean is concave, so the mean of single labels' F1 never exceeds that of the means (Jensen).
    """
    for row in _rows(values, "macro_f1", "macro_precision", "macro_recall"):
        f1, precision, recall = row
        low, high = _harmonic_range(precision, recall)
        exact = f1.convention == "caml"
        holds = f1.value <= high + f1.half and (not exact or f1.value >= low - f1.half)
        expected = f"{low:.2f} to {high:.2f}" if exact else f"at most {high:.2f}"
        yield Check("macro-f1", f1.key, _keys(row), expected, str(f1.value), holds=holds)


def hits_by_depth(values: Values) -> Iterator[Check]:
    """k x P@k counts hits: from k to k' it does not fall and grows by at most k' - k."""
    for first, second, k, deeper in _depths(values):
        low = k * (first.value - first.half)
        high = k * (first.value + first.half) + (deeper - k) * HUNDRED
        hits = deeper * second.value
        holds = low <= hits + deeper * second.half and hits - deeper * second.half <= high
        yield Check(
            "hits", second.key, (first.key, second.key), f"{low / HUNDRED:.3f} to {high / HUNDRED:.3f} hits",
            f"{hits / HUNDRED:.3f}", holds=holds,
        )  # fmt: skip


def precision_by_depth(values: Values) -> Iterator[Check]:
    """Deeper ranks are no more precise than the ranks before them: what a useful ranking does, not an identity."""
    for first, second, k, deeper in _depths(values):
        between = (deeper * second.value - k * first.value) / (deeper - k)
        yield Check(
            "depth", second.key, (first.key, second.key), f"at most {first.value}",
            f"{between:.1f} at ranks {k + 1}-{deeper}", holds=between <= first.value,
        )  # fmt: skip


def enough_labels(values: Values) -> Iterator[Check]:
    """k x P@k hits need as many labels: at most min(k, mean of labels per document), by Jensen on min(., k)."""
    means = {cell.dataset: cell for cell in values.cells.values() if cell.column == "labels_per_document_mean"}
    for cell in values.cells.values():
        if cell.dataset in means and (k := _depth(cell)):
            ceiling = min(Decimal(k), means[cell.dataset].value + means[cell.dataset].half)
            hits = k * cell.value / HUNDRED
            yield Check(
                "labels", cell.key, (cell.key, means[cell.dataset].key), f"at most {ceiling} hits", f"{hits:.3f}",
                holds=hits <= ceiling,
            )  # fmt: skip


def splits(values: Values) -> Iterator[Check]:
    """Shares of a split follow from published counts and sum to 100; documents are their sum."""
    parts = ("train_percent", "val_percent", "test_percent")
    for dataset in ("mimic3_full", "mimic4_full"):
        row = values.within(f"T7/{dataset}/corpus")
        published = values.published[f"{dataset}_split"]
        documents = sum(published.counts)
        for part, count in zip(parts, published.counts, strict=True):
            share, cell = HUNDRED * count / documents, row[part]
            holds = abs(share - cell.value) <= cell.half
            yield Check("split", cell.key, (cell.key, published.name), f"{share:.3f}", str(cell.value), holds=holds)
        total = sum((row[part].value for part in parts), Decimal(0))
        keys = tuple(row[part].key for part in parts)
        slack = sum((row[part].half for part in parts), Decimal(0))
        yield Check("split", f"T7/{dataset}/sum", keys, "100", str(total), holds=abs(total - HUNDRED) <= slack)
        for cell in values.cells.values():
            if cell.dataset == dataset and cell.column == "documents":
                holds = cell.value == documents
                yield Check("split", cell.key, (cell.key, published.name), str(documents), str(cell.value), holds=holds)


def words_per_document(values: Values) -> Iterator[Check]:
    """A mean of non-negative counts is at least (Q1 + median + Q3) / 4 (a quarter of documents lies above each)."""
    row = values.within("T7/mimic3_full/corpus")
    quartiles = [row[f"words_{name}"] for name in ("q1", "median", "q3")]
    least = sum((cell.value for cell in quartiles), Decimal(0)) / 4
    mean = values.cells["S1/mimic3_full/corpus/tokens_mean"]
    keys = (mean.key, *(cell.key for cell in quartiles))
    yield Check("words", mean.key, keys, f"at least {least}", str(mean.value), holds=mean.value + mean.half >= least)


def documents_per_label(values: Values) -> Iterator[Check]:
    """Mean documents of a label = training documents x mean labels of a document / labels."""
    for dataset in ("eurlex4k", "wiki10_31k"):
        row = values.within(f"T8/{dataset}/corpus")
        mean, cell = row["labels_per_document_mean"], row["documents_per_label_mean"]
        ratio = row["train_documents"].value / row["labels"].value
        low, high = (ratio * (mean.value + side) for side in (-mean.half, mean.half))
        holds = low - cell.half <= cell.value <= high + cell.half
        keys = (cell.key, *(row[name].key for name in ("train_documents", "labels", "labels_per_document_mean")))
        yield Check("per-label", cell.key, keys, f"{low:.2f} to {high:.2f}", str(cell.value), holds=holds)


def _rows(values: Values, *columns: str) -> Iterator[tuple[PaperCell, ...]]:
    """Rows that have all these columns."""
    for cell in values.cells.values():
        row = values.within(cell.place)
        if cell.column == columns[0] and all(column in row for column in columns):
            yield tuple(row[column] for column in columns)


def _keys(cells: tuple[PaperCell, ...]) -> tuple[str, ...]:
    return tuple(cell.key for cell in cells)


def _harmonic_range(precision: PaperCell, recall: PaperCell) -> tuple[Decimal, Decimal]:
    """Harmonic mean at both ends of what rounding leaves open."""
    ends = ((precision.value + side * precision.half, recall.value + side * recall.half) for side in (-1, 1))
    low, high = (2 * p * r / (p + r) for p, r in ends)
    return low, high


def _depth(cell: PaperCell) -> int:
    """k of P@k in percent; 0 for another metric."""
    depth = re.fullmatch(r"p@(\d+)", cell.column)
    return int(depth[1]) if depth and cell.value > 1 else 0


def _depths(values: Values) -> Iterator[tuple[PaperCell, PaperCell, int, int]]:
    """Neighbouring P@k and P@k' of a row."""
    for place in dict.fromkeys(cell.place for cell in values.cells.values() if cell.system != AVERAGE):
        row = sorted((cell for cell in values.within(place).values() if _depth(cell)), key=_depth)
        for first, second in pairwise(row):
            yield first, second, _depth(first), _depth(second)
