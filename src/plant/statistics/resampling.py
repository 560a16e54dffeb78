"""Resamples of documents (or of clusters of them), and errors and intervals from the values of a metric in them.

A set of resamples is an array of weights (N, B): how often each of N documents is drawn in each of B resamples. All
systems and seeds of a comparison are measured on the same weights, so their values are paired.
"""

from typing import Literal, NamedTuple

import numpy as np

from plant.ground import seeds
from plant.ground.settings import Statistics

Resampling = Literal["bootstrap", "halves"]
FEWEST_RESAMPLES, FEWEST_HALVES = 0.78, 0.977
"""Shares of the resamples in which a metric must have a value, so that it has an error. A metric that n of many units
give a value has one in 1 - 2^-n of the halves: 96.9 % for five units, 98.4 % for six. With five no test that swaps two
systems can reach p < .05, for 2 / 2^5 is .06; so an error, which gives p-values, needs six. The paper's bootstrap gives
intervals alone; there it needs two units (one: 63 % of the resamples, two: 86 %)."""


class Interval(NamedTuple):
    """Bounds; NaN if there are none."""

    low: float
    high: float


def draw(kind: Resampling, clusters: np.ndarray, settings: Statistics) -> np.ndarray:
    """The resamples of a comparison, (N, B) float32. The seed of the config fixes them.

    `clusters` (N,) has the cluster of each document, 0 to G - 1. The documents of a cluster (a patient) are drawn
    together, because they are not independent. Documents without groups are N clusters of one.
    """
    draws = {"bootstrap": draw_bootstrap, "halves": draw_halves}
    count = count_clusters(clusters)
    return draws[kind](count, settings.resamples, seeds.generator(settings.seed, "statistics", kind))[clusters]


def count_clusters(clusters: np.ndarray) -> int:
    """G of (N,) clusters 0 to G - 1."""
    return int(clusters.max(initial=-1)) + 1


def draw_bootstrap(units: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(N, B) float32: N units drawn with replacement, B times (appendix F). Each column sums to N."""
    weights = np.empty((units, resamples), dtype=np.float32)
    for column in range(resamples):
        weights[:, column] = np.bincount(rng.integers(units, size=units), minlength=units)
    return weights


def draw_halves(units: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(N, B) float32: half of the units (rounded down) drawn without replacement, B times."""
    weights = np.zeros((units, resamples), dtype=np.float32)
    for column in range(resamples):
        weights[rng.permutation(units)[: units // 2], column] = 1
    return weights


def percentile_interval(values: np.ndarray, confidence: float) -> Interval:
    """Percentiles of bootstrap values (appendix F). Resamples in which the metric is not defined are left out.

    For label-macro metrics this is not an interval for the metric of the test set (choice C11): a resample lacks the
    documents of some rare labels, so its values lie to one side of it.
    """
    values = values[~np.isnan(values)]
    if not values.size:
        return Interval(np.nan, np.nan)
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def bootstrap_error(values: np.ndarray) -> float:
    """Standard deviation of bootstrap values; NaN without two of them, or if one unit alone gives a value."""
    defined = values[~np.isnan(values)]
    if defined.size < max(2, FEWEST_RESAMPLES * values.size):
        return float("nan")
    return float(defined.std(ddof=1))


def half_sampling_error(values: np.ndarray, units: int) -> float:
    """Standard error of a metric of N units (documents, or clusters), from its values on random halves.

    Let S^2 be the variance of one unit's value. A mean over m of N units, drawn without replacement, has
    variance (1/m - 1/N) S^2; a mean over all N has S^2 / N. So the error is the standard deviation over halves,
    divided by sqrt(N/m - 1), which is about 1. Unlike the delete-one jackknife it is right for metrics that are not
    smooth. Unlike the bootstrap it repeats no unit (Shao and Wu 1989; choice C11).

    `values` (B,) is the metric on halves of m = N // 2 units, NaN if it is not defined. The error is NaN with fewer
    than two units or two defined values. It is NaN too if few units give the metric a value (`FEWEST_HALVES`), such as
    the one document with a rare label: the halves that hold it agree, whatever another document would say.
    """
    half = units // 2
    defined = values[~np.isnan(values)]
    if half == 0 or defined.size < max(2, FEWEST_HALVES * values.size):
        return float("nan")
    return float(defined.std(ddof=1) / np.sqrt(units / half - 1))
