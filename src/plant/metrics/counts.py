"""Precision, recall and F1 of predicted labels, each written as a function of counts.

Every metric is called as `metric(y_true, y_pred, weights=None)`:

- `y_true`, `y_pred`: (N, L) boolean sparse arrays of N documents and L labels. To compute several metrics of the same
  arrays, pass the result of `count` as `y_pred`;
- `weights`: how often each document is drawn, (N,) for one resample or (N, B) for B of them; None: each document once.

It returns a fraction in [0, 1], or (B,) fractions. Higher is better. NaN: the metric is not defined.

>>> y_true = scipy.sparse.csr_array([[True, False], [True, True]])
>>> y_pred = scipy.sparse.csr_array([[True, True], [False, True]])
>>> float(micro_f1(y_true, y_pred).round(3)), float(macro_recall_all(y_true, y_pred))
(0.667, 0.75)
>>> micro_f1(y_true, y_pred, weights=np.array([[1, 2], [1, 0]])).round(3).tolist()  # second resample: document 0 twice
[0.667, 0.667]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import numpy as np
import scipy  # loads its parts when they are used: the names of metrics need none

from plant.metrics.arrays import Array, Sparse, Weights, mean_of, ratio


@dataclass(frozen=True)
class Counts:
    """Weighted numbers of documents of each label, (L,) or (L, B)."""

    hits: Array
    """True positives TP."""
    predicted: Array
    """TP + FP."""
    positives: Array
    """TP + FN."""

    def of(self, labels: Array | slice) -> Counts:
        """The counts of some labels."""
        return Counts(self.hits[labels], self.predicted[labels], self.positives[labels])


def count(y_true: Sparse, y_pred: Sparse | Counts, weights: Weights = None) -> Counts:
    """The counts of every label. Counts are returned unchanged."""
    if isinstance(y_pred, Counts):
        return y_pred
    weights = np.ones(y_true.shape[0]) if weights is None else weights
    arrays = (y_pred.multiply(y_true), y_pred, y_true)
    return Counts(
        *(
            np.asarray(scipy.sparse.csr_array(each.T, dtype=weights.dtype) @ weights, dtype=np.float64)
            for each in arrays
        )
    )


def label_f1(counts: Counts) -> Array:
    """2 TP / (predicted + positives) of each label, (L,) or (L, B); 0 for a label that is neither predicted nor
    true."""
    return ratio(2 * counts.hits, counts.predicted + counts.positives)


COUNT_METRICS: dict[str, Callable[..., Array]] = {}
"""Metric name -> function."""


def _metric(of_counts: Callable[[Counts], Array]) -> Callable[..., Array]:
    """Make `metric(y_true, y_pred, weights=None)` of a function of counts, and list it."""

    @wraps(of_counts)
    def metric(y_true: Sparse, y_pred: Sparse | Counts, weights: Weights = None) -> Array:
        return of_counts(count(y_true, y_pred, weights))

    COUNT_METRICS[metric.__name__] = metric
    return metric


@_metric
def macro_f1_present(counts: Counts) -> Array:
    """Mean F1 over the labels with a positive (Edin et al. 2023); NaN if no label has one."""
    return _mean(label_f1(counts), counts.positives > 0)


@_metric
def macro_f1_all(counts: Counts) -> Array:
    """Mean F1 over all labels (PLANT, appendix E); a label that is neither predicted nor true counts as 0."""
    return _mean(label_f1(counts))


@_metric
def macro_f1_caml(counts: Counts) -> Array:
    """Harmonic mean of macro-precision and macro-recall over all labels (Mullenbach et al. 2018)."""
    precision, recall = (_mean(ratio(counts.hits, all_of)) for all_of in (counts.predicted, counts.positives))
    return np.where(np.isnan(precision), np.nan, ratio(2 * precision * recall, precision + recall))[()]


@_metric
def macro_precision_all(counts: Counts) -> Array:
    """Mean TP / predicted over all labels (appendix E); a label that is never predicted counts as 0."""
    return _mean(ratio(counts.hits, counts.predicted))


@_metric
def macro_recall_all(counts: Counts) -> Array:
    """Mean TP / positives over all labels (appendix E); a label without a positive counts as 0."""
    return _mean(ratio(counts.hits, counts.positives))


@_metric
def macro_precision_present(counts: Counts) -> Array:
    """Mean TP / predicted over the labels with a positive; a label that is never predicted counts as 0."""
    return _mean(ratio(counts.hits, counts.predicted), counts.positives > 0)


@_metric
def macro_recall_present(counts: Counts) -> Array:
    """Mean TP / positives over the labels with a positive; NaN if no label has one."""
    return _mean(ratio(counts.hits, counts.positives), counts.positives > 0)


@_metric
def micro_precision(counts: Counts) -> Array:
    """Sum of TP / sum of predictions (appendix E); NaN without any prediction."""
    return ratio(counts.hits.sum(axis=0), counts.predicted.sum(axis=0), np.nan)


@_metric
def micro_recall(counts: Counts) -> Array:
    """Sum of TP / sum of positives (appendix E); NaN without any positive."""
    return ratio(counts.hits.sum(axis=0), counts.positives.sum(axis=0), np.nan)


@_metric
def micro_f1(counts: Counts) -> Array:
    """2 sum TP / (sum of predictions + sum of positives) (appendix E); NaN without both."""
    total = counts.predicted.sum(axis=0) + counts.positives.sum(axis=0)
    return ratio(2 * counts.hits.sum(axis=0), total, np.nan)


def _mean(values: Array, counted: Array | None = None) -> Array:
    """Mean over labels, or over the counted ones; NaN without a label."""
    if counted is not None:
        return mean_of(values, counted)
    return values.mean(axis=0) if values.shape[0] else np.full(values.shape[1:], np.nan)[()]
