"""Identities and bounds: between the metrics of one row, and between the statistics of one corpus.

The functions are relations; see `plant.paper.audit.relations` for their form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

from plant.paper.values.transcription import AVERAGE, PaperCell, PaperValues

Result = tuple[str, tuple[str, ...], str, str, bool]
"""Place, keys of the cells, what the other cells give, what is printed, whether the two agree."""
HUNDRED = Decimal(100)


def keys(*cells: PaperCell) -> tuple[str, ...]:
    return tuple(cell.key for cell in cells)


def micro_f1_from_parts(values: PaperValues) -> Iterator[Result]:
    """Micro-F1 = 2PR / (P + R) of micro-P and micro-R (appendix E)."""
    for f1, precision, recall in _rows(values, "micro_f1", "micro_precision", "micro_recall"):
        low, high = _harmonic_range(precision, recall)
        holds = low - f1.half <= f1.value <= high + f1.half
        yield f1.key, keys(f1, precision, recall), f"{low:.2f} to {high:.2f}", str(f1.value), holds


def macro_f1_from_parts(values: PaperValues) -> Iterator[Result]:
    """Macro-F1 is 2PR / (P + R) of macro-P and macro-R (convention `caml`) or no more than that (all others).

    The harmonic mean is concave. So the mean F1 of single labels is at most the F1 of the means (Jensen).
    """
    for f1, precision, recall in _rows(values, "macro_f1", "macro_precision", "macro_recall"):
        low, high = _harmonic_range(precision, recall)
        exact = f1.convention == "caml"
        holds = f1.value <= high + f1.half and (not exact or f1.value >= low - f1.half)
        expected = f"{low:.2f} to {high:.2f}" if exact else f"at most {high:.2f}"
        yield f1.key, keys(f1, precision, recall), expected, str(f1.value), holds


def hits_by_depth(values: PaperValues) -> Iterator[Result]:
    """k x P@k counts hits: from k to k' it does not fall and grows by at most k' - k."""
    for first, second, k, deeper in _depths(values):
        low = k * (first.value - first.half)
        high = k * (first.value + first.half) + (deeper - k) * HUNDRED
        hits = deeper * second.value
        holds = low <= hits + deeper * second.half and hits - deeper * second.half <= high
        expected = f"{low / HUNDRED:.3f} to {high / HUNDRED:.3f} hits"
        yield second.key, keys(first, second), expected, f"{hits / HUNDRED:.3f}", holds


def precision_by_depth(values: PaperValues) -> Iterator[Result]:
    """Deeper ranks are no more precise than the ranks before them: what a useful ranking does, not an identity."""
    for first, second, k, deeper in _depths(values):
        between = (deeper * second.value - k * first.value) / (deeper - k)
        printed = f"{between:.1f} at ranks {k + 1}-{deeper}"
        yield second.key, keys(first, second), f"at most {first.value}", printed, between <= first.value


def enough_labels(values: PaperValues) -> Iterator[Result]:
    """k x P@k hits need as many labels: at most min(k, mean of labels per document), by Jensen on min(., k)."""
    means = {cell.dataset: cell for cell in values.cells.values() if cell.column == "labels_per_document_mean"}
    for cell in values.cells.values():
        if cell.dataset in means and (k := _depth(cell)):
            mean = means[cell.dataset]
            ceiling, hits = min(Decimal(k), mean.value + mean.half), k * cell.value / HUNDRED
            yield cell.key, keys(cell, mean), f"at most {ceiling} hits", f"{hits:.3f}", hits <= ceiling


def splits(values: PaperValues) -> Iterator[Result]:
    """Shares of a split follow from published counts and sum to 100; documents are their sum."""
    for dataset in ("mimic3_full", "mimic4_full"):
        row = values.within(f"T7/{dataset}/corpus")
        parts = [row[f"{part}_percent"] for part in ("train", "val", "test")]
        name = f"{dataset}_split"
        counts = values.published[name].counts
        for cell, count in zip(parts, counts, strict=True):
            share = HUNDRED * count / sum(counts)
            yield cell.key, (cell.key, name), f"{share:.3f}", str(cell.value), abs(share - cell.value) <= cell.half
        total, slack = (sum(numbers) for numbers in zip(*((cell.value, cell.half) for cell in parts), strict=True))
        yield f"T7/{dataset}/sum", keys(*parts), "100", str(total), abs(total - HUNDRED) <= slack
        for cell in values.cells.values():
            if (cell.dataset, cell.column) == (dataset, "documents"):
                yield cell.key, (cell.key, name), str(sum(counts)), str(cell.value), cell.value == sum(counts)


def words_per_document(values: PaperValues) -> Iterator[Result]:
    """A mean of non-negative counts is at least (Q1 + median + Q3) / 4 (a quarter of documents lies above each)."""
    row = values.within("T7/mimic3_full/corpus")
    quartiles = [row[f"words_{name}"] for name in ("q1", "median", "q3")]
    least = sum((cell.value for cell in quartiles), Decimal(0)) / 4
    mean = values.cells["S1/mimic3_full/corpus/tokens_mean"]
    yield mean.key, keys(mean, *quartiles), f"at least {least}", str(mean.value), mean.value + mean.half >= least


def documents_per_label(values: PaperValues) -> Iterator[Result]:
    """Mean documents of a label = training documents x mean labels of a document / labels."""
    for dataset in ("eurlex4k", "wiki10_31k"):
        row = values.within(f"T8/{dataset}/corpus")
        cell, documents, labels, mean = (
            row[name] for name in ("documents_per_label_mean", "train_documents", "labels", "labels_per_document_mean")
        )
        ratio = documents.value / labels.value
        low, high = (ratio * (mean.value + side) for side in (-mean.half, mean.half))
        holds = low - cell.half <= cell.value <= high + cell.half
        yield cell.key, keys(cell, documents, labels, mean), f"{low:.2f} to {high:.2f}", str(cell.value), holds


def _rows(values: PaperValues, *columns: str) -> Iterator[tuple[PaperCell, ...]]:
    """The cells of these columns, for each row that has all of them."""
    for cell in values.cells.values():
        row = values.within(cell.place)
        if cell.column == columns[0] and all(column in row for column in columns):
            yield tuple(row[column] for column in columns)


def _harmonic_range(precision: PaperCell, recall: PaperCell) -> tuple[Decimal, Decimal]:
    """The harmonic mean of the smallest and of the largest numbers that are printed like these."""
    ends = ((precision.value + side * precision.half, recall.value + side * recall.half) for side in (-1, 1))
    low, high = (2 * p * r / (p + r) for p, r in ends)
    return low, high


def _depth(cell: PaperCell) -> int:
    """k of P@k in percent; 0 for another metric."""
    depth = re.fullmatch(r"p@(\d+)", cell.column)
    return int(depth[1]) if depth and cell.value > 1 else 0


def _depths(values: PaperValues) -> Iterator[tuple[PaperCell, PaperCell, int, int]]:
    """Neighbouring P@k and P@k' of a row, with k and k'."""
    for place in dict.fromkeys(cell.place for cell in values.cells.values() if cell.system != AVERAGE):
        row = sorted((cell for cell in values.within(place).values() if _depth(cell)), key=_depth)
        for first, second in pairwise(row):
            yield first, second, _depth(first), _depth(second)
