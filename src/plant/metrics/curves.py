"""Area under the ROC curve and average precision, as scikit-learn defines them (formulas in `kernels/curves.py`).

Shapes: N documents, L labels, B resamples. `weights` (N, B), whole numbers: how often each document is drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plant.metrics.arrays import BLOCK, Array, Sparse, ordered_codes, ratio


def label_curves(
    y_true: Sparse, y_score: Array | Sparse, weights: Array, *, labels: Array | None = None, bound: Array | None = None
) -> tuple[Array, Array]:
    """ROC AUC and average precision of each label, from one sort.

    Args:
        y_true: (N, L), boolean.
        y_score: (N, L), higher is better. -inf is ranked last and never retrieved: a positive with -inf adds nothing
            to AP, and a half to AUC against a negative with -inf. A sparse array holds the known scores.
        labels: (L,), boolean: the labels to compute; the others are NaN. None: all labels.
        bound: (N,), for a sparse array: upper bound of each document's unknown scores; -inf: it has none.

    Returns:
        AUC and AP, each (L, B), fractions in [0, 1]; higher is better. AP is NaN without a positive, AUC without a
        positive or a negative. From a sparse array AUC is NaN, and AP is a lower bound: unknown scores are at their
        bound.
    """
    weights = np.ascontiguousarray(weights, dtype=np.float32)
    auc, precision = (np.full((y_true.shape[1], weights.shape[1]), np.nan) for _ in range(2))
    present = np.bincount(y_true.indices, minlength=y_true.shape[1]) > 0
    wanted = np.flatnonzero(present if labels is None else present & labels)
    width = max(1, BLOCK // max(1, y_true.shape[0]))
    for start in range(0, wanted.size, width):
        block = wanted[start : start + width]
        auc[block], precision[block] = _areas(y_true[:, block], y_score[:, block], weights, bound)
    if bound is not None:
        auc[:] = np.nan
    return auc, precision


def micro_roc_auc(y_true: Sparse, y_score: Array, weights: Array) -> Array:
    """Area under the ROC curve over all pairs of a document and a label, (B,); NaN without a positive or a negative.

    Arguments as in `label_curves`; all scores must be known.
    """
    from plant.kernels.curves import level_sums  # loads numba

    weights = np.ascontiguousarray(weights, dtype=np.float32)
    height = max(1, BLOCK // max(1, y_true.shape[1]))
    blocks = [slice(first, first + height) for first in range(0, y_true.shape[0], height)]
    of_positives = [np.unique(ordered_codes(y_score[block][y_true[block].nonzero()])) for block in blocks]
    levels = np.unique(np.concatenate([np.zeros(0, np.uint32), *of_positives]))[::-1].copy()
    sums = np.zeros((levels.size, 3, weights.shape[1]))
    for block in blocks:
        level_sums(ordered_codes(y_score[block]), y_true[block].toarray(), levels, weights[block], sums)
    run, tie, hit = sums[:, 0], sums[:, 1], sums[:, 2]
    positives = hit.sum(axis=0)
    every = positives * (y_true.shape[1] * weights.sum(axis=0, dtype=np.float64) - positives)
    pairs = every + (hit * (tie / 2 - np.cumsum(run + tie, axis=0))).sum(axis=0)
    return ratio(pairs, every, np.nan)


class _Ranked(NamedTuple):
    """Entries of some labels, as `kernels.curves.curve_areas` reads them."""

    starts: Array
    documents: Array
    codes: Array
    truth: Array
    signs: Array


def _areas(y_true: Sparse, y_score: Array | Sparse, weights: Array, bound: Array | None) -> tuple[Array, Array]:
    """AUC and AP (labels, B) of a block of labels."""
    from plant.kernels.curves import curve_areas  # loads numba

    others, known = np.zeros((1, weights.shape[1])), np.zeros(0, np.uint32)
    if bound is None:
        entries = _sorted_columns(y_score, y_true)
    else:
        entries = _sorted_entries(y_score, y_true, bound)
        others, known = _weight_from_bound_on(bound, weights)
    rows = np.searchsorted(known, entries.codes, side="left")
    retrieved = entries.codes > ordered_codes(np.array([-np.inf]))
    auc, precision = (np.empty((y_true.shape[1], weights.shape[1])) for _ in range(2))
    total = weights.sum(axis=0, dtype=np.float64)
    curve_areas(*entries, retrieved, weights, total, others, rows, auc, precision)
    return auc, precision


def _sorted_columns(y_score: Array, y_true: Sparse) -> _Ranked:
    """All entries of dense columns, sorted by descending score; positives come first among equal scores."""
    # One 64-bit key per entry (inverted score, negative, document): sorting keys is faster than an argsort.
    keys = (~ordered_codes(np.ascontiguousarray(y_score.T))).astype(np.uint64) << np.uint64(32)
    keys |= (~y_true.toarray().T).astype(np.uint64) << np.uint64(31)
    keys |= np.arange(keys.shape[1], dtype=np.uint64)
    keys.sort(axis=1)
    starts = np.arange(keys.shape[0] + 1) * keys.shape[1]
    keys = keys.ravel()
    low = keys.astype(np.uint32)
    codes = ~(keys >> np.uint64(32)).astype(np.uint32)
    documents = (low & np.uint32(0x7FFFFFFF)).astype(np.int32)
    return _Ranked(starts, documents, codes, low >> 31 == 0, np.ones(keys.size, np.int8))


def _sorted_entries(y_score: Sparse, y_true: Sparse, bound: Array) -> _Ranked:
    """The known entries. Each has a second entry of sign -1 at its document's bound, where it is no unknown score."""
    entries = y_score.tocoo()
    documents, labels = (coordinate.astype(np.int64) for coordinate in entries.coords)
    truth = y_true.toarray()[documents, labels]
    cut = bound[documents] > -np.inf
    codes = ordered_codes(np.concatenate([entries.data, bound[documents[cut]]]))
    signs = np.repeat(np.array([1, -1], np.int8), [truth.size, cut.sum()])
    truth = np.concatenate([truth, np.zeros(cut.sum(), dtype=bool)])
    labels, documents = np.concatenate([labels, labels[cut]]), np.concatenate([documents, documents[cut]])
    order = np.lexsort((~truth, ~codes, labels))
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=y_true.shape[1]))])
    return _Ranked(starts, documents[order].astype(np.int32), codes[order], truth[order], signs[order])


def _weight_from_bound_on(bound: Array, weights: Array) -> tuple[Array, Array]:
    """Total weight of the documents from the n-th lowest bound on (N + 1, B), and codes of the bounds, ascending."""
    codes = ordered_codes(bound)
    order = np.argsort(codes, kind="stable")
    counted = np.where((bound > -np.inf)[order, None], weights[order], 0)
    sums = np.zeros((codes.size + 1, weights.shape[1]))
    sums[:-1] = np.cumsum(counted[::-1], axis=0, dtype=np.float64)[::-1]
    return sums, codes[order]
