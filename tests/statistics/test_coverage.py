"""Do the intervals hold what they promise? Coverage by simulation (choice C11).

A population of documents stands in for the world. Test sets of N documents are drawn from it, an interval is made from
each, and the share of intervals that hold the estimand is counted. The estimand is the expectation of the metric over
test sets of that size: that is what the metric of one test set estimates without bias. (The metric of the whole
population is another number: a rare label is present there and absent from most test sets.)
"""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from plant.evaluation.runs import Run
from plant.evaluation.values import metric_values
from plant.metrics.f1 import best_threshold
from plant.statistics.resampling import (
    bootstrap_error,
    draw_bootstrap,
    draw_halves,
    half_sampling_error,
    percentile_interval,
)

SMOOTH, LABEL_MACRO = ("micro_f1", "p@5"), ("map", "macro_f1_present", "rare_ap")
METRICS, RESAMPLES, CONFIDENCE = SMOOTH + LABEL_MACRO, 200, 0.95
REACH = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def population(run_of: Callable[..., Run], documents: int, labels: int, rng: np.random.Generator) -> list[Run]:
    """Two systems of nearly equal quality on documents with Zipfian labels, most of them rare.

    The scores of a label are its log prior, plus a signal on its documents (of a strength that differs between
    labels), plus noise that the two systems share in part. Labels without a training document have no score.
    Thresholds are tuned on the first tenth of the documents.
    """
    prior = 1 / np.arange(1, labels + 1)
    prior = np.minimum(0.5, prior * 6 / prior.sum())
    n_train = rng.binomial(300, prior)
    truth = rng.random((documents, labels)) < prior
    shared, own = rng.normal(size=(2, documents, labels))
    strength, logit = rng.gamma(2, 0.5, size=labels), np.log(prior / (1 - prior))
    first, second = 2.0 * strength * truth + shared, 1.7 * strength * truth + 0.8 * shared + 0.6 * own
    runs = []
    for signal in (first, second):
        dense = np.where(n_train > 0, logit + signal, -np.inf).astype(np.float32)
        best = best_threshold(dense[: documents // 10], truth[: documents // 10])
        runs.append(run_of(dense, truth, threshold=best.value, n_train=n_train))
    return runs


def quantities(systems: list[Run], weights: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """(metric, value of the first system or paired difference) -> its values in the columns of `weights`."""
    first, second = (metric_values(system, METRICS, weights) for system in systems)
    return {(m, "value"): first[m] for m in METRICS} | {(m, "difference"): first[m] - second[m] for m in METRICS}


def simulate(
    run_of: Callable[..., Run], take: Callable[[Run, np.ndarray], Run], documents: int, labels: int, *,
    test_sets: int, expectation_sets: int,
) -> dict[tuple[str, str, str], np.ndarray]:  # fmt: skip
    """(metric, quantity, interval) -> (test sets, 3): low, high, and the estimand."""
    rng = np.random.default_rng(0)
    systems, ones = population(run_of, 5000, labels, rng), np.ones((documents, 1), dtype=np.float32)

    def drawn() -> list[Run]:
        rows = rng.integers(5000, size=documents)
        return [take(system, rows) for system in systems]

    plain = [quantities(drawn(), ones) for _ in range(expectation_sets)]
    found: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    for _ in range(test_sets):
        weights = [ones, draw_bootstrap(documents, RESAMPLES, rng), draw_halves(documents, RESAMPLES, rng)]
        for key, values in quantities(drawn(), np.concatenate(weights, axis=1)).items():
            value, bootstrap, halves = values[0], values[1 : 1 + RESAMPLES], values[1 + RESAMPLES :]
            if np.isnan(value):
                continue
            expected = np.array([sample[key][0] for sample in plain])
            estimand = np.nanmean(expected)
            found.setdefault((*key, "percentile"), []).append((*percentile_interval(bootstrap, CONFIDENCE), estimand))
            errors = {"bootstrap": bootstrap_error(bootstrap), "half_sampling": half_sampling_error(halves, documents)}
            for name, error in errors.items():
                limits = (0 if key[1] == "value" else -1, 1)
                interval = np.clip([value - REACH * error, value + REACH * error], *limits)
                found.setdefault((*key, name), []).append((*interval, estimand))
    return {key: np.array(records) for key, records in found.items()}


def held(records: np.ndarray) -> float:
    """The share of test sets whose interval holds the estimand."""
    low, high, expected = records.T
    return float(np.mean((low <= expected) & (expected <= high)))


def test_our_interval_holds_the_estimand_where_the_percentile_interval_misses_it(run_of, take) -> None:
    # standard error of a coverage of .95: .024
    found = simulate(run_of, take, 100, 60, test_sets=80, expectation_sets=300)
    for metric in METRICS:
        for quantity in ("value", "difference"):
            assert held(found[metric, quantity, "half_sampling"]) >= 0.86, (metric, quantity)
    percentile = found["map", "value", "percentile"]
    assert held(percentile) < 0.86
    assert np.mean(percentile[:, 0] > percentile[:, 2]) > 0.1  # resamples lie above the metric of the test set
    for metric in SMOOTH:
        assert held(found[metric, "value", "percentile"]) >= 0.86


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "labels"), [(100, 60), (300, 150)])
def test_coverage_is_near_nominal_for_every_metric(run_of, take, documents: int, labels: int) -> None:
    found = simulate(run_of, take, documents, labels, test_sets=400, expectation_sets=1500)  # standard error .011
    for metric in METRICS:
        for quantity in ("value", "difference"):
            assert held(found[metric, quantity, "half_sampling"]) >= 0.915, (metric, quantity)
    assert held(found["map", "value", "percentile"]) < 0.85
