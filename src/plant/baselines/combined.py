"""The z-scored sum of the two other baselines: the bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Outcome, Sources, best_of, ndcg, read_comparable
from plant.metrics.aligned import Pairs, align

PARTS = ("tfidf_linear", "mig_log_odds")


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of one system's scores on the validation split."""

    mean: float
    deviation: float


def combined(sources: Sources) -> Outcome:
    """Choose the weight on validation, and score.

    score = w (a - mean_a) / sd_a + (1 - w) (b - mean_b) / sd_b,   a linear, b log-odds,

    with mean and standard deviation over all scores of the validation split: one pair a system, not one a label,
    which would throw away how often a label occurs. The sum has no natural threshold.

    Where the label set is too large for dense scores, the pairs are the top K labels of each document under
    either system; a label that only one of them ranks there gets the other's K-th score, the most that it can have.

    Raises:
        InputError: scores are missing, or the two systems scored other documents or labels.
    """
    folders = [sources.files[part] for part in PARTS]
    pairs = {split: align(read_comparable(folders, split, sources.labels)) for split in SPLITS}
    scales = tuple(scale_of(values) for values in pairs["val"].scores)
    truth = sources.truth("val")
    values = {w: ndcg(weighted(pairs["val"], scales, w), truth) for w in sources.settings.weights}
    weight, choices = best_of("weight", values)
    return Outcome({split: weighted(part, scales, weight) for split, part in pairs.items()}, None, choices)


def weighted(pairs: Pairs, scales: Sequence[Scale], weight: float) -> np.ndarray | sp.csr_array:
    """The weighted sum of z-scores; -inf where either system has no score."""
    known = np.logical_and(*map(np.isfinite, pairs.scores))
    first, second = ((np.where(known, values, 0.0) - scale.mean) / scale.deviation for values, scale in
                     zip(pairs.scores, scales, strict=True))  # fmt: skip
    total = np.where(known, weight * first + (1 - weight) * second, -np.inf)
    return pairs.filled(total.astype(np.float32))


def scale_of(values: np.ndarray) -> Scale:
    """Of the finite scores; a system whose scores are all equal keeps them."""
    finite = values[np.isfinite(values)].astype(np.float64)
    deviation = float(finite.std()) if finite.size else 0.0
    return Scale(float(finite.mean()) if finite.size else 0.0, deviation if deviation > 0 else 1.0)


register(Baseline("combined", "TF-IDF + MIG combined", combined, inputs=("labels", *PARTS), outputs=()))
