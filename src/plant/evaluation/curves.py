"""Area under the ROC curve and average precision per label, on weighted documents.

For a label, let g run over its distinct scores from the highest down, and let (weighted) P_g be the positives and
T_g the negatives at that score, R_g and N_g the positives and negatives at or above it:

    AP  = sum_g P_g / P * R_g / (R_g + N_g)
    AUC = sum_g P_g (N - N_g + T_g / 2) / (P N)

as scikit-learn defines both, ties included. A label's documents are sorted once, whatever the number of resamples;
a few resamples are summed with NumPy, many by a compiled loop (`curves_kernel.py`; measured: 150 ms against 10 ms
for 300 documents, 150 labels and 1000 resamples, while loading the compiler takes half a second).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from plant.f1 import ordered_codes

BLOCK = 4_000_000  # entries that are sorted at once: about 100 MB
FEW = 8  # resamples up to which NumPy is faster than loading the compiled loop
NEVER = ordered_codes(np.array([-np.inf]))[0]  # the code of "no score"


@dataclass(frozen=True)
class Kept:
    """What is known where only the K best labels of each document were kept."""

    scores: sp.csr_array
    """(N, L): the top K and every true label."""
    bound: np.ndarray
    """(N,): a label that was not kept scores at most this (the K-th score; -inf where nothing was cut off)."""


@dataclass(frozen=True)
class Entries:
    """(label, document) pairs, sorted by (label, score descending)."""

    starts: np.ndarray
    """(labels + 1,): the entries of label i are starts[i]:starts[i + 1]."""
    documents: np.ndarray
    codes: np.ndarray
    """Scores as ordered codes (`f1.ordered_codes`)."""
    truth: np.ndarray
    signs: np.ndarray
    """+1; -1 takes a kept document out of the count of the upper bounds."""


@dataclass(frozen=True)
class _Above:
    """Weighted documents whose bound lies at or above a score."""

    codes: np.ndarray
    """(N,), ascending codes of the bounds."""
    sums: np.ndarray
    """(N + 1, B): weight of the documents from the n-th on."""

    def rows(self, codes: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.codes, codes, side="left")


def auc_and_precision(
    scores: np.ndarray | Kept, truth: sp.csr_array, weights: np.ndarray, *, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Area under the ROC curve and average precision of each label in each resample.

    Args:
        scores: (N, L), -inf is ranked last and never retrieved (a positive there adds nothing to AP, and half to
            AUC against an equal negative). With `Kept`, AUC is not defined and AP is a lower bound: a label that
            was not kept is taken to score as much as it possibly can.
        truth: (N, L), boolean.
        weights: (N, B), whole numbers, not negative.
        members: (L,), boolean: the labels to compute; the others are NaN.

    Returns:
        Two (L, B) arrays of fractions in [0, 1], higher is better. NaN: no positive (AP), or no positive or no
        negative (AUC).
    """
    auc, precision = (np.full((truth.shape[1], weights.shape[1]), np.nan) for _ in range(2))
    above = _above_bound(scores, weights) if isinstance(scores, Kept) else None
    wanted = np.flatnonzero(members & (np.bincount(truth.indices, minlength=truth.shape[1]) > 0))
    width = max(1, BLOCK // max(1, truth.shape[0]))
    for start in range(0, wanted.size, width):
        labels = wanted[start : start + width]
        auc[labels], precision[labels] = _areas(_entries(scores, truth, labels), weights, above)
    if isinstance(scores, Kept):
        auc[:] = np.nan
    return auc, precision


def micro_auc(scores: np.ndarray, truth: sp.csr_array, weights: np.ndarray) -> np.ndarray:
    """(B,), area under the ROC curve over all (document, label) pairs; NaN without a positive or a negative."""
    documents = np.repeat(np.arange(scores.shape[0]), scores.shape[1])
    entries = _sort(ordered_codes(scores).reshape(1, -1), truth.toarray().reshape(1, -1), documents)
    return _areas(entries, weights, None, copies=scores.shape[1])[0][0]


def _areas(
    entries: Entries, weights: np.ndarray, above: _Above | None, *, copies: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """(labels, B) AUC and AP; `copies` is how often a label's list holds each document."""
    total = copies * weights.sum(axis=0, dtype=np.float64)
    if above is None:
        sums, rows = np.zeros((1, weights.shape[1])), np.zeros(entries.codes.size, dtype=np.int64)
    else:
        sums, rows = above.sums, above.rows(entries.codes)
    if weights.shape[1] > FEW:
        from plant.evaluation.curves_kernel import areas  # loads the compiler

        auc, precision = (np.empty((entries.starts.size - 1, weights.shape[1])) for _ in range(2))
        fields = (entries.starts, entries.documents, entries.codes, entries.truth, entries.signs)
        areas(*fields, rows, sums, np.ascontiguousarray(weights, dtype=np.float32), total, NEVER, auc, precision)
        return auc, precision
    columns = [column_areas(entries, weights[:, b], total[b], sums[rows, b]) for b in range(weights.shape[1])]
    auc, precision = (np.stack(parts, axis=1) for parts in zip(*columns, strict=True))
    return auc, precision


def column_areas(
    entries: Entries, weights: np.ndarray, total: float, above: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(labels,) AUC and AP on documents with the weights (N,); `above` are the bounds above each entry."""
    owner = np.repeat(np.arange(entries.starts.size - 1), np.diff(entries.starts))
    drawn = weights[entries.documents].astype(np.float64)
    sums = np.stack([np.where(entries.truth, drawn, 0), np.where(entries.truth, 0, drawn * entries.signs)])
    sums = np.concatenate([np.zeros((2, 1)), np.cumsum(sums, axis=1)], axis=1)
    last = np.flatnonzero((np.diff(entries.codes.astype(np.int64), append=-1) != 0) | (np.diff(owner, append=-1) != 0))
    owner, codes, above = owner[last], entries.codes[last], above[last]  # one row a distinct score from here on
    begin = sums[:, entries.starts[:-1]]
    here = sums[:, last + 1] - begin[:, owner]
    before = np.concatenate([np.zeros((2, 1)), here[:, :-1]], axis=1)
    before[:, np.diff(owner, prepend=-1) != 0] = 0
    (hits, ties), (found, seen) = here - before, here
    positives = sums[0, entries.starts[1:]] - begin[0]
    negatives = total - positives
    precise = np.where(codes > NEVER, hits, 0) * _divide(found, found + seen + above, 0.0)
    pairs = hits * (negatives[owner] - seen + ties / 2)
    size = positives.size
    return (
        _divide(np.bincount(owner, pairs, minlength=size), positives * negatives, np.nan),
        _divide(np.bincount(owner, precise, minlength=size), positives, np.nan),
    )


def _entries(scores: np.ndarray | Kept, truth: sp.csr_array, labels: np.ndarray) -> Entries:
    if isinstance(scores, Kept):
        return _kept_entries(scores, truth, labels)
    codes = ordered_codes(np.ascontiguousarray(scores[:, labels].T))
    return _sort(codes, truth[:, labels].toarray().T, np.arange(truth.shape[0]))


def _sort(codes: np.ndarray, truth: np.ndarray, documents: np.ndarray) -> Entries:
    """Entries of (labels, n) codes; column i belongs to documents[i]."""
    # One 64-bit key (inverted score, document, truth): sorting keys is faster than an argsort and two gathers.
    keys = (~codes).astype(np.uint64) << np.uint64(32)
    keys |= (documents.astype(np.uint64) << np.uint64(1)) | truth.astype(np.uint64)
    keys.sort(axis=1)
    keys = keys.ravel()
    starts = np.arange(codes.shape[0] + 1) * codes.shape[1]
    low = (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    descending = ~(keys >> np.uint64(32)).astype(np.uint32)
    return Entries(starts, (low >> 1).astype(np.int32), descending, (low & 1) > 0, np.ones(keys.size, dtype=np.int8))


def _kept_entries(kept: Kept, truth: sp.csr_array, labels: np.ndarray) -> Entries:
    """Kept entries of some labels, each with a second one that takes its document out of the bounds' count."""
    entries = kept.scores[:, labels].tocoo()
    documents, local = (coordinate.astype(np.int64) for coordinate in entries.coords)
    true = np.asarray(truth[:, labels].toarray()[documents, local])
    bound = kept.bound[documents]
    cut = bound > -np.inf
    codes = ordered_codes(np.concatenate([entries.data, bound[cut]]))
    local, documents = np.concatenate([local, local[cut]]), np.concatenate([documents, documents[cut]])
    true = np.concatenate([true, np.zeros(int(cut.sum()), dtype=bool)])
    signs = np.ones(codes.size, dtype=np.int8)
    signs[entries.data.size :] = -1
    order = np.lexsort((~codes, local))
    starts = np.concatenate([[0], np.cumsum(np.bincount(local, minlength=labels.size))])
    return Entries(starts, documents[order].astype(np.int32), codes[order], true[order], signs[order])


def _above_bound(kept: Kept, weights: np.ndarray) -> _Above:
    codes = ordered_codes(kept.bound)
    order = np.argsort(codes, kind="stable")
    counted = np.where((kept.bound > -np.inf)[order, None], weights[order], 0)
    sums = np.zeros((codes.size + 1, weights.shape[1]))
    sums[:-1] = np.cumsum(counted[::-1], axis=0, dtype=np.float64)[::-1]
    return _Above(codes[order], sums)


def _divide(numerator: np.ndarray, denominator: np.ndarray, undefined: float) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.full(numerator.shape, undefined), where=denominator > 0)
