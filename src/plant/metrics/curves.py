"""Area under the ROC curve and average precision, as scikit-learn defines them (formulas in `kernels/curves.py`).

Shapes: N documents, L labels, B resamples. `weights` says how often each document is drawn: (N,) for one resample,
(N, B) for B of them; None: each document once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from plant.metrics.arrays import BLOCK, ordered_codes, ratio


def label_curves(
    y_true: sp.csr_array,
    y_score: np.ndarray | sp.csr_array,
    *,
    weights: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    bound: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """ROC AUC and average precision of each label, from one sort.

    Args:
        y_true: (N, L), boolean.
        y_score: (N, L), higher is better. -inf is ranked last and never retrieved: a positive with -inf adds nothing
            to AP, and a half to AUC against a negative with -inf. A sparse array holds the known scores.
        weights: (N,) or (N, B), whole numbers.
        labels: (L,), boolean: the labels to compute; the others are NaN. None: all labels.
        bound: (N,), for a sparse array: upper bound of each document's unknown scores. None: they are -inf.

    Returns:
        AUC and AP, each (L,) or (L, B), fractions in [0, 1]; higher is better. AP is NaN without a positive, AUC
        without a positive or a negative. From a sparse array AUC is NaN, and AP is a lower bound: unknown scores are at
        their bound.
    """
    columns = _columns(weights, y_true.shape[0])
    auc, precision = (np.full((y_true.shape[1], columns.shape[1]), np.nan) for _ in range(2))
    present = np.bincount(y_true.indices, minlength=y_true.shape[1]) > 0
    wanted = np.flatnonzero(present if labels is None else present & labels)
    width = max(1, BLOCK // max(1, y_true.shape[0]))
    for start in range(0, wanted.size, width):
        block = wanted[start : start + width]
        auc[block], precision[block] = _areas(y_true[:, block], y_score[:, block], columns, bound)
    if not isinstance(y_score, np.ndarray):
        auc[:] = np.nan
    return _shaped(auc, weights), _shaped(precision, weights)


def micro_roc_auc(y_true: sp.csr_array, y_score: np.ndarray, *, weights: np.ndarray | None = None) -> np.ndarray:
    """Area under the ROC curve over all (document, label) pairs.

    Args:
        y_true: (N, L), boolean.
        y_score: (N, L), higher is better; -inf is ranked last.
        weights: (N,) or (N, B), whole numbers.

    Returns:
        A fraction in [0, 1], or (B,) fractions; higher is better. NaN without a positive or a negative.

    >>> float(micro_roc_auc(sp.csr_array([[True, False], [False, False]]), np.array([[0.5, 0.7], [0.1, 0.2]])).round(3))
    0.667
    """
    from plant.kernels.curves import level_sums  # loads numba

    columns = _columns(weights, y_true.shape[0])
    height = max(1, BLOCK // max(1, y_true.shape[1]))
    blocks = [slice(first, first + height) for first in range(0, y_true.shape[0], height)]
    of_positives = [np.unique(ordered_codes(y_score[block][y_true[block].nonzero()])) for block in blocks]
    levels = np.unique(np.concatenate([np.zeros(0, np.uint32), *of_positives]))[::-1].copy()
    sums = np.zeros((levels.size, 3, columns.shape[1]))
    for block in blocks:
        level_sums(ordered_codes(y_score[block]), y_true[block].toarray(), levels, columns[block], sums)
    run, tie, hit = sums[:, 0], sums[:, 1], sums[:, 2]
    positives = hit.sum(axis=0)
    every = positives * (y_true.shape[1] * columns.sum(axis=0, dtype=np.float64) - positives)
    pairs = every + (hit * (tie / 2 - np.cumsum(run + tie, axis=0))).sum(axis=0)
    return _shaped(ratio(pairs, every, np.nan), weights)


def mean_over_labels(values: np.ndarray) -> np.ndarray:
    """Mean of (L,) or (L, B) over the labels that are not NaN; NaN if all are NaN.

    >>> float(mean_over_labels(np.array([0.5, np.nan, 1.0])))
    0.75
    """
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0), np.nan)


class _Ranked(NamedTuple):
    """Entries of some labels for `kernels.curves.curve_areas`: (starts, documents, codes, truth, signs)."""

    starts: np.ndarray
    documents: np.ndarray
    codes: np.ndarray
    truth: np.ndarray
    signs: np.ndarray


def _areas(
    y_true: sp.csr_array, y_score: np.ndarray | sp.csr_array, weights: np.ndarray, bound: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """AUC and AP (labels, B) of a block of labels."""
    from plant.kernels.curves import curve_areas  # loads numba

    others, known = np.zeros((1, weights.shape[1])), np.zeros(0, np.uint32)
    if isinstance(y_score, np.ndarray):
        entries = _sorted_columns(y_score, y_true)
    else:
        bound = np.full(y_true.shape[0], -np.inf, np.float32) if bound is None else bound
        entries = _sorted_entries(y_score, y_true, bound)
        others, known = _weight_from_bound_on(bound, weights)
    rows = np.searchsorted(known, entries.codes, side="left")
    retrieved = entries.codes > ordered_codes(np.array([-np.inf]))
    auc, precision = (np.empty((y_true.shape[1], weights.shape[1])) for _ in range(2))
    total = weights.sum(axis=0, dtype=np.float64)
    curve_areas(*entries, retrieved, weights, total, others, rows, auc, precision)
    return auc, precision


def _sorted_columns(y_score: np.ndarray, y_true: sp.csr_array) -> _Ranked:
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


def _sorted_entries(y_score: sp.csr_array, y_true: sp.csr_array, bound: np.ndarray) -> _Ranked:
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


def _weight_from_bound_on(bound: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the bounds, ascending (N,), and total weight of the documents from the n-th lowest bound on (N + 1,
    B)."""
    codes = ordered_codes(bound)
    order = np.argsort(codes, kind="stable")
    counted = np.where((bound > -np.inf)[order, None], weights[order], 0)
    sums = np.zeros((codes.size + 1, weights.shape[1]))
    sums[:-1] = np.cumsum(counted[::-1], axis=0, dtype=np.float64)[::-1]
    return sums, codes[order]


def _columns(weights: np.ndarray | None, documents: int) -> np.ndarray:
    """The weights as (N, B) float32, contiguous."""
    columns = np.ones((documents, 1)) if weights is None else weights.reshape(documents, -1)
    return np.ascontiguousarray(columns, dtype=np.float32)


def _shaped(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Values (..., B), without their last axis if the weights are of one resample."""
    return values if weights is not None and weights.ndim == 2 else values[..., 0]
