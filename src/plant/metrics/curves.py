"""Area under the ROC curve and average precision per label, on weighted documents.

For a label, let g run over its distinct scores from the highest down, and let (weighted) P_g be the positives and
T_g the negatives at that score, R_g and N_g the positives and negatives at or above it:

    AP  = sum_g P_g / P * R_g / (R_g + N_g)
    AUC = sum_g P_g (N - N_g + T_g / 2) / (P N)

as scikit-learn defines both, ties included. Each resample on its own is a walk down every label's ranking
(`column_areas`, NumPy: the slow twin). Many resamples are summed together by compiled code (`curves_kernel.py`), with
equal results to the last bit; loading it takes half a second, so a few resamples go the slow way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from plant.metrics.f1 import ordered_codes
from plant.metrics.resamples import Resamples

BLOCK = 4_000_000  # entries that are sorted at once: about 100 MB
NEVER = ordered_codes(np.array([-np.inf]))[0]  # the code of "no score"


@dataclass(frozen=True)
class Kept:
    """What is known where only the K best labels of each document were kept."""

    scores: sp.csr_array
    """(N, L): the top K and every true label."""
    bound: np.ndarray
    """(N,): a label that was not kept scores at most this (the K-th score; -inf where nothing was cut off)."""


class Columns(Protocol):
    """Scores (N, L) that are made when they are asked for: all together would need too much memory."""

    def columns(self, labels: np.ndarray) -> np.ndarray:
        """(N, labels), float32."""
        ...


class Rows(Protocol):
    """As `Columns`, by documents."""

    def rows(self, documents: slice) -> np.ndarray:
        """(documents, L), float32."""
        ...


@dataclass(frozen=True)
class Entries:
    """(label, document) pairs, those of a label side by side."""

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
    scores: np.ndarray | Columns | Kept, truth: sp.csr_array, weights: np.ndarray | Resamples, *, members: np.ndarray
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
    resamples = Resamples.of(weights, labels=truth.shape[1])
    auc, precision = (np.full((truth.shape[1], resamples.number), np.nan) for _ in range(2))
    above = _above_bound(scores, resamples.weights) if isinstance(scores, Kept) else None
    wanted = np.flatnonzero(members & (np.bincount(truth.indices, minlength=truth.shape[1]) > 0))
    width = max(1, BLOCK // max(1, truth.shape[0]))
    for start in range(0, wanted.size, width):
        labels = wanted[start : start + width]
        entries = _entries(scores, truth, labels, ordered=resamples.packed is None)
        auc[labels], precision[labels] = _areas(entries, resamples, above)
    if isinstance(scores, Kept):
        auc[:] = np.nan
    return auc, precision


def micro_auc(scores: np.ndarray | Rows, truth: sp.csr_array, weights: np.ndarray | Resamples) -> np.ndarray:
    """(B,), area under the ROC curve over all (document, label) pairs; NaN without a positive or a negative."""
    resamples = Resamples.of(weights, labels=truth.shape[1])
    if resamples.packed is not None:
        return _compiled_micro_auc(scores, truth, resamples)
    codes = ordered_codes(_rows(scores, slice(0, truth.shape[0]))).reshape(1, -1)
    documents = np.repeat(np.arange(truth.shape[0], dtype=np.int32), truth.shape[1])
    entries = _sort(codes, truth.toarray().reshape(1, -1), documents)
    return _areas(entries, resamples, None, copies=truth.shape[1])[0][0]


def _areas(
    entries: Entries, resamples: Resamples, above: _Above | None, *, copies: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """(labels, B) AUC and AP; `copies` is how often a label's list holds each document."""
    weights, total = resamples.weights, copies * resamples.total
    if resamples.packed is not None:
        return _compiled_areas(entries, resamples, total, above)
    none = np.zeros(entries.codes.size)
    rows = None if above is None else above.rows(entries.codes)
    columns = [
        column_areas(entries, weights[:, b], total[b], none if above is None else above.sums[rows, b])
        for b in range(weights.shape[1])
    ]
    auc, precision = (np.stack(parts, axis=1) for parts in zip(*columns, strict=True))
    return auc, precision


def _compiled_areas(
    entries: Entries, resamples: Resamples, total: np.ndarray, above: _Above | None
) -> tuple[np.ndarray, np.ndarray]:
    from plant.kernels.curves import areas

    levels, level_starts = _levels(entries)
    order, cuts = _place(entries, levels, level_starts)
    rows, sums = np.zeros(levels.size, dtype=np.int64), np.zeros((1, total.size))
    if above is not None:
        rows, sums = above.rows(levels), above.sums
    auc, precision = (np.empty((entries.starts.size - 1, total.size)) for _ in range(2))
    areas(
        order, cuts, level_starts, levels > NEVER, resamples.packed, resamples.limit, rows, sums, total, auc, precision
    )  # fmt: skip
    return auc, precision


