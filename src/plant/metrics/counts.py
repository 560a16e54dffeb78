"""Precision, recall and F1 from counts per label: the plain metric, and the same on weighted documents.

W (N, B) holds the weights of N documents in B resamples: how often each document is drawn. With a single
column of ones everything here is the plain metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from plant.metrics.resamples import Resamples


@dataclass(frozen=True)
class Counts:
    """Per label and resample, (L, B) each."""

    hits: np.ndarray
    """True positives TP."""
    predicted: np.ndarray
    """TP + FP."""
    positives: np.ndarray
    """TP + FN."""

    def of(self, members: np.ndarray) -> Counts:
        """The counts of some labels (boolean mask)."""
        return Counts(self.hits[members], self.predicted[members], self.positives[members])

    def part(self, columns: slice) -> Counts:
        """The counts of some resamples."""
        return Counts(self.hits[:, columns], self.predicted[:, columns], self.positives[:, columns])


def count(predicted: sp.csr_array, truth: sp.csr_array, weights: np.ndarray | Resamples) -> Counts:
    """Counts of predictions on weighted documents.

    Args:
        predicted: (N, L), boolean.
        truth: (N, L), boolean.
        weights: (N, B), not negative.
    """
    resamples = Resamples.of(weights, labels=truth.shape[1])
    return Counts(*(resamples.totals(array) for array in (predicted.multiply(truth), predicted, truth)))


def label_f1(counts: Counts) -> np.ndarray:
    """(L, B), 2 TP / (predicted + positives); 0 for a label that is neither predicted nor true."""
    return _ratio(2 * counts.hits, counts.predicted + counts.positives)


def macro_f1_present(counts: Counts) -> np.ndarray:
    """Mean F1 over labels with a positive (Edin et al. 2023); NaN where no label has one."""
    return _mean_over(label_f1(counts), counts.positives > 0)


def macro_f1_all(counts: Counts) -> np.ndarray:
    """Mean F1 over all labels (PLANT, appendix E); a label that is neither predicted nor true counts as 0."""
    return _mean(label_f1(counts))


def macro_f1_caml(counts: Counts) -> np.ndarray:
    """Harmonic mean of macro-precision and macro-recall over all labels (Mullenbach et al. 2018)."""
    precision, recall = macro_precision_all(counts), macro_recall_all(counts)
    return np.where(np.isnan(precision), np.nan, _ratio(2 * precision * recall, precision + recall))


def macro_precision_all(counts: Counts) -> np.ndarray:
    """Mean TP / predicted over all labels (appendix E); 0 for a label that is never predicted."""
    return _mean(_ratio(counts.hits, counts.predicted))


def macro_recall_all(counts: Counts) -> np.ndarray:
    """Mean TP / positives over all labels (appendix E); 0 for a label without a positive."""
    return _mean(_ratio(counts.hits, counts.positives))


def macro_precision_present(counts: Counts) -> np.ndarray:
    """Mean TP / predicted over labels with a positive; 0 for one that is never predicted."""
    return _mean_over(_ratio(counts.hits, counts.predicted), counts.positives > 0)


def macro_recall_present(counts: Counts) -> np.ndarray:
    """Mean TP / positives over labels with a positive."""
    return _mean_over(_ratio(counts.hits, counts.positives), counts.positives > 0)


def micro_precision(counts: Counts) -> np.ndarray:
    """Sum of TP / sum of predictions (appendix E); NaN without any prediction."""
    return _ratio(counts.hits.sum(axis=0), counts.predicted.sum(axis=0), undefined=np.nan)


def micro_recall(counts: Counts) -> np.ndarray:
    """Sum of TP / sum of positives (appendix E); NaN without any positive."""
    return _ratio(counts.hits.sum(axis=0), counts.positives.sum(axis=0), undefined=np.nan)


def micro_f1(counts: Counts) -> np.ndarray:
    """2 sum TP / (sum of predictions + sum of positives) (appendix E); NaN without either."""
    total = counts.predicted.sum(axis=0) + counts.positives.sum(axis=0)
    return _ratio(2 * counts.hits.sum(axis=0), total, undefined=np.nan)


BY_NAME: dict[str, Callable[[Counts], np.ndarray]] = {
    function.__name__: function
    for function in (
        macro_f1_present, macro_f1_all, macro_f1_caml, macro_precision_all, macro_recall_all,
        macro_precision_present, macro_recall_present, micro_precision, micro_recall, micro_f1,
    )
}  # fmt: skip
"""Metric name -> function of Counts that returns (B,) fractions in [0, 1], higher is better."""


def _ratio(numerator: np.ndarray, denominator: np.ndarray, undefined: float = 0.0) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.full(numerator.shape, undefined), where=denominator > 0)


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0) if values.shape[0] else np.full(values.shape[1], np.nan)


def _mean_over(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return _ratio(np.where(counted, values, 0.0).sum(axis=0), counted.sum(axis=0), undefined=np.nan)
