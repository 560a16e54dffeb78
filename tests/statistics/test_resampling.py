"""Resamples and intervals against closed forms."""

import numpy as np
import pytest

from plant.ground import seeds
from plant.ground.settings import Statistics
from plant.statistics.resampling import (
    bootstrap_error,
    count_clusters,
    draw,
    draw_bootstrap,
    draw_halves,
    half_sampling_error,
    percentile_interval,
)


def test_every_resample_has_as_many_documents_and_every_half_has_half() -> None:
    rng = np.random.default_rng(0)
    bootstrap, halves = draw_bootstrap(31, 50, rng), draw_halves(31, 50, rng)
    assert (bootstrap.sum(axis=0) == 31).all()
    assert (halves.sum(axis=0) == 15).all()
    assert set(np.unique(halves)) == {0, 1}
    assert len({tuple(column) for column in bootstrap.T}) == 50


def test_counts_of_a_document_are_binomial() -> None:
    weights = draw_bootstrap(40, 20_000, np.random.default_rng(1))
    # Binomial(40, 1/40): mean 1, variance 1 - 1/40, never drawn with (1 - 1/40)^40
    assert weights.mean() == pytest.approx(1)
    assert weights.var() == pytest.approx(1 - 1 / 40, abs=0.01)
    assert (weights == 0).mean() == pytest.approx((1 - 1 / 40) ** 40, abs=0.005)


def test_the_percentile_interval_is_that_of_the_definition() -> None:
    assert percentile_interval(np.arange(1001) / 1000, 0.95) == pytest.approx((0.025, 0.975))
    assert percentile_interval(np.array([np.nan, 1.0, 1.0]), 0.95) == (1.0, 1.0)
    assert np.isnan(percentile_interval(np.array([np.nan]), 0.95)).all()


@pytest.mark.parametrize("documents", [60, 61])
def test_both_errors_of_a_mean_are_its_standard_error(documents: int) -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=documents)
    bootstrap = values @ draw_bootstrap(documents, 40_000, rng) / documents
    halves = values @ draw_halves(documents, 40_000, rng) / (documents // 2)
    assert bootstrap_error(bootstrap) == pytest.approx(values.std(ddof=0) / np.sqrt(documents), rel=0.02)
    assert half_sampling_error(halves, documents) == pytest.approx(values.std(ddof=1) / np.sqrt(documents), rel=0.02)


def test_an_error_needs_two_documents_and_two_defined_values() -> None:
    assert np.isnan(half_sampling_error(np.array([0.1, 0.2]), 1))
    assert np.isnan(half_sampling_error(np.array([0.1, np.nan]), 9))
    assert np.isnan(bootstrap_error(np.array([np.nan, 0.3])))


@pytest.mark.parametrize("units", [50, 51])
def test_a_metric_that_few_documents_give_a_value_has_no_error(units: int) -> None:
    """The one test document with a rare label: every half that holds it has the same value, and proves nothing. Five
    documents have 2^5 signs of their differences, so that p is 2 / 2^5 > .05 even if all five agree."""
    draws = (draw_bootstrap(units, 1000, np.random.default_rng(3)), draw_halves(units, 1000, np.random.default_rng(4)))
    errors = (bootstrap_error, lambda values: half_sampling_error(values, units))
    for weights, error, fewest in zip(draws, errors, (2, 6), strict=True):
        for carrying in range(1, 9):
            held = weights[:carrying]
            values = np.where(held.any(axis=0), np.arange(carrying) @ held / held.sum(axis=0).clip(1), np.nan)
            assert np.isnan(error(values)) == (carrying < fewest), carrying


def test_a_cluster_is_drawn_as_a_whole_and_counts_as_one_document() -> None:
    settings, clusters = Statistics(resamples=200), np.repeat(np.arange(9), 3)
    values = np.random.default_rng(5).normal(size=9)
    for kind, plain in (("bootstrap", draw_bootstrap), ("halves", draw_halves)):
        together, alone = draw(kind, clusters, settings), draw(kind, np.arange(9), settings)
        np.testing.assert_array_equal(together, np.repeat(alone, 3, axis=0))
        rng = seeds.generator(settings.seed, "statistics", kind)
        np.testing.assert_array_equal(alone, plain(9, 200, rng))  # without groups: as ever
    # three equal documents of one patient say no more than one: the error of a mean is the same
    three, one = (values[c] @ draw("halves", c, settings) / (4 * len(c) / 9) for c in (clusters, np.arange(9)))
    assert half_sampling_error(three, count_clusters(clusters)) == pytest.approx(half_sampling_error(one, 9))
