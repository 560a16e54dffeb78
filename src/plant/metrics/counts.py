"""Precision, recall and F1 of predicted labels, each a function of the counts of every label.

- `macro_*_present`: mean over the labels with a positive (Edin et al. 2023); NaN if no label has one;
- `macro_*_all`: mean over all labels (PLANT, appendix E);
- `macro_f1_caml`: harmonic mean of macro-precision and macro-recall over all labels (Mullenbach et al. 2018);
- `micro_*`: from the sums of the counts over labels (appendix E); NaN if the denominator is 0.

In a macro mean a label whose own value has the denominator 0 counts as 0. Values are fractions in [0, 1], or (B,)
fractions for B resamples. Higher is better. NaN: the metric is not defined.

>>> predicted = scipy.sparse.csr_array([[True, True], [False, True]])
>>> counts = count(scipy.sparse.csr_array([[True, False], [True, True]]), predicted)
>>> float(COUNT_METRICS["micro_f1"](counts).round(3)), float(COUNT_METRICS["macro_recall_all"](counts))
(0.667, 0.75)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


def count(y_true: Sparse, y_pred: Sparse, weights: Weights = None) -> Counts:
    """The counts of every label, from boolean arrays (N, L) of N documents."""
    weights = np.ones(y_true.shape[0]) if weights is None else weights

    def total(labels: Sparse) -> Array:
        return np.asarray(scipy.sparse.csr_array(labels.T, dtype=weights.dtype) @ weights, dtype=np.float64)

    return Counts(total(y_pred.multiply(y_true)), total(y_pred), total(y_true))


def label_f1(counts: Counts) -> Array:
    """2 TP / (predicted + positives) of each label, (L,) or (L, B)."""
    return ratio(2 * counts.hits, counts.predicted + counts.positives)


def label_precision(counts: Counts) -> Array:
    """TP / predicted of each label, (L,) or (L, B)."""
    return ratio(counts.hits, counts.predicted)


def label_recall(counts: Counts) -> Array:
    """TP / positives of each label, (L,) or (L, B)."""
    return ratio(counts.hits, counts.positives)


def _all(values: Array) -> Array:
    return values.mean(axis=0) if values.shape[0] else np.full(values.shape[1:], np.nan)[()]


def _caml(counts: Counts) -> Array:
    precision, recall = _all(label_precision(counts)), _all(label_recall(counts))
    return np.where(np.isnan(precision), np.nan, ratio(2 * precision * recall, precision + recall))[()]


def _micro(above: Array, below: Array) -> Array:
    return ratio(above.sum(axis=0), below.sum(axis=0), np.nan)


COUNT_METRICS: dict[str, Callable[[Counts], Array]] = {
    "macro_f1_present": lambda counts: mean_of(label_f1(counts), counts.positives > 0),
    "macro_f1_all": lambda counts: _all(label_f1(counts)),
    "macro_f1_caml": _caml,
    "macro_precision_all": lambda counts: _all(label_precision(counts)),
    "macro_recall_all": lambda counts: _all(label_recall(counts)),
    "macro_precision_present": lambda counts: mean_of(label_precision(counts), counts.positives > 0),
    "macro_recall_present": lambda counts: mean_of(label_recall(counts), counts.positives > 0),
    "micro_precision": lambda counts: _micro(counts.hits, counts.predicted),
    "micro_recall": lambda counts: _micro(counts.hits, counts.positives),
    "micro_f1": lambda counts: _micro(2 * counts.hits, counts.predicted + counts.positives),
}
"""Metric name -> function of the counts."""
