"""Metrics that are ratios of sums over documents: of the first k labels, of predicted labels, of probabilities.

Y is the document's true labels, y_i its i-th best label (the order of `f1.top_labels`: equal scores by label
id). A label with the score -inf is never retrieved; fewer than k retrieved labels leave the rest empty.
Every metric is sum_n w_n a_n / sum_n w_n b_n for terms a, b of a document: a mean where b is 1 or, for a
document on which the metric is not defined, 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from plant.metrics.f1 import top_labels
from plant.metrics.scores import Scores
from plant.metrics.top import top_stored


@dataclass(frozen=True)
class Terms:
    """Numerator and denominator of each document, (N,) each."""

    numerator: np.ndarray
    denominator: np.ndarray

    def total(self, weights: np.ndarray) -> np.ndarray:
        """(B,), the metric on documents that are weighted by W (N, B); NaN where the denominator is 0."""
        above, below = self.numerator @ weights, self.denominator @ weights
        return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


@dataclass(frozen=True)
class Ranking:
    """The best labels of each document against its true labels."""

    best: np.ndarray
    """(N, K) label ids, best first; -1 where nothing is retrieved."""
    hits: np.ndarray
    """(N, K), boolean: y_i is true."""
    true: np.ndarray
    """(N,), |Y|."""


def rank(scores: Scores, k: int, members: np.ndarray | None = None) -> Ranking:
    """The k best labels of each document, among `members` ((L,) boolean) or among all.

    With members, other labels are deleted from both the ranking and the truth (the LMTC convention). Where only
    the top K scores were kept, fewer than k members may be among them: what is counted is then a lower bound.
    """
    kept = np.flatnonzero(members) if members is not None else np.arange(scores.truth.shape[1])
    truth = scores.truth if members is None else scores.truth[:, kept]
    if scores.dense is not None:
        best = top_labels(scores.dense if members is None else scores.dense[:, kept], k)
    else:
        best = top_stored(scores.retrieved if members is None else scores.retrieved[:, kept], k)
    rows = np.arange(truth.shape[0])[:, None]
    pairs = (rows * truth.shape[1] + best)[best >= 0]
    hits = np.zeros(best.shape, dtype=bool)
    hits[best >= 0] = np.isin(pairs, _pairs(truth))
    ids = np.where(best >= 0, kept[best], -1) if kept.size else best
    return Ranking(ids, hits, np.diff(truth.indptr))


def precision_at(ranking: Ranking, k: int) -> Terms:
    """P@k = 1/k sum_i 1[y_i in Y] (appendix E), at most min(k, |Y|) / k; no document without a true label counts."""
    return Terms(ranking.hits[:, :k].sum(axis=1) / k, (ranking.true > 0).astype(float))


def recall_at(ranking: Ranking, k: int) -> Terms:
    """R@k = 1/min(k, |Y|) sum_i 1[y_i in Y] (appendix E); documents without a true label do not count."""
    found = ranking.hits[:, :k].sum(axis=1)
    return Terms(found / np.clip(ranking.true, 1, k), (ranking.true > 0).astype(float))


def ndcg_at(ranking: Ranking, k: int) -> Terms:
    """nDCG@k with gain 1 and discount 1 / log2(i + 1); the ideal is over min(k, |Y|) labels."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    found = ranking.hits[:, :k] @ discounts[: ranking.hits.shape[1]]
    ideal = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(ranking.true, k)]
    return Terms(found / ideal, (ranking.true > 0).astype(float))


def propensity_precision_at(ranking: Ranking, k: int, *, truth: sp.csr_array, inverse: np.ndarray) -> Terms:
    """PSP@k = sum_n sum_{i<=k} 1[y_i in Y] / p_{y_i} over the largest value that it can have (Jain et al. 2016).

    Args:
        ranking: of all labels.
        k: labels a document.
        truth: (N, L), boolean.
        inverse: (L,), 1/p_l.
    """
    found = (np.where(ranking.hits, inverse[ranking.best], 0.0)[:, :k]).sum(axis=1) / k
    values = inverse[truth.indices]
    rows = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
    values = values[np.lexsort((-values, rows))]
    among_first = np.arange(rows.size) - truth.indptr[rows] < k
    return Terms(found, np.bincount(rows, np.where(among_first, values, 0.0), minlength=truth.shape[0]) / k)


def document_precision(predicted: sp.csr_array, truth: sp.csr_array) -> Terms:
    """|predicted and Y| / |predicted| of each document; 0 where nothing is predicted."""
    return Terms(_hits(predicted, truth) / np.maximum(np.diff(predicted.indptr), 1), np.ones(truth.shape[0]))


def document_recall(predicted: sp.csr_array, truth: sp.csr_array) -> Terms:
    """|predicted and Y| / |Y| of each document; documents without a true label do not count."""
    true = np.diff(truth.indptr)
    return Terms(_hits(predicted, truth) / np.maximum(true, 1), (true > 0).astype(float))


def document_f1(predicted: sp.csr_array, truth: sp.csr_array) -> Terms:
    """2 |predicted and Y| / (|predicted| + |Y|) of each document; documents with neither do not count."""
    size = np.diff(predicted.indptr) + np.diff(truth.indptr)
    return Terms(2 * _hits(predicted, truth) / np.maximum(size, 1), (size > 0).astype(float))


def brier_skill(scores: Scores) -> Terms | None:
    """1 - sum (p - y)^2 / sum y^2 over all pairs of a document and a label: the share of the squared error (Brier 1950)
    of saying "no label" everywhere that the probabilities p take away.

    1 is certain and right everywhere, 0 no better than silence; below 0, silence is better, as it is than scores that
    were trained to rank. A proper score: on average no p does better than the true one.

    Scores are log-odds, p = 1 / (1 + exp(-score)); -inf is p = 0, and so are labels beyond the top K where only those
    were kept. None for scores without a natural threshold, which have no scale.
    """
    if scores.natural_threshold is None:
        return None
    of_true, of_all = np.zeros(scores.truth.shape[0]), np.zeros(scores.truth.shape[0])
    for part, truth, some in scores.blocks():
        probabilities = _probabilities(some, scores.natural_threshold)
        of_true[part] = np.asarray(truth.multiply(probabilities).sum(axis=1)).ravel()
        of_all[part] = np.asarray((probabilities * probabilities).sum(axis=1)).ravel()
    return Terms(2 * of_true - of_all, np.diff(scores.truth.indptr).astype(float))  # y^2 - (p - y)^2 = 2py - p^2


AT = {"p": precision_at, "r": recall_at, "ndcg": ndcg_at, "rp": recall_at}
"""Metrics written name@k. R@k of the paper and RP@k of LMTC have the same denominator, min(k, |Y|)."""
BY_NAME = {f.__name__: f for f in (document_precision, document_recall, document_f1)}


def _probabilities(scores: np.ndarray | sp.csr_array, threshold: float) -> np.ndarray | sp.csr_array:
    """Of log-odds above the natural threshold; what a sparse array does not hold has probability 0."""
    if not isinstance(scores, np.ndarray):
        found = _probabilities(scores.data, threshold)
        return sp.csr_array((found, scores.indices, scores.indptr), shape=scores.shape)
    return expit(scores.astype(np.float64) - threshold)


def _hits(predicted: sp.csr_array, truth: sp.csr_array) -> np.ndarray:
    return np.asarray(predicted.multiply(truth).sum(axis=1)).ravel()


def _pairs(array: sp.csr_array) -> np.ndarray:
    rows = np.repeat(np.arange(array.shape[0]), np.diff(array.indptr))
    return rows * array.shape[1] + array.indices
