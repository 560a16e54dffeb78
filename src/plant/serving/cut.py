"""The thresholds of a saved system: which labels a threshold rule predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant.ground.errors import InputError, nearest
from plant.metrics.thresholds import NATURAL, TUNED
from plant.serving.system import SavedSystem


@dataclass(frozen=True)
class Cut:
    """A label is predicted if its score, less what its frequency takes from it, is above one value.

    Attributes:
        value: of all labels.
        less: slope * log(1 + training documents) of each label, float32 (L,); zeros without a slope.
    """

    value: float
    less: np.ndarray

    def above(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Whether the scores of some labels are above, compared in float32 as the value was tuned."""
        return values - self.less[labels] > np.float32(self.value)

    def threshold(self, label: int) -> float:
        """The score above which a label is predicted."""
        return self.value + float(self.less[label])


def cut_of(model: SavedSystem, rule: str = TUNED) -> Cut:
    """The thresholds of a rule of `plant.metrics.thresholds`, tuned on validation when the system was trained.

    Raises:
        InputError: the folder has no threshold of this rule.
    """
    saved = model.parts.thresholds
    entries = {TUNED: saved, **{name: entry for name, entry in saved.items() if isinstance(entry, dict)}}
    if saved.get(NATURAL) is not None:
        entries[NATURAL] = {"value": saved[NATURAL]}
    if rule not in entries:
        raise InputError("rule", expected=f"one of {', '.join(entries)}", got=repr(rule), fix=nearest(rule, entries))
    entry, less = entries[rule], np.zeros(len(model.parts.labels), np.float32)
    if slope := entry.get("slope"):
        counts = np.array([record["training_documents"] for record in model.parts.labels])
        less = (slope * np.log1p(counts)).astype(np.float32)
    return Cut(float(entry["value"]), less)
