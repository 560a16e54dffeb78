"""Naive Bayes on the presence of each label's few most informative tokens, from counts over training documents.

With T_l the chosen tokens of label l, x_t = 1 where t is in the document, s the smoothing,

    e(x, l) = log (n_l + s) / (N - n_l + s)
              + sum over t in T_l of   x_t log (p_t / q_t) + (1 - x_t) log ((1 - p_t) / (1 - q_t)),
    p_t = (n_lt + s) / (n_l + 2 s),   q_t = (n_t - n_lt + s) / (N - n_l + 2 s):

the log-odds of the label given which of its tokens are present, were they independent. A label without tokens has its
smoothed prior alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from plant.ground.settings import Relevance
from plant.relevance.choice import Training, chosen

_BLOCK = 1000  # documents whose log-odds are summed at once


@dataclass(frozen=True)
class LogOdds:
    """e(x, l) = constant of l + sum over its present tokens of their weight.

    Attributes:
        label, token: ids, one a weight.
        weight: float64, log (p_t / q_t) - log ((1 - p_t) / (1 - q_t)).
        constant: float64[L], of a document with none of the label's tokens.
    """

    label: np.ndarray
    token: np.ndarray
    weight: np.ndarray
    constant: np.ndarray

    def of(self, present: scipy.sparse.csr_array) -> np.ndarray:
        """float32 (N, L) of some documents, given their tokens as ones in (N, V): one sparse product."""
        shape = (present.shape[1], len(self.constant))
        weights = scipy.sparse.csr_array((self.weight.astype(np.float32), (self.token, self.label)), shape=shape)
        scores = np.empty((present.shape[0], len(self.constant)), np.float32)
        for start in range(0, len(scores), _BLOCK):
            scores[start : start + _BLOCK] = (present[start : start + _BLOCK] @ weights).toarray() + self.constant
        return scores


def log_odds(
    label: np.ndarray, token: np.ndarray, *, n_joint: np.ndarray, n_token: np.ndarray, n_label: np.ndarray,
    n_documents: int, smoothing: float,
) -> LogOdds:  # fmt: skip
    """From the counts of chosen pairs: ids `label` and `token`, and training documents with both and with the token.

    `n_label` is int64[L], training documents of every label; `n_documents` is N; `smoothing` is s > 0.
    """
    carried, total = n_label.astype(np.float64), float(n_documents)
    of_pair, in_all, both = carried[label], n_token.astype(np.float64), n_joint.astype(np.float64)
    with_label = (both + smoothing) / (of_pair + 2 * smoothing)
    without = (in_all - both + smoothing) / (total - of_pair + 2 * smoothing)
    if_present, if_absent = np.log(with_label / without), np.log((1 - with_label) / (1 - without))
    constant = np.log((carried + smoothing) / (total - carried + smoothing))
    constant += np.bincount(label, if_absent, minlength=len(n_label))
    return LogOdds(label, token, if_present - if_absent, constant)


def log_odds_of_best(training: Training, measure: str, settings: Relevance, *, smoothing: float) -> LogOdds:
    """Log-odds over the k best tokens of each label, which are chosen and counted on the same documents."""
    pieces, none = list(chosen(training, measure, settings)), np.zeros(0, np.int64)
    label = np.concatenate([none, *(np.repeat(piece.labels, piece.lengths) for piece in pieces)])
    token = np.concatenate([none, *(piece.token for piece in pieces)])
    n_joint = np.concatenate([none, *(piece.n_joint for piece in pieces)])
    return log_odds(
        label, token, n_joint=n_joint, n_token=training.n_token[token], n_label=np.diff(training.indptr),
        n_documents=training.n_documents, smoothing=smoothing,
    )  # fmt: skip
