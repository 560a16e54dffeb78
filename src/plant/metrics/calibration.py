"""How well probabilities fit the truth: log-loss and expected calibration error."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from plant.metrics.documents import BLOCK
from plant.metrics.scores import Scores

BINS = 15
"""Bins of equal width (Guo et al. 2017, "On calibration of modern neural networks")."""


def calibration(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Log-loss and calibration error over pairs of a document and a label.

    Args:
        parts: the pairs in parts that fit into memory: logits (m,), finite float64, and truth (m,), boolean.

    Returns:
        `pairs` and `positives` (counts), `log_loss` (mean over pairs, nats, lower is better) and `calibration_error`
        (sum over bins of |sum of probabilities - sum of truth|, divided by pairs; in [0, 1], lower is better). The last
        two are None without a pair.

    >>> calibration([(np.array([0.0, 0.0]), np.array([True, False]))])["calibration_error"]
    0.0
    """
    pairs, positives, loss, sums = 0, 0, 0.0, np.zeros((2, BINS))  # sums of probabilities and of truth
    for logits, truth in parts:
        probability = expit(logits)
        loss += float(np.logaddexp(0, logits).sum() - logits[truth].sum())
        bins = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
        for place, values in enumerate((probability, truth.astype(np.float64))):
            sums[place] += np.bincount(bins, values, BINS)
        pairs, positives = pairs + truth.size, positives + int(truth.sum())
    error = float(np.abs(sums[0] - sums[1]).sum())
    means = (loss / pairs, error / pairs) if pairs else (None, None)
    return {"pairs": pairs, "positives": positives, "log_loss": means[0], "calibration_error": means[1]}


def calibration_of(scores: Scores) -> dict[str, Any] | None:
    """The calibration of the known scores of a split, read as log-odds.

    Scores without a natural threshold have no scale: None.
    """
    threshold = scores.natural_threshold
    if threshold is None:
        return None

    def scored_pairs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for first in range(0, scores.truth.shape[0], BLOCK):
            part = slice(first, first + BLOCK)
            some, truth = scores.known[part], scores.truth[part].toarray()
            pairs = None if isinstance(some, np.ndarray) else some.tocoo()
            logits, true = (some.ravel(), truth.ravel()) if pairs is None else (pairs.data, truth[pairs.coords])
            finite = np.isfinite(logits)
            yield logits[finite].astype(np.float64) - threshold, true[finite]

    return calibration(scored_pairs())
