"""Metrics of each document: of its best k labels, of its predicted labels, of its probabilities.

Shapes: N documents, L labels, B resamples. Y is the set of true labels of a document, y_i its i-th best label.

- `y_true`, `y_pred`: (N, L), boolean sparse arrays;
- `y_score`: (N, L), higher is better, as `top_labels` reads it. To compute several metrics of the same arrays, pass the
  result of `rank` for at least k;
- `weights`: how often each document is drawn (arrays.py);
- `average`: False gives the value of each document, (N,), NaN for a document without a value.

A metric is the mean over the documents that have a value: a fraction in [0, 1], or (B,) fractions. Higher is better.
NaN: no document has a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy  # loads its parts when they are used: the names of metrics need none

from plant.metrics.arrays import Array, Sparse, Weights, ratio
from plant.metrics.top import stored_at, top_labels

BLOCK = 512
"""Documents whose probabilities are in memory at once."""


@dataclass(frozen=True)
class Ranking:
    """The best labels of each document against its true labels."""

    best: Array
    """(N, K) label ids, best first; -1: nothing is retrieved."""
    hits: Array
    """(N, K) boolean: whether y_i is true."""
    true: Array
    """(N,) |Y|."""


Ranked: TypeAlias = "Array | Sparse | Ranking"


def rank(y_true: Sparse, y_score: Ranked, k: int) -> Ranking:
    """The k best labels of each document. A ranking is returned unchanged."""
    if isinstance(y_score, Ranking):
        return y_score
    best = top_labels(y_score, k)
    hits = (best >= 0) & stored_at(y_true, np.arange(best.shape[0])[:, None], best)
    return Ranking(best, hits, np.diff(y_true.indptr))


def precision_at_k(y_true: Sparse, y_score: Ranked, k: int, *, weights: Weights = None, average: bool = True) -> Array:
    """P@k = 1/k sum_i 1[y_i in Y] (appendix E); documents without a true label do not count."""
    ranking = rank(y_true, y_score, k)
    return _mean(ranking.hits[:, :k].sum(axis=1) / k, ranking.true > 0, weights, average)


def recall_at_k(y_true: Sparse, y_score: Ranked, k: int, *, weights: Weights = None, average: bool = True) -> Array:
    """R@k = 1/min(k, |Y|) sum_i 1[y_i in Y] (appendix E); documents without a true label do not count."""
    ranking = rank(y_true, y_score, k)
    return _mean(ranking.hits[:, :k].sum(axis=1) / np.clip(ranking.true, 1, k), ranking.true > 0, weights, average)


def ndcg_at_k(y_true: Sparse, y_score: Ranked, k: int, *, weights: Weights = None, average: bool = True) -> Array:
    """nDCG@k with gain 1 and discount 1 / log2(i + 1); the ideal is over min(k, |Y|) labels.

    Documents without a true label do not count.

    >>> float(ndcg_at_k(scipy.sparse.csr_array([[False, True]]), np.array([[0.9, 0.1]]), 2).round(3))
    0.631
    """
    ranking = rank(y_true, y_score, k)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gain = ranking.hits[:, :k] @ discounts[: ranking.hits.shape[1]]
    ideal = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(ranking.true, k)]
    return _mean(gain / ideal, ranking.true > 0, weights, average)


def propensity_precision_at_k(
    y_true: Sparse, y_score: Ranked, k: int, *, inverse_propensity: Array, weights: Weights = None
) -> Array:
    """PSP@k = sum_n sum_{i<=k} 1[y_i in Y] / p_{y_i}, divided by its largest possible value (Jain et al. 2016).

    It is a ratio of sums, not a mean over documents. `inverse_propensity` is (L,), 1/p_l.
    """
    ranking = rank(y_true, y_score, k)
    gain = np.where(ranking.hits, inverse_propensity[ranking.best], 0.0)[:, :k].sum(axis=1) / k
    # The largest possible value: the k largest 1/p_l among the true labels of each document.
    rows = np.repeat(np.arange(y_true.shape[0]), np.diff(y_true.indptr))
    values = inverse_propensity[y_true.indices]
    values = values[np.lexsort((-values, rows))]
    among_first = np.arange(rows.size) - y_true.indptr[rows] < k
    most = np.bincount(rows, np.where(among_first, values, 0.0), minlength=y_true.shape[0]) / k
    return _ratio_of_sums(gain, most, weights)


def document_precision(y_true: Sparse, y_pred: Sparse, *, weights: Weights = None, average: bool = True) -> Array:
    """|predicted and Y| / |predicted| of each document; 0 for a document without a prediction."""
    size = np.diff(y_pred.indptr)
    return _mean(_hits(y_pred, y_true) / np.maximum(size, 1), np.ones(size.size, dtype=bool), weights, average)


def document_recall(y_true: Sparse, y_pred: Sparse, *, weights: Weights = None, average: bool = True) -> Array:
    """|predicted and Y| / |Y| of each document; documents without a true label do not count."""
    size = np.diff(y_true.indptr)
    return _mean(_hits(y_pred, y_true) / np.maximum(size, 1), size > 0, weights, average)


def document_f1(y_true: Sparse, y_pred: Sparse, *, weights: Weights = None, average: bool = True) -> Array:
    """2 |predicted and Y| / (|predicted| + |Y|) of each document; documents with neither do not count."""
    size = np.diff(y_pred.indptr) + np.diff(y_true.indptr)
    return _mean(2 * _hits(y_pred, y_true) / np.maximum(size, 1), size > 0, weights, average)


def brier_skill(y_true: Sparse, gains: Array, *, weights: Weights = None) -> Array:
    """1 - sum (p - y)^2 / sum y^2 over all pairs of a document and a label; `gains` are those of `brier_gains`.

    The reference is to predict p = 0 for every pair; its squared error (Brier 1950) is sum y^2. The skill is 1 if every
    probability is certain and right, 0 if it is as good as the reference, and negative if it is worse. It is a proper
    score: on average no p does better than the true probability. NaN without a true label.

    >>> y_true = scipy.sparse.csr_array([[True, False]])
    >>> float(brier_skill(y_true, brier_gains(y_true, np.array([[np.inf, 0.0]]), 0.0)))
    0.75
    """
    return _ratio_of_sums(gains, np.diff(y_true.indptr).astype(float), weights)


def brier_gains(y_true: Sparse, y_score: Array | Sparse, natural_threshold: float) -> Array:
    """(N,), the sum of y^2 - (p - y)^2 = 2 p y - p^2 over labels, with p = 1 / (1 + exp(natural threshold - score)).

    p = 0 for the score -inf, and for an entry that a sparse array does not store.
    """
    of_true, of_all = np.zeros(y_true.shape[0]), np.zeros(y_true.shape[0])
    for first in range(0, y_true.shape[0], BLOCK):
        part = slice(first, first + BLOCK)
        probabilities = _probabilities(y_score[part], natural_threshold)
        of_true[part] = np.asarray(y_true[part].multiply(probabilities).sum(axis=1)).ravel()
        of_all[part] = np.asarray((probabilities * probabilities).sum(axis=1)).ravel()
    return 2 * of_true - of_all


AT_K: dict[str, Callable[..., Array]] = {"p": precision_at_k, "r": recall_at_k, "ndcg": ndcg_at_k, "rp": recall_at_k}
"""Metrics with names `name@k`. R@k of the paper and RP@k of LMTC have the same denominator, min(k, |Y|)."""
DOCUMENT_METRICS: dict[str, Callable[..., Array]] = {
    function.__name__: function for function in (document_precision, document_recall, document_f1)
}


def _mean(values: Array, defined: Array, weights: Weights, average: bool) -> Array:
    return _ratio_of_sums(values, defined.astype(float), weights) if average else np.where(defined, values, np.nan)


def _ratio_of_sums(above: Array, below: Array, weights: Weights) -> Array:
    weights = np.ones(above.size) if weights is None else weights
    return ratio(above @ weights, below @ weights, np.nan)


def _probabilities(scores: Array | Sparse, threshold: float) -> Array | Sparse:
    if isinstance(scores, np.ndarray):
        return scipy.special.expit(scores.astype(np.float64) - threshold)
    return scipy.sparse.csr_array(
        (_probabilities(scores.data, threshold), scores.indices, scores.indptr), shape=scores.shape
    )


def _hits(y_pred: Sparse, y_true: Sparse) -> Array:
    return np.asarray(y_pred.multiply(y_true).sum(axis=1)).ravel()
