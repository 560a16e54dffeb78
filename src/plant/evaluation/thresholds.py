"""The one global threshold: chosen on validation scores, never on test scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from plant.evaluation.scores import Scores
from plant.f1 import Objective, best_threshold, best_threshold_of_entries
from plant.settings import Evaluation


@dataclass(frozen=True)
class Tuned:
    """A label is predicted where its score is above `value`."""

    value: float
    objective: Objective
    """What `value` maximises on the validation split."""
    on_validation: float
    """The maximum, a fraction in [0, 1]."""


def tune(validation: Scores, settings: Evaluation) -> Tuned:
    """The threshold that maximises `settings.tune_for` on the validation split, exactly.

    Equal maxima: the highest threshold. Where only the top K scores were kept, at most K labels are predicted.

    Raises:
        InputError: no validation document has a label.
    """
    if validation.dense is not None:
        best = best_threshold(validation.dense, validation.truth.toarray(), settings.tune_for)
        return Tuned(best.value, settings.tune_for, best.objective)
    kept = validation.retrieved.tocoo()
    labels = validation.truth.shape[1]
    true = np.isin(_pairs(kept), _pairs(validation.truth.tocoo()))
    best = best_threshold_of_entries(
        kept.coords[1], kept.data, true,
        positives=np.bincount(validation.truth.indices, minlength=labels), objective=settings.tune_for,
    )  # fmt: skip
    return Tuned(best.value, settings.tune_for, best.objective)


def predict(scores: Scores, threshold: float) -> sp.csr_array:
    """(N, L) boolean: where the score is above the threshold (compared in float32, as it was tuned).

    Where only the top K scores were kept, labels beyond them are not predicted, true or not.
    """
    if scores.dense is not None:
        return sp.csr_array(scores.dense > np.float32(threshold))
    kept = scores.retrieved.tocoo()
    above = kept.data > np.float32(threshold)
    rows, columns = kept.coords
    return sp.csr_array((np.ones(int(above.sum()), dtype=bool), (rows[above], columns[above])), shape=kept.shape)


def _pairs(array: sp.coo_array) -> np.ndarray:
    return array.coords[0].astype(np.int64) * array.shape[1] + array.coords[1]
