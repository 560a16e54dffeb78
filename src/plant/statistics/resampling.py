"""Resamples of documents as weights, and intervals from the values of a metric in them.

W (N, B) holds how often each of N documents is drawn in each of B resamples. Every system and seed of a
comparison is measured on the same W: that is what pairs them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """Bounds; NaN where there is none."""

    low: float
    high: float


def draw_bootstrap(documents: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(N, B) float32: N documents drawn with replacement, B times (appendix F). Each column sums to N."""
    weights = np.empty((documents, resamples), dtype=np.float32)
    for column in range(resamples):
        weights[:, column] = np.bincount(rng.integers(documents, size=documents), minlength=documents)
    return weights


def draw_halves(documents: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(N, B) float32: half of the documents (rounded down) drawn without replacement, B times."""
    weights = np.zeros((documents, resamples), dtype=np.float32)
    for column in range(resamples):
        weights[rng.permutation(documents)[: documents // 2], column] = 1
    return weights


def percentile_interval(values: np.ndarray, confidence: float) -> Interval:
    """Percentiles of bootstrap values (appendix F); resamples in which the metric is not defined are left out.

    It is not an interval for the metric of the test set: for label-macro metrics the resamples lie to one side of
    it (choice C11), because a resample lacks the documents of some rare labels.
    """
    values = values[~np.isnan(values)]
    if not values.size:
        return Interval(np.nan, np.nan)
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def bootstrap_error(values: np.ndarray) -> float:
    """Standard deviation of bootstrap values; NaN with fewer than two."""
    values = values[~np.isnan(values)]
    return float(values.std(ddof=1)) if values.size > 1 else float("nan")


def half_sampling_error(values: np.ndarray, documents: int) -> float:
    """Standard error of a metric of N documents from its values on random halves (delete-half jackknife).

    The variance of a mean over m of N documents drawn without replacement is (1/m - 1/N) S^2, that of a mean over
    N documents S^2 / N: the standard deviation over halves, divided by sqrt(N/m - 1), about 1. Unlike the delete-one
    jackknife it is right for metrics that are not smooth, and unlike the bootstrap it repeats no document and
    shifts a rare label's absence no further than half the documents do (Shao and Wu 1989; choice C11).

    Args:
        values: (B,), the metric on halves of m = N // 2 documents; NaN where it is not defined.
        documents: N.

    Returns:
        NaN for fewer than two documents or two defined values.
    """
    half = documents // 2
    values = values[~np.isnan(values)]
    if half == 0 or values.size < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(documents / half - 1))
