"""F1 over labels, and the one global threshold that maximises it.

NumPy only, so that training can use it too.

Symbols: s score (higher is better), t threshold, l label, n_l positives of label l. A label is predicted where
s > t. A score of -inf means that the system has no score for the label: it is never predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from plant.ground.errors import InputError

Objective = Literal["macro_f1_present", "micro_f1"]
BLOCK = 4_000_000  # entries that are sorted at once: bounds the temporary memory to about 150 MB


class Threshold(NamedTuple):
    """A threshold and the value of the objective where it was chosen."""

    value: float
    objective: float


def macro_f1(scores: np.ndarray, truth: np.ndarray, threshold: float) -> float:
    """Macro-F1 over the labels with a positive in `truth` (`macro_f1_present`): mean of 2 TP / (n_l + predicted).

    Args:
        scores: (documents, labels), any float type.
        truth: (documents, labels), boolean.
        threshold: a label is predicted where its score is strictly above.

    Returns:
        A fraction in [0, 1], higher is better; NaN without any positive.

    >>> macro_f1(np.array([[2.0, -1.0], [1.0, -2.0]]), np.array([[True, False], [False, True]]), 0.0)
    0.3333333333333333
    """
    predicted = scores > np.float32(threshold)
    positives = truth.sum(axis=0)
    present = positives > 0
    if not present.any():
        return float("nan")
    hits = (predicted & truth).sum(axis=0)
    return float(np.mean(2 * hits[present] / (positives + predicted.sum(axis=0))[present]))


def best_threshold(scores: np.ndarray, truth: np.ndarray, objective: Objective = "macro_f1_present") -> Threshold:
    """The threshold that maximises an F1 over (documents, labels) arrays: exact, every cut is tried.

    O(M log M) for M = documents x labels. Equal maxima: the highest threshold (fewest predictions).

    Args:
        scores: (documents, labels), float; -inf is never predicted.
        truth: (documents, labels), boolean.
        objective: `macro_f1_present` (labels without a positive do not count) or `micro_f1`.

    Returns:
        The threshold, half-way between the two neighbouring scores, and the F1 there.

    Raises:
        InputError: a shape mismatch, a NaN score, or no positive at all.
    """
    if scores.shape != truth.shape:
        raise InputError(
            "best_threshold",
            expected=f"truth of the shape of scores, {scores.shape}",
            got=f"{truth.shape}",
            fix="Pass the two arrays of the same documents and labels.",
        )
    positives = _required(truth.sum(axis=0))
    return _best_cut(_dense_steps(scores, truth, positives, objective), positives, objective)


def best_threshold_of_entries(
    labels: np.ndarray, scores: np.ndarray, truth: np.ndarray, *, positives: np.ndarray, objective: Objective
) -> Threshold:
    """As `best_threshold`, from single (label id, score, truth) entries; what is not listed is never predicted."""
    positives = _required(positives)
    steps = _macro_steps if objective == "macro_f1_present" else _micro_steps
    return _best_cut([steps(*_sorted(labels, scores, truth), positives)], positives, objective)


def ordered_codes(scores: np.ndarray) -> np.ndarray:
    """Unsigned 32-bit integers in the order of the (float32) scores; equal scores have equal codes.

    >>> codes = ordered_codes(np.array([-np.inf, -1.0, -0.0, 0.0, 3.0]))
    >>> bool((np.diff(codes.astype(np.int64)) > 0).tolist() == [True, True, False, True])
    True
    """
    bits = (np.asarray(scores, dtype=np.float32) + np.float32(0)).view(np.uint32)  # + 0 turns -0 into 0
    return np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000))


def half_codes(scores: np.ndarray) -> np.ndarray | None:
    """Unsigned 16-bit integers in the order of the scores; None unless fp16 holds every score exactly.

    >>> half_codes(np.array([0.5, -0.0, 0.0, -np.inf], dtype=np.float32)).tolist()
    [47104, 32768, 32768, 1023]
    """
    with np.errstate(over="ignore"):
        half = scores.astype(np.float16)
    if not np.array_equal(half, scores):
        return None
    bits = (half + np.float16(0)).view(np.uint16)
    return np.where(bits >> 15, ~bits, bits | np.uint16(0x8000))


def scores_of_half_codes(codes: np.ndarray) -> np.ndarray:
    """Inverse of `half_codes`, as float32."""
    codes = np.asarray(codes, dtype=np.uint16)
    return np.where(codes >> 15, codes & np.uint16(0x7FFF), ~codes).view(np.float16).astype(np.float32)


def scores_of_codes(codes: np.ndarray) -> np.ndarray:
    """Inverse of `ordered_codes`."""
    codes = np.asarray(codes, dtype=np.uint32)
    return np.where(codes >> 31, codes & np.uint32(0x7FFFFFFF), ~codes).view(np.float32)


_NEVER, _NEVER_HALF = np.uint32(0x007FFFFF), np.uint16(0x03FF)  # codes of -inf
_Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
_Steps = tuple[np.ndarray, np.ndarray]


def _dense_steps(
    scores: np.ndarray, truth: np.ndarray, positives: np.ndarray, objective: Objective
) -> Iterator[_Steps]:
    """What `_macro_steps` and `_micro_steps` give for the entries of (documents, labels) arrays, in blocks."""
    documents, labels = scores.shape
    width = max(1, BLOCK // max(1, documents))
    for start in range(0, labels, width):
        block = slice(start, start + width)
        _refuse_nan(scores[:, block])
        counted = positives[block] > 0
        if objective == "micro_f1":
            counted[:] = True
        rows = np.ascontiguousarray(scores[:, block].T[counted])
        yield _row_steps(rows, truth[:, block].T[counted], positives[block][counted], objective)


def _row_steps(scores: np.ndarray, truth: np.ndarray, positives: np.ndarray, objective: Objective) -> _Steps:
    """Sums of gains per distinct score of (labels, documents) rows.

    Scores that fp16 holds (as score files do) are sorted and grouped by 16-bit codes: three times faster, and the
    same numbers are added in the same order.
    """
    half = half_codes(scores)
    if half is None:
        codes = ordered_codes(scores)
        keys = (~codes).astype(np.uint64) << np.uint64(1)
    else:
        codes = half
        keys = (~codes).astype(np.uint32) << np.uint32(1)
    keys |= truth.astype(keys.dtype)  # a row's keys are sorted by (inverted score, truth)
    keys.sort(axis=1)
    true = (keys & keys.dtype.type(1)).astype(np.int32)
    codes = (~(keys >> keys.dtype.type(1))).astype(codes.dtype).ravel()
    if objective == "macro_f1_present":
        f1 = 2 * np.cumsum(true, axis=1) / (positives[:, None] + np.arange(1, scores.shape[1] + 1))
        gains = f1.copy()
        gains[:, 1:] -= f1[:, :-1]
        gains = gains.reshape(-1, 1)
    else:
        gains = np.stack([true.ravel(), np.ones(true.size)], axis=1)
    scored = codes != (_NEVER if half is None else _NEVER_HALF)
    if not scored.all():
        codes, gains = codes[scored], gains[scored]
    codes, gains = _per_level(codes, gains)
    return (codes if half is None else ordered_codes(scores_of_half_codes(codes))), gains


def _required(positives: np.ndarray) -> np.ndarray:
    positives = np.asarray(positives, dtype=np.int64)
    if not positives.any():
        raise InputError(
            "threshold",
            expected="at least one true label in the validation split",
            got="none",
            fix="Give the validation split documents with labels.",
        )
    return positives


def _best_cut(steps: Iterable[_Steps], positives: np.ndarray, objective: Objective) -> Threshold:
    parts = list(steps)
    codes, gains = _per_level(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))
    codes, totals = codes[::-1], np.cumsum(gains[::-1], axis=0)  # from the highest score down
    if objective == "macro_f1_present":
        values = totals[:, 0] / np.count_nonzero(positives)
    else:
        values = 2 * totals[:, 0] / (positives.sum() + totals[:, 1])
    return _cut(scores_of_codes(codes).astype(np.float64), values)


def _cut(levels: np.ndarray, values: np.ndarray) -> Threshold:
    """The best cut below one of the `levels` (descending), half-way to the next level."""
    if not levels.size or values.max() <= 0:  # no true label has a score: every threshold is as good
        return Threshold(float(levels[0]) if levels.size else 0.0, 0.0)
    best = int(np.argmax(values))
    below = levels[best + 1] if best + 1 < levels.size else levels[best] - 1.0
    middle = np.float32((levels[best] + below) / 2)  # float32, because scores are compared in float32
    return Threshold(float(middle if middle < levels[best] else below), float(values[best]))


def _sorted(labels: np.ndarray, scores: np.ndarray, truth: np.ndarray) -> _Entries:
    """Entries with a score, sorted by (label, score descending), as (label, code, truth)."""
    _refuse_nan(scores)
    scored = scores > -np.inf
    codes = ordered_codes(scores[scored])
    # One 64-bit key (label, inverted score, truth): sorting the keys is several times faster than an argsort.
    key = labels[scored].astype(np.uint64) << np.uint64(33)
    key |= (~codes).astype(np.uint64) << np.uint64(1)
    key |= truth[scored].astype(np.uint64)
    key.sort()
    return (key >> np.uint64(33)).astype(np.int64), ~(key >> np.uint64(1)).astype(np.uint32), (key & np.uint64(1)) > 0


def _refuse_nan(scores: np.ndarray) -> None:
    if np.isnan(scores).any():
        raise InputError(
            "threshold", expected="scores that are numbers", got="NaN", fix="The training diverged: lower its rate."
        )


def _macro_steps(labels: np.ndarray, codes: np.ndarray, truth: np.ndarray, positives: np.ndarray) -> _Steps:
    """What each further prediction of a label adds to the sum of F1 over labels."""
    first = np.flatnonzero(np.diff(labels, prepend=-1))
    lengths = np.diff(first, append=labels.size)
    predicted = np.arange(1, labels.size + 1) - np.repeat(first, lengths)
    hits = np.cumsum(truth)
    hits -= np.repeat(hits[first] - truth[first], lengths)
    f1 = 2 * hits / (positives[labels] + predicted)
    gains = np.diff(f1, prepend=0.0)
    gains[first] = f1[first]
    counts = positives[labels] > 0  # labels without a positive stay out of the mean
    return _per_level(codes[counts], gains[counts, None])


def _micro_steps(
    labels: np.ndarray,  # noqa: ARG001 (same signature as `_macro_steps`)
    codes: np.ndarray,
    truth: np.ndarray,
    positives: np.ndarray,  # noqa: ARG001
) -> _Steps:
    """Hits and predictions of each entry."""
    return _per_level(codes, np.stack([truth, np.ones_like(truth)], axis=1).astype(np.float64))


def _per_level(codes: np.ndarray, gains: np.ndarray) -> _Steps:
    """Sum of gains (entries, columns) per distinct score, ascending."""
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    if not codes.size:
        return codes, gains
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    return codes[first], np.add.reduceat(gains[order], first, axis=0)