def _levels(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
    """Distinct codes of each label's positives, from the highest down, and (labels + 1,) where each label's begin."""
    true = np.flatnonzero(entries.truth)
    owners = np.searchsorted(entries.starts, true, side="right").astype(np.uint64) - np.uint64(1)
    keys = np.unique((owners << np.uint64(32)) | ~entries.codes[true])
    starts = np.searchsorted(keys, np.arange(entries.starts.size, dtype=np.uint64) << np.uint64(32))
    return ~keys.astype(np.uint32), starts


def _place(entries: Entries, levels: np.ndarray, level_starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Documents in the buckets of their levels, and where each bucket begins (`curves_kernel.place`)."""
    from plant.kernels.curves import BUCKETS, place

    order, cuts = np.empty(entries.codes.size, dtype=np.int32), np.empty(BUCKETS * levels.size + 1, dtype=np.int64)
    fields = (entries.starts, entries.documents, entries.codes, entries.truth, entries.signs)
    place(*fields, levels, level_starts, order, cuts)
    return order, cuts


def _compiled_micro_auc(scores: np.ndarray | Rows, truth: sp.csr_array, resamples: Resamples) -> np.ndarray:
    """One list of all pairs; sums of its buckets are added up over blocks of documents, to bound the memory."""
    from plant.kernels.curves import BUCKETS, totals

    documents, labels = truth.shape
    height = max(1, BLOCK // max(1, labels))
    blocks = [slice(first, min(first + height, documents)) for first in range(0, documents, height)]
    codes = [np.unique(ordered_codes(_rows(scores, block)[truth[block].nonzero()])) for block in blocks]
    levels = np.unique(np.concatenate(codes))[::-1].copy()
    sums = np.zeros((3 * levels.size, resamples.number))  # of each level: its run, ties, positives
    for block in blocks:
        ids = np.repeat(np.arange(block.start, block.stop, dtype=np.int32), labels)
        entries = _unsorted(
            ordered_codes(_rows(scores, block)).reshape(1, -1), truth[block].toarray().reshape(1, -1), ids
        )
        order, cuts = _place(entries, levels, np.array([0, levels.size]))
        cuts = np.append(cuts[:-1].reshape(-1, BUCKETS)[:, ::2], cuts[-1])  # no entry is signed out here
        totals(order, cuts, resamples.packed, resamples.limit, sums)
    auc = np.empty(resamples.number)
    for part in resamples.parts():
        run, tie, hit = (sums[k::3, part] for k in range(3))
        positives = hit.sum(axis=0)
        every = positives * (labels * resamples.total[part] - positives)
        pairs = every + (hit * (tie / 2 - np.cumsum(run + tie, axis=0))).sum(axis=0)
        auc[part] = _divide(pairs, every, np.nan)
    return auc


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


def _rows(scores: np.ndarray | Rows, documents: slice) -> np.ndarray:
    return scores[documents] if isinstance(scores, np.ndarray) else scores.rows(documents)


def _entries(scores: np.ndarray | Columns | Kept, truth: sp.csr_array, labels: np.ndarray, *, ordered: bool) -> Entries:
    if isinstance(scores, Kept):
        return _kept_entries(scores, truth, labels)
    columns = scores[:, labels] if isinstance(scores, np.ndarray) else scores.columns(labels)
    codes = ordered_codes(np.ascontiguousarray(columns.T))
    true = np.ascontiguousarray(truth[:, labels].toarray().T)
    return (_sort if ordered else _unsorted)(codes, true, np.arange(truth.shape[0], dtype=np.int32))


def _unsorted(codes: np.ndarray, truth: np.ndarray, documents: np.ndarray) -> Entries:
    """Entries of (labels, n) codes; column i belongs to documents[i]."""
    starts = np.arange(codes.shape[0] + 1) * codes.shape[1]
    repeated = np.tile(documents, codes.shape[0]) if codes.shape[0] > 1 else documents
    return Entries(starts, repeated, codes.ravel(), truth.ravel(), np.ones(codes.size, dtype=np.int8))


def _sort(codes: np.ndarray, truth: np.ndarray, documents: np.ndarray) -> Entries:
    """As `_unsorted`, a label's entries from the highest score down."""
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
