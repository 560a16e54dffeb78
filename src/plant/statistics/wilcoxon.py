"""The Wilcoxon signed-rank test as appendix F uses it."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from plant.evaluation.values import document_values
from plant.metrics.names import Metric, find
from plant.statistics.systems import ComparedSystems, each_run, resampled_values, to_table

SCHEMA = pa.schema([
    ("system", pa.string()), ("metric", pa.string()), ("statistic", pa.float64()), ("n", pa.uint32()),
    ("p", pa.float64()), ("level", pa.string()), ("paper_procedure", pa.bool_()), ("anti_conservative", pa.bool_()),
])  # fmt: skip


class SignedRank(NamedTuple):
    """Result of a two-sided signed-rank test."""

    statistic: float
    """W = min(W+, W-)."""
    n: int
    """Number of pairs whose difference is not 0."""
    p: float


def signed_rank(first: np.ndarray, second: np.ndarray) -> SignedRank:
    """Two-sided Wilcoxon signed-rank test of paired values.

    d_i = second_i - first_i. Zeros are dropped, ties share their mean rank, W = min(W+, W-). The p-value is exact
    for small samples (up to 50 pairs without ties, 13 with ties). For larger ones it is the normal approximation,
    corrected for ties: `scipy.stats.wilcoxon(zero_method="wilcox")`.

    `first` and `second` are (n,); a pair with a NaN is left out. If all differences are 0: W = 0, n = 0, p = 1. Without
    a pair W and p are NaN.

    >>> signed_rank(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.5, 3.0, 4.5, 6.0, 7.5]))
    SignedRank(statistic=0.0, n=5, p=0.0625)
    """
    from scipy.stats import wilcoxon  # its import takes most of a second

    differences = second - first
    differences = differences[~np.isnan(differences)]
    if not differences.size:
        return SignedRank(float("nan"), 0, float("nan"))
    differences = np.round(differences, 12)  # means over seeds are equal only up to rounding
    n = int(np.count_nonzero(differences))
    if n == 0:
        return SignedRank(0.0, 0, 1.0)
    result = wilcoxon(differences[differences != 0], zero_method="wilcox", method="auto")
    return SignedRank(float(result.statistic), n, float(result.pvalue))


def wilcoxon_tests(comparison: ComparedSystems) -> pa.Table:
    """The test of each system against the reference, one row per system and metric.

    - `level` document: metrics that single documents have (P@k, nDCG@k, ...), averaged over the seeds.
    - `level` resamples: all other metrics, in the B bootstrap resamples, as the paper says. Resamples are not
      independent observations: p shrinks as B grows, whatever the data. These rows are marked `anti_conservative`; use
      the approximate randomisation in their place.
    """
    metrics = [find(name, comparison.labels.settings) for name in comparison.settings.metrics]
    aggregate = [metric.name for metric in metrics if not metric.per_document]
    values = _document_values(comparison, [metric for metric in metrics if metric.per_document])
    if aggregate:
        resampled = resampled_values(comparison, ["bootstrap"], aggregate)
        values |= {key: each.resampled["bootstrap"] for key, each in resampled.items()}
    rows = []
    for name in comparison.others:
        for metric in metrics:
            test = signed_rank(values[comparison.reference, metric.name], values[name, metric.name])
            rows.append({
                "system": name, "metric": metric.name, **test._asdict(),
                "level": "document" if metric.per_document else "resamples",
                "paper_procedure": True, "anti_conservative": not metric.per_document,
            })  # fmt: skip
    return to_table(rows, SCHEMA)


def _document_values(comparison: ComparedSystems, metrics: list[Metric]) -> dict[tuple[str, str], np.ndarray]:
    """(system, metric) -> (N,), the mean over seeds of each document's value; NaN if it has none."""
    values: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, run in each_run(comparison):
        for metric in metrics:
            of_documents = document_values(run, metric, average=False)
            missing = np.full(run.truth.shape[0], np.nan)
            values.setdefault((name, metric.name), []).append(missing if of_documents is None else of_documents)
    return {key: np.mean(runs, axis=0) for key, runs in values.items()}
