"""Any metric of a run as a function of document weights: a column of ones is the plain value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from plant.evaluation import counts
from plant.evaluation.curves import Kept, auc_and_precision, micro_auc
from plant.evaluation.documents import Terms
from plant.evaluation.groups import LabelSpace
from plant.evaluation.names import CURVES, MICRO_AUC, Metric, find

LARGEST = 16_000_000  # numbers in one (L, B) array


class Measured(Protocol):
    """What the metrics ask of a run (see `runs.Run`)."""

    @property
    def labels(self) -> LabelSpace: ...
    @property
    def truth(self) -> sp.csr_array: ...
    def predictions(self, natural: bool) -> sp.csr_array | None: ...
    def curve_scores(self) -> np.ndarray | Kept: ...
    def all_scores(self) -> np.ndarray | None: ...
    def terms(self, metric: Metric) -> Terms | None: ...


def metric_values(run: Measured, names: Iterable[str], weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Values of some metrics in each of B resamples of the test documents.

    Args:
        run: a run with N test documents.
        names: names of metrics (names.py).
        weights: (N, B) float32, how often each document is drawn in each resample; None: one column of ones.

    Returns:
        Name -> (B,) float64, fractions in [0, 1], higher is better; NaN where a metric is not defined.

    Raises:
        InputError: a name that is not a metric.
    """
    wanted = [find(name, run.labels.settings) for name in names]
    if weights is None:
        weights = np.ones((run.truth.shape[0], 1), dtype=np.float32)
    width = max(1, LARGEST // max(1, run.truth.shape[1]))
    starts = range(0, weights.shape[1], width)
    parts = [_values(run, wanted, np.ascontiguousarray(weights[:, start : start + width])) for start in starts]
    return {metric.name: np.concatenate([part[metric.name] for part in parts]) for metric in wanted}


def _values(run: Measured, wanted: list[Metric], weights: np.ndarray) -> dict[str, np.ndarray]:
    curves = _curves(run, wanted, weights)
    tallies = {
        natural: counts.count(predicted, run.truth, weights)
        for natural in (False, True)
        if any(metric.base in counts.BY_NAME and metric.natural == natural for metric in wanted)
        and (predicted := run.predictions(natural)) is not None
    }
    undefined = np.full(weights.shape[1], np.nan)
    exact = weights.astype(np.float64)  # once, for the products with terms that are not whole numbers
    values = {}
    for metric in wanted:
        if metric.base in CURVES:
            values[metric.name] = mean_of_defined(curves[metric.base][_members(run, metric)])
        elif metric.base == MICRO_AUC:
            scores = run.all_scores()
            values[metric.name] = undefined if scores is None else micro_auc(scores, run.truth, weights)
        elif metric.base in counts.BY_NAME:
            tally = tallies.get(metric.natural)
            values[metric.name] = (
                undefined
                if tally is None
                else counts.BY_NAME[metric.base](tally if metric.group is None else tally.of(_members(run, metric)))
            )
        else:
            terms = run.terms(metric)
            values[metric.name] = undefined if terms is None else terms.total(exact)
    return values


def mean_of_defined(values: np.ndarray) -> np.ndarray:
    """Mean over rows without NaN, per column; NaN where every row is."""
    defined = ~np.isnan(values)
    total = np.where(defined, values, 0.0).sum(axis=0)
    number = defined.sum(axis=0)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def _curves(run: Measured, wanted: list[Metric], weights: np.ndarray) -> dict[str, np.ndarray]:
    needed = [_members(run, metric) for metric in wanted if metric.base in CURVES]
    if not needed:
        return {}
    members = np.logical_or.reduce(needed)
    return dict(zip(CURVES, auc_and_precision(run.curve_scores(), run.truth, weights, members=members), strict=True))


def _members(run: Measured, metric: Metric) -> np.ndarray:
    if metric.group is None:
        return np.ones(run.truth.shape[1], dtype=bool)
    return run.labels.groups[metric.group]
