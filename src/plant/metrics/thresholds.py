"""The thresholds: chosen on validation scores, never on test scores (choice C12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from plant.metrics.f1 import Objective, best_threshold, best_threshold_of_entries
from plant.metrics.groups import LabelSpace
from plant.metrics.names import Cut
from plant.metrics.scores import Scores
from plant.metrics.top import stored_at

SLOPES = (0.0, -0.25, 0.25, -0.5, 0.5, -1.0, 1.0, -2.0)
"""Tried for the sloped threshold, in standard deviations of the scores of true labels a standard deviation of
log(1 + training documents). Of equal ones the first is taken."""


@dataclass(frozen=True)
class ThresholdRule:
    """A label is predicted where its score is above `value + slope * log(1 + training documents of the label)`."""

    value: float
    objective: Objective
    """What `value` maximises on the validation split."""
    on_validation: float
    """The maximum, a fraction in [0, 1]."""
    slope: float = 0.0


@dataclass
class Thresholds:
    """The thresholds of a run, each tuned the first time that it is asked for.

    Attributes:
        validation: reads the validation scores; None where only `found` is known.
        labels: of the corpus.
        found: those that were tuned.
    """

    validation: Callable[[], Scores] | None
    labels: LabelSpace
    found: dict[Cut, ThresholdRule] = field(default_factory=dict)

    @classmethod
    def known(cls, labels: LabelSpace, found: Mapping[Cut, ThresholdRule]) -> Thresholds:
        """Of scores that come without a validation split (simulations)."""
        return cls(None, labels, dict(found))

    def of(self, cut: Cut) -> ThresholdRule | None:
        """The threshold of a cut; None where there is none."""
        if cut not in self.found and self.validation is not None and cut != "natural":
            self.found[cut] = tune(self.validation(), self.labels, cut)
        return self.found.get(cut)


def tune(validation: Scores, labels: LabelSpace, cut: Cut = "tuned") -> ThresholdRule:
    """The threshold of a cut that maximises its objective on the validation split, exactly.

    tuned maximises `evaluation.tune_for`, micro maximises micro-F1, sloped maximises `evaluation.tune_for` over
    `SLOPES` too. Equal maxima: the highest threshold. Where only the top K scores were kept, at most K labels are
    predicted. The slope is chosen on the K best scores of each document, its value then on all scores.

    Raises:
        InputError: no validation document has a label.
    """
    objective: Objective = "micro_f1" if cut == "micro" else labels.settings.tune_for
    slope = _best_slope(validation, labels, objective) if cut == "sloped" else 0.0
    if validation.dense is None:
        return _tune_kept(validation, objective, slope, labels.n_train)
    best = best_threshold(_above(validation.dense, slope, labels.n_train), validation.truth.toarray(), objective)
    return ThresholdRule(best.value, objective, best.objective, slope)


def predict(scores: Scores, threshold: float, *, slope: float = 0.0, n_train: np.ndarray | None = None) -> sp.csr_array:
    """(N, L) boolean: where the score is above the threshold (compared in float32, as it was tuned).

    Where only the top K scores were kept, labels beyond them are not predicted, true or not.
    """
    if scores.dense is not None:
        return sp.csr_array(_above(scores.dense, slope, n_train) > np.float32(threshold))
    kept = scores.retrieved.tocoo()
    rows, columns = kept.coords
    above = _above(kept.data, slope, None if n_train is None else n_train[columns]) > np.float32(threshold)
    return sp.csr_array((np.ones(int(above.sum()), dtype=bool), (rows[above], columns[above])), shape=kept.shape)


def _best_slope(validation: Scores, labels: LabelSpace, objective: Objective) -> float:
    """Of `SLOPES`, in units of the scores."""
    spread = float(np.log1p(labels.n_train[labels.n_train > 0]).std()) if (labels.n_train > 0).any() else 0.0
    kept = validation.kept.tocoo()
    of_true = kept.data[stored_at(validation.truth, *kept.coords) & np.isfinite(kept.data)]
    if not spread or not of_true.size:
        return 0.0
    unit = float(of_true.std(dtype=np.float64)) / spread
    tried = [_tune_kept(validation, objective, slope * unit, labels.n_train) for slope in SLOPES]
    return max(tried, key=lambda each: each.on_validation).slope  # the first of equal ones


def _tune_kept(validation: Scores, objective: Objective, slope: float, n_train: np.ndarray) -> ThresholdRule:
    kept = validation.retrieved.tocoo()
    columns = kept.coords[1]
    best = best_threshold_of_entries(
        columns, _above(kept.data, slope, n_train[columns]), stored_at(validation.truth, *kept.coords),
        positives=np.bincount(validation.truth.indices, minlength=validation.truth.shape[1]), objective=objective,
    )  # fmt: skip
    return ThresholdRule(best.value, objective, best.objective, slope)


def _above(scores: np.ndarray, slope: float, n_train: np.ndarray | None) -> np.ndarray:
    """Scores less the part of the threshold that goes with a label's training documents, float32 where there is one."""
    if not slope or n_train is None:
        return scores
    return scores.astype(np.float32) - (slope * np.log1p(n_train)).astype(np.float32)
