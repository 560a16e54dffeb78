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
import scipy.sparse as sp

_BLOCK = 1000  # documents whose log-odds are summed at once


@dataclass(frozen=True)
class Pairs:
    """The chosen (label, token) pairs and their counts.

    Attributes:
        label, token: ids.
        n_joint: training documents with both.
        n_token: training documents with the token.
        n_label: int64[L], training documents of every label.
        n_documents: N.
    """

    label: np.ndarray
    token: np.ndarray
    n_joint: np.ndarray
    n_token: np.ndarray
    n_label: np.ndarray
    n_documents: int


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

    def of(self, present: sp.csr_array) -> np.ndarray:
        """float32 (N, L) of some documents, given their tokens as ones in (N, V): one sparse product."""
        shape = (present.shape[1], len(self.constant))
        weights = sp.csr_array((self.weight.astype(np.float32), (self.token, self.label)), shape=shape)
        scores = np.empty((present.shape[0], len(self.constant)), np.float32)
        for start in range(0, len(scores), _BLOCK):
            scores[start : start + _BLOCK] = (present[start : start + _BLOCK] @ weights).toarray() + self.constant
        return scores


def log_odds(pairs: Pairs, *, smoothing: float) -> LogOdds:
    """Weights of present tokens, and what a document without any of them gets.

    Args:
        pairs: see there.
        smoothing: s > 0.
    """
    n_label, total = pairs.n_label.astype(np.float64), float(pairs.n_documents)
    of_pair, n_token, n_joint = n_label[pairs.label], pairs.n_token.astype(np.float64), pairs.n_joint.astype(np.float64)
    with_label = (n_joint + smoothing) / (of_pair + 2 * smoothing)
    without = (n_token - n_joint + smoothing) / (total - of_pair + 2 * smoothing)
    if_present, if_absent = np.log(with_label / without), np.log((1 - with_label) / (1 - without))
    constant = np.log((n_label + smoothing) / (total - n_label + smoothing))
    constant += np.bincount(pairs.label, if_absent, minlength=len(n_label))
    return LogOdds(pairs.label, pairs.token, if_present - if_absent, constant)
