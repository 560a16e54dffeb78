"""The z-scored sum of the two main baselines: the bar for a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Outcome, Sources, best_of, ndcg, read_comparable
from plant.metrics.aligned import AlignedScores, align

PARTS = ("tfidf_linear", "mig_log_odds")


class Moments(NamedTuple):
    """Mean and standard deviation of one system's scores on the validation split."""

    mean: float
    deviation: float


def combined(sources: Sources) -> Outcome:
    """Choose the weight w on validation, and score.

    score = w (a - mean_a) / sd_a + (1 - w) (b - mean_b) / sd_b,   a linear, b log-odds.

    Mean and standard deviation are over all scores of the validation split, not per label: scores per label would hide
    how frequent a label is. The sum has no natural threshold. The pairs are those of `plant.metrics.aligned.align`.

    Raises:
        InputError: scores are missing, or the two systems scored other documents or labels.
    """
    folders = [sources.files[part] for part in PARTS]
    pairs = {split: align(read_comparable(folders, split, sources.labels)) for split in SPLITS}
    moments = [moments_of(values) for values in pairs["val"].scores]
    truth = sources.truth("val")
    values = {w: ndcg(weighted(pairs["val"], moments, w), truth) for w in sources.settings.weights}
    weight, choices = best_of("weight", values)
    return Outcome({split: weighted(part, moments, weight) for split, part in pairs.items()}, None, choices)


def weighted(pairs: AlignedScores, moments: Sequence[Moments], weight: float) -> np.ndarray | scipy.sparse.csr_array:
    """The weighted sum of z-scores; -inf if either system has no score."""
    known = np.logical_and(*map(np.isfinite, pairs.scores))
    first, second = (
        (np.where(known, values, 0.0) - own.mean) / own.deviation
        for values, own in zip(pairs.scores, moments, strict=True)
    )
    total = np.where(known, weight * first + (1 - weight) * second, -np.inf)
    return pairs.filled(total.astype(np.float32))


def moments_of(values: np.ndarray) -> Moments:
    """Of the finite scores. If all are equal, the deviation is 1."""
    finite = values[np.isfinite(values)].astype(np.float64)
    deviation = float(finite.std()) if finite.size else 0.0
    return Moments(float(finite.mean()) if finite.size else 0.0, deviation if deviation > 0 else 1.0)


register(Baseline("combined", "TF-IDF + MIG combined", combined, inputs=("labels", *PARTS), outputs=()))
