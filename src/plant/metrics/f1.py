"""The global threshold that maximises an F1 over labels.

A label is predicted if its score is above the threshold. A label with the score -inf is never predicted.
"""

from typing import NamedTuple

import numpy as np

from plant.ground.errors import InputError
from plant.ground.settings.base import Objective
from plant.metrics.arrays import BLOCK, ordered_codes, scores_of_codes


class Threshold(NamedTuple):
    """A threshold and the objective that it reaches."""

    value: float
    objective: float


def best_threshold(scores: np.ndarray, truth: np.ndarray, objective: Objective = "macro_f1_present") -> Threshold:
    """The threshold that maximises an F1: every cut between two scores is tried, in O(M log M) for M scores.

    Equal maxima: the highest threshold, which predicts the fewest labels.

    Args:
        scores: (documents, labels), float; -inf is never predicted.
        truth: (documents, labels), boolean.
        objective: `macro_f1_present` (only labels with a positive count) or `micro_f1`.

    Returns:
        The threshold, half-way between the two neighbouring scores, and its F1.

    Raises:
        InputError: the shapes differ, a score is NaN, or there is no positive.
    """
    if scores.shape != truth.shape:
        raise InputError(
            "best_threshold", expected=f"truth of the shape of scores, {scores.shape}", got=f"{truth.shape}",
            fix="Pass the two arrays of the same documents and labels.",
        )  # fmt: skip
    positives = truth.sum(axis=0)
    counted = np.flatnonzero(positives) if objective == "macro_f1_present" else np.arange(positives.size)
    width = max(1, BLOCK // max(1, len(scores)))
    blocks = [counted[start : start + width] for start in range(0, counted.size, width)]
    steps = [_steps(block[:, None], scores[:, block].T, truth[:, block].T, positives, objective) for block in blocks]
    return _best_cut(steps, positives, objective)


def best_threshold_of_entries(
    labels: np.ndarray, scores: np.ndarray, truth: np.ndarray, *, positives: np.ndarray, objective: Objective
) -> Threshold:
    """The same from a list of entries (label id, score, truth). A pair that is not listed is never predicted.

    `positives` (L,) are all true labels, listed or not.
    """
    return _best_cut([_steps(labels, scores, truth, positives, objective)], positives, objective)


_Steps = tuple[np.ndarray, np.ndarray]


def _steps(
    labels: np.ndarray, scores: np.ndarray, truth: np.ndarray, positives: np.ndarray, objective: Objective
) -> _Steps:
    """Distinct scores, ascending, and what the entries with each score add to the sums of the objective if predicted.

    Entries are arrays (labels, documents) with `labels` (labels, 1), or lists (n,).
    """
    if np.isnan(scores).any():
        raise InputError(
            "threshold", expected="scores that are numbers", got="NaN", fix="The training diverged: lower its rate."
        )
    # One 64-bit key per entry (label, inverted score, truth): sorting keys is several times faster than argsort.
    keys = (~ordered_codes(scores)).astype(np.uint64) << np.uint64(1)
    keys |= (labels.astype(np.uint64) << np.uint64(33)) | truth.astype(np.uint64)
    keys.sort(axis=-1)
    keys = keys.ravel()
    codes, true = ~(keys >> np.uint64(1)).astype(np.uint32), (keys & np.uint64(1)).astype(np.int64)
    counted = codes != ordered_codes(np.array([-np.inf]))
    if objective == "micro_f1":
        gains = np.stack([true, np.ones(true.size)], axis=1)  # hits and predictions
    else:
        label = (keys >> np.uint64(33)).astype(np.int64)
        counted &= positives[label] > 0
        gains = _f1_gains(label, true, positives)[:, None]
    return _per_level(codes[counted], gains[counted])


def _f1_gains(labels: np.ndarray, true: np.ndarray, positives: np.ndarray) -> np.ndarray:
    """What each further prediction adds to the F1 of its label. Entries are sorted by label, then from the best."""
    first = np.flatnonzero(np.diff(labels, prepend=-1))
    begin = np.repeat(first, np.diff(first, append=labels.size))  # where the label of each entry begins
    hits = np.cumsum(true)
    hits -= hits[begin] - true[begin]
    f1 = 2 * hits / (positives[labels] + np.arange(1, labels.size + 1) - begin)
    gains = np.diff(f1, prepend=0.0)
    gains[first] = f1[first]
    return gains


def _best_cut(steps: list[_Steps], positives: np.ndarray, objective: Objective) -> Threshold:
    """The best threshold, half-way between two neighbouring distinct scores."""
    if not positives.any():
        raise InputError(
            "threshold", expected="at least one true label with training documents in the validation split",
            got="none", fix="Give the validation split documents with labels of the training split.",
        )  # fmt: skip
    codes, gains = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    codes, gains = _per_level(codes, gains)
    totals = np.cumsum(gains[::-1], axis=0)  # from the highest score down
    if objective == "macro_f1_present":
        values = totals[:, 0] / np.count_nonzero(positives)
    else:
        values = 2 * totals[:, 0] / (positives.sum() + totals[:, 1])
    levels = scores_of_codes(codes[::-1]).astype(np.float64)
    if not levels.size or values.max() <= 0:  # no true label has a score: every threshold is as good
        return Threshold(float(levels[0]) if levels.size else 0.0, 0.0)
    best = int(np.argmax(values))
    below = levels[best + 1] if best + 1 < levels.size else levels[best] - 1.0
    middle = np.float32((levels[best] + below) / 2)  # float32, because scores are compared in float32
    return Threshold(float(middle if middle < levels[best] else below), float(values[best]))


def _per_level(codes: np.ndarray, gains: np.ndarray) -> _Steps:
    """Distinct codes, ascending, and the sums (codes, columns) of their gains."""
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    if not codes.size:
        return codes, gains
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    return codes[first], np.add.reduceat(gains[order], first, axis=0)
