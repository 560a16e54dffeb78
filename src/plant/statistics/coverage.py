"""Do the intervals hold what they promise? Coverage by simulation (choice C11).

A population of documents stands in for the world. Test sets of N documents are drawn from it, an interval is made
from each, and the share of intervals that hold the estimand is counted. The estimand is the expectation of the
metric over test sets of that size: that is what the metric of one test set estimates without bias. (The metric of
the whole population is another number: a rare label is present there and absent from most test sets.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from plant.evaluation.runs import Run
from plant.evaluation.values import metric_values
from plant.ground.settings import Evaluation
from plant.metrics.f1 import best_threshold
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores
from plant.metrics.thresholds import Thresholds, Tuned
from plant.statistics.resampling import (
    Interval,
    bootstrap_error,
    centred_interval,
    draw_bootstrap,
    draw_halves,
    half_sampling_error,
    percentile_interval,
)

LIMITS = {"value": (0.0, 1.0), "difference": (-1.0, 1.0)}


@dataclass(frozen=True)
class Coverage:
    """How one kind of interval did for one metric."""

    metric: str
    quantity: str
    """`value` of the first system, or paired `difference` first - second."""
    interval: str
    """`percentile` (the paper's), `bootstrap` or `half_sampling` (value +- z * standard error)."""
    held: float
    """Share of test sets whose interval holds the estimand."""
    too_high: float
    """Share whose interval lies above it."""
    too_low: float
    half_width: float
    """Mean half-width."""
    spread: float
    """True standard deviation of the metric over test sets."""


def simulate_coverage(
    systems: tuple[Run, Run],
    metrics: Sequence[str],
    *,
    documents: int,
    test_sets: int,
    resamples: int,
    expectation_sets: int,
    confidence: float,
    rng: np.random.Generator,
) -> list[Coverage]:
    """Coverage of each kind of interval for values and paired differences.

    Args:
        systems: two runs on a population of documents.
        metrics: names.
        documents: N, documents of a test set (drawn with replacement from the population).
        test_sets: test sets that get an interval; the standard error of a coverage c is sqrt(c (1 - c) / test_sets).
        resamples: B.
        expectation_sets: further test sets, whose mean is the estimand.
        confidence: what the coverage should be.
        rng: draws everything.

    Returns:
        One record a metric, quantity and interval. A test set on which a metric is not defined is left out.
    """
    population = systems[0].truth.shape[0]

    def draw() -> tuple[Run, Run]:
        rows = rng.integers(population, size=documents)
        return take(systems[0], rows), take(systems[1], rows)

    ones = np.ones((documents, 1), dtype=np.float32)
    plain = [_quantities(draw(), metrics, ones) for _ in range(expectation_sets)]
    expected = {key: np.array([float(sample[key][0]) for sample in plain]) for key in plain[0]}
    found: dict[tuple[str, str, str], list[tuple[Interval, float]]] = {}
    for _ in range(test_sets):
        weights = [ones, draw_bootstrap(documents, resamples, rng), draw_halves(documents, resamples, rng)]
        for key, values in _quantities(draw(), metrics, np.concatenate(weights, axis=1)).items():
            if not np.isnan(values[0]):
                for name, interval in _intervals(values, resamples, documents, confidence, LIMITS[key[1]]):
                    found.setdefault((*key, name), []).append((interval, float(np.nanmean(expected[key]))))
    return [_summary(key, records, float(np.nanstd(expected[key[:2]]))) for key, records in found.items()]


def synthetic_population(
    documents: int, labels: int, *, training_documents: int, labels_per_document: float, rng: np.random.Generator
) -> tuple[Run, Run]:
    """Two systems of nearly equal quality on documents with Zipfian labels, most of them rare.

    A label's frequency falls as 1 / rank; its scores are its log prior, plus a signal on its documents (of a
    strength that differs between labels), plus noise that the two systems share in part. Labels without a training
    document have no score. Thresholds are tuned on the first tenth of the documents.
    """
    prior = 1 / np.arange(1, labels + 1)
    prior = np.minimum(0.5, prior * labels_per_document / prior.sum())
    n_train = rng.binomial(training_documents, prior)
    truth = rng.random((documents, labels)) < prior
    shared, own = rng.normal(size=(2, documents, labels))
    strength = rng.gamma(2, 0.5, size=labels)
    space = LabelSpace(tuple(map(str, range(labels))), n_train, training_documents, Evaluation())
    logit = np.log(prior / (1 - prior))
    scores = (logit + 2.0 * strength * truth + shared, logit + 1.7 * strength * truth + 0.8 * shared + 0.6 * own)
    first, second = (_run(np.where(n_train > 0, each, -np.inf), truth, space) for each in scores)
    return first, second


def take(run: Run, rows: np.ndarray) -> Run:
    """The run on some of its documents (repeats allowed), at the same threshold."""
    scores = run.scores
    if scores.dense is None:
        raise ValueError("take: all scores are needed, not only the kept ones")
    ids = tuple(str(row) for row in rows)
    truth = sp.csr_array(scores.truth[rows])
    part = Scores(ids, scores.label_names, truth, truth, scores.dense[rows], scores.top, scores.natural_threshold)
    return Run(part, run.labels, run.thresholds)


def _run(scores: np.ndarray, truth: np.ndarray, space: LabelSpace) -> Run:
    dense = scores.astype(np.float32)
    tenth = truth.shape[0] // 10
    tuned = best_threshold(dense[:tenth], truth[:tenth])
    true = sp.csr_array(truth)
    ids = tuple(map(str, range(truth.shape[0])))
    all_scores = Scores(ids, space.names, true, true, dense, space.settings.top, 0.0)
    known = Thresholds.known(space, {"tuned": Tuned(tuned.value, "macro_f1_present", tuned.objective)})
    return Run(all_scores, space, known)


def _quantities(
    systems: tuple[Run, Run], metrics: Sequence[str], weights: np.ndarray
) -> dict[tuple[str, str], np.ndarray]:
    """(metric, quantity) -> its values in the columns of `weights`."""
    first, second = (metric_values(system, metrics, weights) for system in systems)
    values = {(metric, "value"): first[metric] for metric in metrics}
    return values | {(metric, "difference"): first[metric] - second[metric] for metric in metrics}


def _intervals(
    values: np.ndarray, resamples: int, documents: int, confidence: float, limits: tuple[float, float]
) -> Iterator[tuple[str, Interval]]:
    value, bootstrap, halves = float(values[0]), values[1 : 1 + resamples], values[1 + resamples :]
    yield "percentile", percentile_interval(bootstrap, confidence)
    yield "bootstrap", centred_interval(value, bootstrap_error(bootstrap), confidence, limits=limits)
    yield "half_sampling", centred_interval(value, half_sampling_error(halves, documents), confidence, limits=limits)


def _summary(key: tuple[str, str, str], records: list[tuple[Interval, float]], spread: float) -> Coverage:
    low, high = np.array([interval for interval, _ in records]).T
    expected = np.array([each for _, each in records])
    return Coverage(
        *key,
        held=float(np.mean((low <= expected) & (expected <= high))),
        too_high=float(np.mean(low > expected)),
        too_low=float(np.mean(high < expected)),
        half_width=float(np.mean(high - low) / 2),
        spread=spread,
    )
