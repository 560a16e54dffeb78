"""Approximate randomisation: the outputs of two systems swapped document by document (Noreen 1989; Yeh 2000).

Null hypothesis: it does not matter which of the two systems made the outputs of a document. In each of R rounds every
document is swapped with probability 1/2, in all seeds together. With delta the observed difference and delta* that of a
round,

    p = (1 + #{|delta*| >= |delta|}) / (1 + R).

These outputs are swapped:
- for precision, recall and F1: the predicted labels of the document;
- for metrics at k: its ranking of the labels;
- for AUC and AP: the document's rank among all documents in each label's list. Two systems may score on different
  scales; ranks remove the scale and leave each system's own AUC and AP as they are. In 250 simulations with equally
  good systems, one on a scale 5 times the other's, the test of mAP and macro-AUC at .05 rejects in 6 % and 4 % with
  ranks, but in 2 % and 0 % with raw scores, which also lose most of their power.

Systems with S and S' seeds are paired seed by seed, cyclically, over lcm(S, S') pairs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from plant.evaluation.runs import Run
from plant.evaluation.values import metric_values
from plant.ground import seeds
from plant.metrics.arrays import BLOCK
from plant.metrics.documents import Ranking
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import require_comparable
from plant.statistics.resampling import count_clusters
from plant.statistics.systems import ComparedSystems, to_table

SCHEMA = pa.schema([
    ("system", pa.string()), ("metric", pa.string()), ("difference", pa.float64()), ("p", pa.float64()),
    ("resamples", pa.uint32()),
])  # fmt: skip
ROUNDING = 1e-12


def randomization_p(observed: float, swapped: np.ndarray) -> float:
    """p = (1 + #{|delta*| >= |delta|}) / (1 + R), in [1 / (1 + R), 1]; NaN if delta is not defined.

    `observed` is delta, `swapped` (R,) is delta* of each round. Rounds without a value count as larger.

    >>> randomization_p(0.3, np.array([0.1, -0.3, 0.2]))
    0.5
    """
    if np.isnan(observed):
        return float("nan")
    smaller = np.abs(swapped) < abs(observed) - ROUNDING
    return float((1 + np.count_nonzero(~smaller)) / (1 + swapped.size))


def draw_swaps(units: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(N, R) float32: 1 if the outputs of a document (or cluster) are swapped in a round, else 0."""
    return rng.integers(2, size=(units, resamples)).astype(np.float32)


def randomization_tests(comparison: ComparedSystems) -> pa.Table:
    """The test of each system against the reference, one row per system and metric. What is not defined is null."""
    rows = []
    for name in comparison.others:
        for metric, (observed, *swapped) in _differences(comparison, name).items():
            rows.append({
                "system": name, "metric": metric, "difference": float(observed),
                "p": randomization_p(observed, np.array(swapped)), "resamples": len(swapped),
            })  # fmt: skip
    return to_table(rows, SCHEMA)


def swapped_differences(first: Run, second: Run, swaps: np.ndarray, metrics: Sequence[str]) -> dict[str, np.ndarray]:
    """Metric -> (R,), first - second after the swaps (N, R) of `draw_swaps`."""
    rounds = swaps.shape[1]
    weights = np.block([[1 - swaps, swaps], [swaps, 1 - swaps]])  # columns: first system, second system
    values = metric_values(Stacked(first, second), metrics, weights)
    return {metric: values[metric][:rounds] - values[metric][rounds:] for metric in metrics}


def _differences(comparison: ComparedSystems, name: str) -> dict[str, np.ndarray]:
    """Metric -> (1 + R,), means over pairs of seeds: the observed difference, then that of each round."""
    ours, theirs = comparison.systems[name], comparison.systems[comparison.reference]
    metrics, resamples = comparison.settings.metrics, comparison.settings.resamples
    rng = seeds.generator(comparison.settings.seed, "statistics", "randomization", name)
    swaps = draw_swaps(count_clusters(comparison.clusters), resamples, rng)[comparison.clusters]  # clusters as a whole
    swaps = np.concatenate([np.zeros_like(swaps[:, :1]), swaps], axis=1)
    pairs = math.lcm(len(ours), len(theirs))
    total = {metric: np.zeros(1 + resamples) for metric in metrics}
    for pair in range(pairs):
        first, second = comparison.run(ours[pair % len(ours)]), comparison.run(theirs[pair % len(theirs)])
        require_comparable(first.scores, second.scores, f"{name} and {comparison.reference}")
        for metric, difference in swapped_differences(first, second, swaps, metrics).items():
            total[metric] += difference / pairs
    return total


@dataclass(frozen=True, eq=False)
class Stacked:
    """Two runs as one run of 2N documents: those of the first, then those of the second. Weights choose."""

    first: Run
    second: Run

    @property
    def labels(self) -> LabelSpace:
        return self.first.labels

    @cached_property
    def truth(self) -> sp.csr_array:
        return sp.vstack([self.first.truth, self.second.truth], format="csr")

    def predictions(self, rule: str) -> sp.csr_array | None:
        first, second = self.first.predictions(rule), self.second.predictions(rule)
        return None if first is None or second is None else sp.vstack([first, second], format="csr")

    def ranking(self, group: str | None) -> Ranking:
        first, second = self.first.ranking(group), self.second.ranking(group)
        arrays = (np.concatenate([getattr(run, field.name) for run in (first, second)]) for field in fields(Ranking))
        return Ranking(*arrays)

    @cached_property
    def curve_scores(self) -> tuple[np.ndarray | sp.csr_array, np.ndarray | None]:
        ranks = self._ranked(label_ranks)
        if ranks is not None:
            return ranks, None
        first, second = self.first.scores, self.second.scores
        return sp.vstack([first.kept, second.kept], format="csr"), np.concatenate([first.bound, second.bound])

    @cached_property
    def all_scores(self) -> np.ndarray | None:
        return self._ranked(overall_ranks)

    @cached_property
    def brier_gains(self) -> np.ndarray | None:
        first, second = self.first.brier_gains, self.second.brier_gains
        return None if first is None or second is None else np.concatenate([first, second])

    def _ranked(self, ranks: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """(2N, L) ranks of both runs; None if not all scores are known."""
        first, second = self.first.scores.dense, self.second.scores.dense
        return None if first is None or second is None else np.concatenate([ranks(first), ranks(second)])


def label_ranks(scores: np.ndarray) -> np.ndarray:
    """(N, L) float32 mean ranks of the documents in each label's column, 1 for the lowest; -inf stays -inf.

    >>> label_ranks(np.array([[0.5], [-np.inf], [7.0], [0.5]])).ravel().tolist()
    [2.5, -inf, 4.0, 2.5]
    """
    from scipy.stats import rankdata  # its import takes most of a second

    ranks = np.empty(scores.shape, dtype=np.float32)
    width = max(1, BLOCK // max(1, len(scores)))
    for start in range(0, scores.shape[1], width):
        ranks[:, start : start + width] = rankdata(scores[:, start : start + width], axis=0)
    return np.where(scores > -np.inf, ranks, np.float32(-np.inf))


def overall_ranks(scores: np.ndarray) -> np.ndarray:
    """(N, L) float32 mean ranks of the scores among all scores, 0 above the highest; -inf stays -inf.

    Ranks count from the top, so that float32 separates the highest scores of any number.

    >>> overall_ranks(np.array([[0.5, -np.inf], [7.0, 0.5]])).tolist()
    [[-1.5, -inf], [0.0, -1.5]]
    """
    levels, counts = np.unique(scores, return_counts=True)
    ranks = (counts + 1) / 2 - np.cumsum(counts[::-1])[::-1]
    ranks = np.where(levels == -np.inf, -np.inf, ranks).astype(np.float32)
    return np.stack([ranks[np.searchsorted(levels, row)] for row in scores])
