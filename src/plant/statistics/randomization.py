"""Approximate randomisation: what if the two systems' outputs were swapped document by document?

Under the null hypothesis that it does not matter which of two systems made the outputs of a document, swapping
them at random gives differences like the observed one (Noreen 1989; Yeh 2000). In each of R rounds every document
is swapped with probability 1/2, in all seeds together, and

    p = (1 + #{|delta*| >= |delta|}) / (1 + R).

What is swapped: the predicted sets for precision, recall and F1; the ranking of its labels for @k metrics; and for
AUC and AP the rank of the document among all documents in each label's list, because two systems' scores need not
have a common scale (ranks leave each system's own AUC and AP as they are). Simulated with equally good systems, one on
a scale 5 times the other's, 250 trials: at .05 the test of mAP and macro-AUC rejects in 6% and 4% by ranks, and in 2%
and 0% by raw scores, which also lose most of their power.
Systems with different numbers of seeds S and S' are paired seed by seed, cyclically, over lcm(S, S') pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from plant.evaluation.values import Measured, metric_values
from plant.ground import seeds
from plant.metrics.curves import BLOCK, Columns, Kept
from plant.metrics.documents import Terms
from plant.metrics.f1 import half_codes, scores_of_half_codes
from plant.metrics.groups import LabelSpace
from plant.metrics.names import Cut, Metric
from plant.statistics.systems import Comparison, number_of_documents, require_same_documents

SCHEMA = pa.schema([
    ("system", pa.string()), ("metric", pa.string()), ("difference", pa.float64()), ("p", pa.float64()),
    ("resamples", pa.uint32()),
])  # fmt: skip
ROUNDING = 1e-12


def randomization_p(observed: float, swapped: np.ndarray) -> float:
    """p = (1 + #{|delta*| >= |delta|}) / (1 + R); rounds in which the metric is not defined count against.

    Args:
        observed: delta.
        swapped: (R,), delta* of each round.

    Returns:
        In [1 / (1 + R), 1]; NaN where delta is not defined.

    >>> randomization_p(0.3, np.array([0.1, -0.3, 0.2]))
    0.5
    """
    if np.isnan(observed):
        return float("nan")
    smaller = np.abs(swapped) < abs(observed) - ROUNDING
    return float((1 + np.count_nonzero(~smaller)) / (1 + swapped.size))


def draw_swaps(documents: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(N, R) float32 of 0 and 1: 1 where a document's outputs are swapped."""
    return rng.integers(2, size=(documents, resamples)).astype(np.float32)


def randomization_tests(comparison: Comparison) -> pa.Table:
    """The test of each system against the reference, one row a system and metric; undefined values are null."""
    settings = comparison.settings
    rows = []
    for name in comparison.others:
        for metric, (observed, *swapped) in _differences(comparison, name).items():
            p = randomization_p(observed, np.array(swapped))
            undefined = np.isnan(observed)
            rows.append({
                "system": name, "metric": metric, "difference": None if undefined else float(observed),
                "p": None if undefined else p, "resamples": settings.resamples,
            })  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def swapped_differences(
    first: Measured, second: Measured, swaps: np.ndarray, metrics: Sequence[str]
) -> dict[str, np.ndarray]:
    """Metric -> (R,), first - second after swapping documents where `swaps` (N, R) is 1."""
    rounds = swaps.shape[1]
    weights = np.block([[1 - swaps, swaps], [swaps, 1 - swaps]])  # left: in the first system's place
    values = metric_values(Stacked(first, second), metrics, weights)
    return {metric: values[metric][:rounds] - values[metric][rounds:] for metric in metrics}


def _differences(comparison: Comparison, name: str) -> dict[str, np.ndarray]:
    """Metric -> (1 + R,), mean differences over pairs of seeds: the observed one, then the swapped ones."""
    ours, theirs = comparison.systems[name], comparison.systems[comparison.reference]
    metrics, resamples = comparison.settings.metrics, comparison.settings.resamples
    rng = seeds.generator(comparison.settings.seed, "statistics", "randomization", name)
    swaps = draw_swaps(number_of_documents(comparison), resamples, rng)
    swaps = np.concatenate([np.zeros_like(swaps[:, :1]), swaps], axis=1)
    pairs = math.lcm(len(ours), len(theirs))
    total = {metric: np.zeros(1 + resamples) for metric in metrics}
    for pair in range(pairs):
        first, second = comparison.run(ours[pair % len(ours)]), comparison.run(theirs[pair % len(theirs)])
        require_same_documents(first.scores, second.scores, f"{name} and {comparison.reference}")
        for metric, difference in swapped_differences(first, second, swaps, metrics).items():
            total[metric] += difference / pairs
    return total


@dataclass(frozen=True)
class Stacked:
    """Two runs as one run of 2N documents, the first run's above the second's; weights say which one counts."""

    first: Measured
    second: Measured

    @property
    def labels(self) -> LabelSpace:
        return self.first.labels

    @property
    def truth(self) -> sp.csr_array:
        return _stack(self.first.truth, self.second.truth)

    def predictions(self, cut: Cut) -> sp.csr_array | None:
        first, second = self.first.predictions(cut), self.second.predictions(cut)
        return None if first is None or second is None else _stack(first, second)

    def curve_scores(self) -> RanksInColumns | Kept:
        first, second = self.first.curve_scores(), self.second.curve_scores()
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            return RanksInColumns(first, second)
        first, second = (_as_kept(part) for part in (first, second))
        return Kept(_stack(first.scores, second.scores), np.concatenate([first.bound, second.bound]))

    def all_scores(self) -> RanksInAll | None:
        first, second = self.first.all_scores(), self.second.all_scores()
        if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
            return None
        return RanksInAll.of(first, second)

    def terms(self, metric: Metric) -> Terms | None:
        first, second = self.first.terms(metric), self.second.terms(metric)
        if first is None or second is None:
            return None
        return Terms(
            np.concatenate([first.numerator, second.numerator]), np.concatenate([first.denominator, second.denominator])
        )


@dataclass(frozen=True)
class RanksInColumns:
    """The rank of each document in each label's list of either run, made for some labels at a time."""

    first: np.ndarray
    second: np.ndarray

    def columns(self, labels: np.ndarray) -> np.ndarray:
        return np.concatenate([ranks(self.first[:, labels]), ranks(self.second[:, labels])])


@dataclass(frozen=True)
class RanksInAll:
    """The place of each score among all scores of its run, made for some documents at a time."""

    runs: tuple[np.ndarray, np.ndarray]
    places: tuple[_Places, _Places]

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray) -> RanksInAll:
        return cls((first, second), (_Places.of(first), _Places.of(second)))

    def rows(self, documents: slice) -> np.ndarray:
        parts = []
        for run, places, before in zip(self.runs, self.places, (0, len(self.runs[0])), strict=True):
            parts.append(places.find(run[max(0, documents.start - before) : max(0, documents.stop - before)]))
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Places:
    """Minus the mean number of scores above each distinct score; -inf stays -inf.

    Counted from the top, so that float32 tells the places of the highest scores apart however many scores there are.
    """

    levels: np.ndarray | None
    """Distinct scores, ascending; None: all that fp16 holds, by their codes."""
    places: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray) -> _Places:
        levels, counts = None, np.zeros(1 << 16, dtype=np.int64)
        for block in _blocks(scores):
            codes = half_codes(block)
            if codes is None:
                levels, counts = np.unique(scores, return_counts=True)
                break
            counts += np.bincount(codes.ravel(), minlength=counts.size)
        places = (counts + 1) / 2 - np.cumsum(counts[::-1])[::-1]
        known = scores_of_half_codes(np.arange(counts.size)) if levels is None else levels
        return cls(levels, np.where(known == -np.inf, -np.inf, places).astype(np.float32))

    def find(self, scores: np.ndarray) -> np.ndarray:
        codes = half_codes(scores) if self.levels is None else np.searchsorted(self.levels, scores)
        return self.places[codes]


