"""Intervals by simulation: what they promise, they should hold."""

import numpy as np
import pytest

from plant.evaluation.values import metric_values
from plant.statistics.coverage import Coverage, simulate_coverage, synthetic_population, take

SMOOTH, LABEL_MACRO = ("micro_f1", "p@5"), ("map", "macro_f1_present", "rare_ap")


def simulate(documents: int, labels: int, *, test_sets: int, expectation_sets: int) -> dict[tuple, Coverage]:
    rng = np.random.default_rng(0)
    population = synthetic_population(5000, labels, training_documents=300, labels_per_document=6, rng=rng)
    found = simulate_coverage(
        population, SMOOTH + LABEL_MACRO, documents=documents, test_sets=test_sets, resamples=200,
        expectation_sets=expectation_sets, confidence=0.95, rng=rng,
    )  # fmt: skip
    return {(each.metric, each.quantity, each.interval): each for each in found}


def test_our_interval_holds_the_estimand_where_the_percentile_interval_misses_it() -> None:
    found = simulate(100, 60, test_sets=80, expectation_sets=300)  # standard error of a coverage of .95: .024
    for metric in SMOOTH + LABEL_MACRO:
        for quantity in ("value", "difference"):
            assert found[metric, quantity, "half_sampling"].held >= 0.86, (metric, quantity)
    assert found["map", "value", "percentile"].held < 0.86
    assert found["map", "value", "percentile"].too_high > 0.1  # resamples lie above the metric of the test set
    for metric in SMOOTH:
        assert found[metric, "value", "percentile"].held >= 0.86


def test_half_widths_are_1_96_standard_deviations_of_the_metric() -> None:
    found = simulate(60, 20, test_sets=30, expectation_sets=300)
    for metric in SMOOTH:
        record = found[metric, "value", "half_sampling"]
        assert record.half_width == pytest.approx(1.96 * record.spread, rel=0.15)
    assert sum((record.held, record.too_high, record.too_low)) == pytest.approx(1)


def test_a_population_taken_whole_keeps_its_metrics() -> None:
    rng = np.random.default_rng(0)
    first, _ = synthetic_population(200, 60, training_documents=300, labels_per_document=6, rng=rng)
    whole, shuffled = (take(first, rows) for rows in (np.arange(200), np.random.default_rng(1).permutation(200)))
    for metric in SMOOTH + LABEL_MACRO:
        values = [metric_values(run, [metric])[metric][0] for run in (first, whole, shuffled)]
        assert values == pytest.approx([values[0]] * 3)


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "labels"), [(100, 60), (300, 150)])
def test_coverage_is_near_nominal_for_every_metric(documents: int, labels: int) -> None:
    found = simulate(documents, labels, test_sets=400, expectation_sets=1500)  # standard error .011
    for metric in SMOOTH + LABEL_MACRO:
        for quantity in ("value", "difference"):
            assert found[metric, quantity, "half_sampling"].held >= 0.915, (metric, quantity)
    assert found["map", "value", "percentile"].held < 0.85
