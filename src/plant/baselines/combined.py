"""The z-scored sum of the two other baselines: the bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from plant.baselines.target import SPLITS, best_of, ndcg, write
from plant.ground.settings import BaselineSettings, Evaluation
from plant.metrics.aligned import Pairs, align
from plant.metrics.scores import read_scores, require_comparable


@dataclass(frozen=True)
class _Scale:
    """Mean and standard deviation of one system's scores on the validation split."""

    mean: float
    deviation: float


def combined(linear: Path, log_odds: Path, *, settings: BaselineSettings, evaluation: Evaluation, out: Path) -> None:
    """Choose the weight on validation and write the scores of val and test and choices.json.

    score = w (a - mean_a) / sd_a + (1 - w) (b - mean_b) / sd_b,   a linear, b log-odds,

    with mean and standard deviation over all scores of the validation split: one pair a system, not one a label,
    which would throw away how often a label occurs. The sum has no natural threshold.

    Where the label set is too large for dense scores, the pairs are the top K labels of each document under
    either system; a label that only one of them ranks there gets the other's K-th score, the most that it can have.

    Args:
        linear, log_odds: evaluation folders of the two systems.
        settings: the weights w of the linear score that are tried.
        evaluation: limits of the score files.
        out: the system's evaluation folder.

    Raises:
        InputError: scores are missing, or the two systems scored other documents or labels.
    """
    scores = {split: (read_scores(linear, split), read_scores(log_odds, split)) for split in SPLITS}
    for split, both in scores.items():
        require_comparable(*both, f"{split} scores of {linear} and {log_odds}")
    pairs = {split: align(both) for split, both in scores.items()}
    scales = tuple(_scale(values) for values in pairs["val"].scores)
    truth = {split: both[0].truth for split, both in scores.items()}
    values = {w: ndcg(weighted(pairs["val"], scales, w), truth["val"]) for w in settings.weights}
    weight, choices = best_of("weight", values)
    write(
        out, document_ids={split: both[0].document_ids for split, both in scores.items()},
        label_names=scores["val"][0].label_names, truth=truth, natural_threshold=None, evaluation=evaluation,
        scores={split: weighted(part, scales, weight) for split, part in pairs.items()}, choices=choices,
        beside=Path(linear) / "val.scores.parquet", names=scores["val"][0].names,
    )  # fmt: skip


def weighted(pairs: Pairs, scales: Sequence[_Scale], weight: float) -> np.ndarray | sp.csr_array:
    """The weighted sum of z-scores; -inf where either system has no score."""
    known = np.logical_and(*map(np.isfinite, pairs.scores))
    first, second = (_standardised(np.where(known, values, 0.0), scale) for values, scale in
                     zip(pairs.scores, scales, strict=True))  # fmt: skip
    total = np.where(known, weight * first + (1 - weight) * second, -np.inf)
    return pairs.filled(total.astype(np.float32))


def _standardised(values: np.ndarray, scale: _Scale) -> np.ndarray:
    return (values - scale.mean) / scale.deviation


def _scale(values: np.ndarray) -> _Scale:
    """Of the finite scores; a system whose scores are all equal keeps them."""
    finite = values[np.isfinite(values)].astype(np.float64)
    deviation = float(finite.std()) if finite.size else 0.0
    return _Scale(float(finite.mean()) if finite.size else 0.0, deviation if deviation > 0 else 1.0)