def _blocks(scores: np.ndarray) -> Iterator[np.ndarray]:
    height = max(1, BLOCK // max(1, scores.shape[1]))
    return (scores[first : first + height] for first in range(0, scores.shape[0], height))


def ranks(scores: np.ndarray) -> np.ndarray:
    """(N, L) float32 mean ranks of the documents in each label's column, 1 for the lowest; -inf stays -inf.

    >>> ranks(np.array([[0.5], [-np.inf], [7.0], [0.5]])).ravel().tolist()
    [2.5, -inf, 4.0, 2.5]
    """
    rows = np.ascontiguousarray(scores.T)  # (L, N): a label's documents side by side
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    new = np.ones((rows.shape[0], rows.shape[1] + 1), dtype=bool)
    new[:, 1:-1] = ordered[:, 1:] != ordered[:, :-1]
    places = np.arange(rows.shape[1], dtype=np.float32)
    first = np.maximum.accumulate(np.where(new[:, :-1], places, 0), axis=1)
    last = np.minimum.accumulate(np.where(new[:, 1:], places, np.inf)[:, ::-1], axis=1)[:, ::-1]
    result = np.empty(rows.shape, dtype=np.float32)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=1)
    return np.where(scores > -np.inf, result.T, np.float32(-np.inf))


def _as_kept(scores: np.ndarray | Columns | Kept) -> Kept:
    if isinstance(scores, Kept):
        return scores
    if not isinstance(scores, np.ndarray):
        raise TypeError(f"scores of a run: expected an array, got {type(scores).__name__}")
    rows, columns = np.nonzero(scores > -np.inf)
    entries = sp.csr_array((scores[rows, columns], (rows, columns)), shape=scores.shape)
    return Kept(entries, np.full(scores.shape[0], -np.inf, dtype=np.float32))


def _stack(first: sp.csr_array, second: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(sp.vstack([first, second], format="csr"))
