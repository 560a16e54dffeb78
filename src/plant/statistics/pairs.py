"""Means over pairs of a document and a label, with intervals over test documents and training seeds.

Pairs of one document are not independent, so whole documents are drawn, and those of a patient or group together
(bootstrap, `statistics.resamples`).
"""

from dataclasses import dataclass

import numpy as np

from plant.metrics.arrays import ratio
from plant.statistics.crossed import crossed
from plant.statistics.systems import MetricValues


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference of means, its interval, and the number of seeds; NaN: not defined."""

    value: float
    low: float
    high: float
    n_seeds: int


def pair_values(sums: np.ndarray, counts: np.ndarray, resamples: np.ndarray) -> MetricValues:
    """The mean over the pairs of all documents, in the sample and in each resample (N, B) of the documents.

    `sums` (S, N) has the sum of a metric over the pairs of each of N documents, for each of S seeds; `counts` (S, N)
    has the numbers of these pairs.

    >>> values = pair_values(np.array([[3.0, 1.0]]), np.array([[2.0, 2.0]]), np.array([[2, 1], [0, 1]]))
    >>> values.by_seed.tolist(), values.resampled["bootstrap"].tolist()
    ([1.0], [1.5, 1.0])
    """
    by_seed = ratio(sums.sum(axis=1), counts.sum(axis=1), np.nan)
    resampled = ratio(sums @ resamples, counts @ resamples, np.nan).mean(axis=0)
    return MetricValues(by_seed, {"bootstrap": resampled}, sums.shape[1])


def estimate(values: MetricValues, confidence: float) -> Estimate:
    """Mean over seeds with its interval (`plant.statistics.crossed`); with one seed it is over documents alone."""
    both = crossed(values.by_seed, values.error, confidence, trained=False)
    return Estimate(both.difference, both.low, both.high, len(values.by_seed))
