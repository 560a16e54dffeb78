"""Any metric of a run as a function of document weights: a column of ones is the plain value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from plant.metrics import counts
from plant.metrics.curves import Columns, Kept, Rows, auc_and_precision, micro_auc
from plant.metrics.documents import Terms
from plant.metrics.groups import LabelSpace
from plant.metrics.names import CURVES, CUTS, MICRO_AUC, Cut, Metric, find
from plant.metrics.resamples import WIDTH, Resamples

LARGEST = 16_000_000  # numbers in one (L, B) array


class Measured(Protocol):
    """What the metrics ask of a run (see `runs.Run`)."""

    @property
    def labels(self) -> LabelSpace: ...
    @property
    def truth(self) -> sp.csr_array: ...
    def predictions(self, cut: Cut) -> sp.csr_array | None: ...
    def curve_scores(self) -> np.ndarray | Columns | Kept: ...
    def all_scores(self) -> np.ndarray | Rows | None: ...
    def terms(self, metric: Metric) -> Terms | None: ...


def metric_values(run: Measured, names: Iterable[str], weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Values of some metrics in each of B resamples of the test documents.

    Args:
        run: a run with N test documents.
        names: names of metrics (names.py).
        weights: (N, B) float32, how often each document is drawn in each resample; None: one column of ones.

    Returns:
        Name -> (B,) float64, in the ranges of names.py, higher is better; NaN where a metric is not defined.

    Raises:
        InputError: a name that is not a metric.
    """
    wanted = [find(name, run.labels.settings) for name in names]
    if weights is None:
        weights = np.ones((run.truth.shape[0], 1), dtype=np.float32)
    width = max(1, LARGEST // max(1, run.truth.shape[1]))
    starts = range(0, weights.shape[1], width)
    parts = [
        _values(run, wanted, Resamples.of(weights[:, start : start + width], labels=run.truth.shape[1]))
        for start in starts
    ]
    return {metric.name: np.concatenate([part[metric.name] for part in parts]) for metric in wanted}


def _values(run: Measured, wanted: list[Metric], resamples: Resamples) -> dict[str, np.ndarray]:
    values = _curve_values(run, wanted, resamples)
    for cut in CUTS:
        values |= _count_values(run, [metric for metric in wanted if metric.cut == cut], resamples)
    known = (*CURVES, MICRO_AUC, *counts.BY_NAME)
    terms = {metric.name: run.terms(metric) for metric in wanted if metric.base not in known}
    values |= {name: np.full(resamples.number, np.nan) for name in terms}
    for part in resamples.parts():
        exact = resamples.weights[:, part].astype(np.float64)  # once, as the terms are not whole numbers
        for name, each in terms.items():
            if each is not None:
                values[name][part] = each.total(exact)
    return values


def _curve_values(run: Measured, wanted: list[Metric], resamples: Resamples) -> dict[str, np.ndarray]:
    """Means of AUC and AP over labels, and micro-AUC."""
    values = {}
    needed = {metric.name: _members(run, metric) for metric in wanted if metric.base in CURVES}
    if needed:
        members = np.logical_or.reduce(list(needed.values()))
        curves = dict(
            zip(CURVES, auc_and_precision(run.curve_scores(), run.truth, resamples, members=members), strict=True)
        )
        for metric in wanted:
            if metric.base in CURVES:
                own = curves[metric.base]
                values[metric.name] = mean_of_defined(own if metric.group is None else own[needed[metric.name]])
    for metric in wanted:
        if metric.base == MICRO_AUC:
            scores = run.all_scores()
            undefined = np.full(resamples.number, np.nan)
            values[metric.name] = undefined if scores is None else micro_auc(scores, run.truth, resamples)
    return values


def _count_values(run: Measured, wanted: list[Metric], resamples: Resamples) -> dict[str, np.ndarray]:
    """Metrics from counts, all of them at the same cut."""
    counted = [metric for metric in wanted if metric.base in counts.BY_NAME]
    values = {metric.name: np.full(resamples.number, np.nan) for metric in counted}
    predicted = run.predictions(counted[0].cut) if counted else None
    if predicted is None:
        return values
    tally = counts.count(predicted, run.truth, resamples)
    for metric in counted:
        own = tally if metric.group is None else tally.of(_members(run, metric))
        for part in resamples.parts():
            values[metric.name][part] = counts.BY_NAME[metric.base](own.part(part))
    return values


def mean_of_defined(values: np.ndarray) -> np.ndarray:
    """Mean over rows without NaN, per column; NaN where every row is."""
    means = [_mean(values[:, first : first + WIDTH]) for first in range(0, values.shape[1], WIDTH)]
    return np.concatenate(means) if means else np.empty(0)


def _mean(values: np.ndarray) -> np.ndarray:
    defined = ~np.isnan(values)
    total = np.where(defined, values, 0.0).sum(axis=0)
    number = defined.sum(axis=0)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def _members(run: Measured, metric: Metric) -> np.ndarray:
    if metric.group is None:
        return np.ones(run.truth.shape[1], dtype=bool)
    return run.labels.groups[metric.group]
