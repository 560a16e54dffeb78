"""The Wilcoxon signed-rank test as appendix F uses it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from plant.evaluation.runs import Run
from plant.evaluation.values import document_values
from plant.metrics.names import Metric, find
from plant.statistics.bootstrap import bootstrap_weights
from plant.statistics.systems import Comparison, each_run, mean_values

SCHEMA = pa.schema([
    ("system", pa.string()), ("metric", pa.string()), ("statistic", pa.float64()), ("n", pa.uint32()),
    ("p", pa.float64()), ("level", pa.string()), ("paper_procedure", pa.bool_()), ("anti_conservative", pa.bool_()),
])  # fmt: skip


class SignedRank(NamedTuple):
    """Result of a two-sided signed-rank test."""

    statistic: float
    """W = min(W+, W-)."""
    n: int
    """Pairs whose difference is not 0."""
    p: float


def signed_rank(first: np.ndarray, second: np.ndarray) -> SignedRank:
    """Two-sided Wilcoxon signed-rank test of paired values.

    d_i = second_i - first_i; zeros are dropped, ties share their mean rank, W = min(W+, W-). The p-value is exact
    for small samples (up to 50 pairs without ties, up to 13 with them) and comes from the normal approximation,
    corrected for ties, for larger ones: `scipy.stats.wilcoxon(zero_method="wilcox")`.

    Args:
        first, second: (n,), pairs; a pair with a NaN is left out.

    Returns:
        p in [0, 1]. All differences 0: W = 0, n = 0, p = 1. No pair at all: NaN.

    >>> signed_rank(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.5, 3.0, 4.5, 6.0, 7.5]))
    SignedRank(statistic=0.0, n=5, p=0.0625)
    """
    from scipy.stats import wilcoxon  # its import takes most of a second

    differences = second - first
    differences = differences[~np.isnan(differences)]
    if not differences.size:
        return SignedRank(float("nan"), 0, float("nan"))
    differences = np.round(differences, 12)  # means over seeds agree, and tie, only up to rounding
    n = int(np.count_nonzero(differences))
    if n == 0:
        return SignedRank(0.0, 0, 1.0)
    result = wilcoxon(differences[differences != 0], zero_method="wilcox", method="auto")
    return SignedRank(float(result.statistic), n, float(result.pvalue))


def wilcoxon_tests(comparison: Comparison) -> pa.Table:
    """The test of each system against the reference, one row a system and metric.

    `level` document: metrics that single documents have (P@k, nDCG@k, ...), averaged over a system's seeds.
    `level` resamples: aggregate metrics over the B bootstrap resamples, as the paper says. These are not
    independent observations: p shrinks as B grows, whatever the data. Kept as the paper's procedure and marked
    `anti_conservative`; the approximate randomisation stands beside it.
    """
    metrics = [find(name, comparison.labels.settings) for name in comparison.settings.metrics]
    single = [metric for metric in metrics if metric.per_document]
    aggregate = [metric.name for metric in metrics if not metric.per_document]
    by_document = _document_values(comparison, single)
    by_resample = mean_values(comparison, [bootstrap_weights(comparison)], aggregate) if aggregate else {}
    rows = []
    for name in comparison.others:
        for metric in metrics:
            pair = (comparison.reference, metric.name), (name, metric.name)
            if metric.per_document:
                test = signed_rank(*(by_document[key] for key in pair))
            else:
                test = signed_rank(*(by_resample[key][1][0] for key in pair))
            undefined = np.isnan(test.p)
            rows.append({
                "system": name, "metric": metric.name, "n": test.n,
                "statistic": None if undefined else test.statistic, "p": None if undefined else test.p,
                "level": "document" if metric.per_document else "resamples",
                "paper_procedure": True, "anti_conservative": not metric.per_document,
            })  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _document_values(comparison: Comparison, metrics: list[Metric]) -> dict[tuple[str, str], np.ndarray]:
    """(system, metric) -> (N,), the mean over seeds of each document's value; NaN where it has none."""
    values: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, run in each_run(comparison):
        for metric in metrics:
            values.setdefault((name, metric.name), []).append(_of_documents(run, metric))
    return {key: np.mean(runs, axis=0) for key, runs in values.items()}


def _of_documents(run: Run, metric: Metric) -> np.ndarray:
    values = document_values(run, metric, average=False)
    return np.full(run.truth.shape[0], np.nan) if values is None else values
