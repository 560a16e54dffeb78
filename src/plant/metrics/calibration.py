"""How well probabilities fit: log-loss and expected calibration error, a block of pairs at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from plant.metrics.scores import Scores

BINS = 15
"""Of equal width (Guo et al. 2017, "On calibration of modern neural networks")."""


class Calibration:
    """Sums over pairs of a logit and a truth."""

    def __init__(self) -> None:
        self.pairs, self.positives, self._loss = 0, 0, 0.0
        self._sums = np.zeros((2, BINS))  # of probabilities, of truth

    def add(self, logits: np.ndarray, truth: np.ndarray) -> None:
        """Count some pairs.

        Args:
            logits: (m,) finite float64.
            truth: (m,) boolean.
        """
        probability = expit(logits)
        self._loss += float(np.logaddexp(0, logits).sum() - logits[truth].sum())
        bins = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
        for place, values in enumerate((probability, truth.astype(np.float64))):
            self._sums[place] += np.bincount(bins, values, BINS)
        self.pairs, self.positives = self.pairs + truth.size, self.positives + int(truth.sum())

    def record(self) -> dict[str, float | None]:
        """Mean log-loss (nats), and sum over bins of |sum of probabilities - sum of truth|, a pair."""
        if not self.pairs:
            return {"log_loss": None, "calibration_error": None}
        error = float(np.abs(self._sums[0] - self._sums[1]).sum())
        return {"log_loss": self._loss / self.pairs, "calibration_error": error / self.pairs}


def calibration_of(scores: Scores) -> dict[str, Any] | None:
    """How well the scores of a split fit as log-odds: pairs, positives, mean log-loss and calibration error.

    Over the pairs of a document and a label that have a score; where only the top K labels were kept, over those. None
    for scores without a natural threshold, which have no scale.
    """
    if scores.natural_threshold is None:
        return None
    found = Calibration()
    for _, truth, some in scores.blocks():
        if isinstance(some, np.ndarray):
            logits, true = some.reshape(-1), truth.toarray().reshape(-1)
        else:
            pairs = some.tocoo()
            logits, true = pairs.data, truth.toarray()[pairs.coords]
        known = np.isfinite(logits)
        found.add(logits[known].astype(np.float64) - scores.natural_threshold, true[known])
    return {"pairs": found.pairs, "positives": found.positives, **found.record()}
