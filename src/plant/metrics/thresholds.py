"""Threshold rules: how a system's scores become predicted labels (choice C12).

A label is predicted if its score is above the threshold. `natural` is the system's own threshold (score 0, probability
.5). Every other rule is an entry of `THRESHOLD_RULES`: it tunes a threshold on validation scores, never on test scores.

To add a rule, write one function here and list it in `THRESHOLD_RULES`. Then metrics named `micro_f1@<rule>` exist, and
metrics.json records the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used: the names of metrics need none

from plant.metrics.f1 import Objective, best_threshold, best_threshold_of_entries
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores
from plant.metrics.top import stored_at

TUNED, NATURAL = "tuned", "natural"
SLOPES = (0.0, -0.25, 0.25, -0.5, 0.5, -1.0, 1.0, -2.0)
"""Slopes that the rule `sloped` tries. Unit: standard deviations of the scores of true labels for one standard
deviation of log(1 + training documents). The first of equally good ones is taken."""


@dataclass(frozen=True)
class TunedThreshold:
    """A label is predicted if its score is above `value + slope * log(1 + training documents of the label)`."""

    value: float
    objective: Objective | None
    """The F1 that `value` maximises on the validation split. None: the rule has another aim."""
    on_validation: float
    """What the rule maximises, on the validation split; an F1 is a fraction in [0, 1]."""
    slope: float = 0.0


def tune_for_objective(validation: Scores, labels: LabelSpace) -> TunedThreshold:
    """One threshold for all labels that maximises `evaluation.tune_for`. Metrics without a suffix use it."""
    return _tune(validation, labels, labels.settings.tune_for)


def tune_for_micro_f1(validation: Scores, labels: LabelSpace) -> TunedThreshold:
    """One threshold for all labels that maximises micro-F1. Most published micro-F1 is measured at it."""
    return _tune(validation, labels, "micro_f1")


def tune_slope(validation: Scores, labels: LabelSpace) -> TunedThreshold:
    """A threshold that is linear in log(1 + training documents of the label) and maximises `evaluation.tune_for`.

    The slope is chosen on the K best scores of each document, the value then on all scores.
    """
    objective, counted = labels.settings.tune_for, labels.n_train[labels.n_train > 0]
    spread = float(np.log1p(counted).std()) if counted.size else 0.0
    kept = validation.kept.tocoo()
    of_true = kept.data[stored_at(validation.truth, *kept.coords) & np.isfinite(kept.data)]
    if not spread or not of_true.size:
        return _tune(validation, labels, objective)
    unit = float(of_true.std(dtype=np.float64)) / spread
    tried = [_tune(validation, labels, objective, slope * unit, of_top=True) for slope in SLOPES]
    best = max(tried, key=lambda each: each.on_validation)  # the first of equal ones
    return _tune(validation, labels, objective, best.slope)


THRESHOLD_RULES: dict[str, Callable[[Scores, LabelSpace], TunedThreshold]] = {
    TUNED: tune_for_objective, "micro": tune_for_micro_f1, "sloped": tune_slope,
}  # fmt: skip
"""Name -> function of the validation scores and the labels. It raises InputError if no validation document has a
label."""


def predict(
    scores: Scores, threshold: float, *, slope: float = 0.0, n_train: np.ndarray | None = None
) -> scipy.sparse.csr_array:
    """(N, L) boolean: whether the score is above the threshold (compared in float32, as it was tuned).

    If only the top K scores were kept, labels beyond them are not predicted, whether they are true or not.
    """
    if scores.dense is not None:
        return scipy.sparse.csr_array(_less_slope(scores.dense, slope, n_train) > np.float32(threshold))
    kept = scores.retrieved.tocoo()
    rows, columns = kept.coords
    of_entries = None if n_train is None else n_train[columns]
    above = _less_slope(kept.data, slope, of_entries) > np.float32(threshold)
    return scipy.sparse.csr_array((above[above], (rows[above], columns[above])), shape=kept.shape)


def _tune(
    validation: Scores, labels: LabelSpace, objective: Objective, slope: float = 0.0, *, of_top: bool = False
) -> TunedThreshold:
    """The best value for a slope, exactly. Equal maxima: the highest threshold.

    It comes from all scores if they are known, else (and with `of_top`) from the top K scores of each document: then at
    most K labels of a document are predicted.
    """
    if validation.dense is not None and not of_top:
        scores = _less_slope(validation.dense, slope, labels.n_train)
        best = best_threshold(scores, validation.truth.toarray(), objective)
    else:
        kept, columns = validation.retrieved.tocoo(), validation.retrieved.indices
        scores = _less_slope(kept.data, slope, labels.n_train[columns])
        truth = stored_at(validation.truth, *kept.coords)
        positives = np.bincount(validation.truth.indices, minlength=len(labels.names))
        best = best_threshold_of_entries(columns, scores, truth, positives=positives, objective=objective)
    return TunedThreshold(best.value, objective, best.objective, slope)


def _less_slope(scores: np.ndarray, slope: float, n_train: np.ndarray | None) -> np.ndarray:
    """Scores minus slope * log(1 + training documents), in float32; the scores themselves if the slope is 0."""
    if not slope or n_train is None:
        return scores
    return scores.astype(np.float32) - (slope * np.log1p(n_train)).astype(np.float32)
