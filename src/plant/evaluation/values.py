"""The value of any metric of a run, in the test split and in resamples of its documents."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from plant.metrics.arrays import mean_of
from plant.metrics.counts import COUNT_METRICS, Counts, count
from plant.metrics.curves import label_curves, micro_roc_auc
from plant.metrics.documents import AT_K, DOCUMENT_METRICS, Ranking, brier_skill, propensity_precision_at_k
from plant.metrics.groups import LabelSpace
from plant.metrics.names import BRIER_SKILL, CURVES, MICRO_AUC, PROPENSITY, Metric, find

LARGEST = 16_000_000
"""Numbers in one (L, B) array."""
WIDTH = 512
"""Resamples that are computed at once."""


class TestOutputs(Protocol):
    """What metrics are computed from: a `runs.Run`, or two of them whose documents are swapped (statistics)."""

    @property
    def labels(self) -> LabelSpace: ...
    @property
    def truth(self) -> sp.csr_array: ...
    @property
    def curve_scores(self) -> tuple[np.ndarray | sp.csr_array, np.ndarray | None]: ...
    @property
    def all_scores(self) -> np.ndarray | None: ...
    @property
    def brier_gains(self) -> np.ndarray | None: ...
    def predictions(self, rule: str) -> sp.csr_array | None: ...
    def ranking(self, group: str | None) -> Ranking: ...


def metric_values(run: TestOutputs, names: Iterable[str], weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Values of some metrics in each of B resamples of the test documents.

    Args:
        names: names of metrics (names.py).
        weights: (N, B) float32, how often each document is drawn in each resample. None: one resample with each
            document once.

    Returns:
        Name -> (B,) float64, in the ranges of names.py. NaN: the metric is not defined.

    Raises:
        InputError: no metric has this name.
    """
    wanted = [find(name, run.labels.settings) for name in names]
    if weights is None:
        weights = np.ones((run.truth.shape[0], 1), dtype=np.float32)
    width = min(WIDTH, max(1, LARGEST // max(1, run.truth.shape[1])))
    parts = [_values(run, wanted, weights[:, first : first + width]) for first in range(0, weights.shape[1], width)]
    return {metric.name: np.concatenate([part[metric.name] for part in parts]) for metric in wanted}


def _values(run: TestOutputs, wanted: list[Metric], weights: np.ndarray) -> dict[str, np.ndarray]:
    """The metrics in some resamples. Curves and counts are computed once for all metrics that need them."""
    curves, counts = _label_curves(run, wanted, weights), _label_counts(run, wanted, weights)
    exact = weights.astype(np.float64)  # the values of documents are fractions
    values = {}
    for metric in wanted:
        labels = slice(None) if metric.group is None else run.labels.groups[metric.group]
        value: np.ndarray | None
        if metric.base in CURVES:
            areas = curves[metric.base][labels]
            value = mean_of(areas, ~np.isnan(areas))
        elif metric.base == MICRO_AUC:
            scores = run.all_scores
            value = None if scores is None else micro_roc_auc(run.truth, scores, weights)
        elif metric.base in COUNT_METRICS:
            tally = counts.get(metric.rule)
            value = None if tally is None else COUNT_METRICS[metric.base](run.truth, tally.of(labels))
        elif metric.base == BRIER_SKILL:
            gains = run.brier_gains
            value = None if gains is None else brier_skill(run.truth, gains, weights=exact)
        elif metric.base == PROPENSITY and metric.k is not None:
            value = propensity_precision_at_k(
                run.truth, run.ranking(None), metric.k, inverse_propensity=run.labels.inverse_propensity, weights=exact
            )
        else:
            value = document_values(run, metric, weights=exact)
        values[metric.name] = np.full(weights.shape[1], np.nan) if value is None else value
    return values


def document_values(
    run: TestOutputs, metric: Metric, *, weights: np.ndarray | None = None, average: bool = True
) -> np.ndarray | None:
    """A metric that single documents have: its mean in each resample (B,), or its values (N,) with average=False.

    None if the run has no threshold for the metric's rule.
    """
    if metric.k is not None:
        return AT_K[metric.base](run.truth, run.ranking(metric.group), metric.k, weights=weights, average=average)
    truth, predicted = run.truth, run.predictions(metric.rule)
    if predicted is None:
        return None
    if metric.group is not None:
        labels = np.flatnonzero(run.labels.groups[metric.group])
        truth, predicted = truth[:, labels], predicted[:, labels]
    return DOCUMENT_METRICS[metric.base](truth, predicted, weights=weights, average=average)


def _label_curves(run: TestOutputs, wanted: list[Metric], weights: np.ndarray) -> dict[str, np.ndarray]:
    """AUC and AP (L, B), each under the name of its mean; only of the labels that some metric needs."""
    groups = {metric.group for metric in wanted if metric.base in CURVES}
    if not groups:
        return {}
    everything = np.ones(run.truth.shape[1], dtype=bool)
    labels = np.logical_or.reduce([everything if group is None else run.labels.groups[group] for group in groups])
    scores, bound = run.curve_scores
    return dict(zip(CURVES, label_curves(run.truth, scores, weights, labels=labels, bound=bound), strict=True))


def _label_counts(run: TestOutputs, wanted: list[Metric], weights: np.ndarray) -> dict[str, Counts]:
    """Threshold rule -> counts of its predictions, for each rule that some metric names and the run has."""
    predictions = {metric.rule: run.predictions(metric.rule) for metric in wanted if metric.base in COUNT_METRICS}
    return {rule: count(run.truth, each, weights) for rule, each in predictions.items() if each is not None}
