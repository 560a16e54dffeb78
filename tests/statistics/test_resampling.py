"""Resamples and intervals against closed forms and scikit-learn."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, ndcg_score, precision_score, roc_auc_score

from plant.evaluation.values import metric_values
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

METRICS = Statistics().metrics


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


def scikit_learn(scores: np.ndarray, truth: np.ndarray, threshold: float, rare: np.ndarray) -> dict[str, float]:
    """Every metric of the config as scikit-learn computes it from documents, all of which have a label."""
    labels = np.arange(truth.shape[1])
    both = labels[truth.any(axis=0) & ~truth.all(axis=0)]
    present, present_rare = labels[truth.any(axis=0)], labels[truth.any(axis=0) & rare]
    predicted = scores > threshold

    def macro(function: Callable[..., float], outputs: np.ndarray, which: np.ndarray) -> float:
        return float(np.mean([function(truth[:, c], outputs[:, c]) for c in which])) if which.size else np.nan

    top = np.argsort(-scores, axis=1)[:, :5]
    return {
        "macro_auc": macro(roc_auc_score, scores, both),
        "map": macro(average_precision_score, scores, present),
        "rare_ap": macro(average_precision_score, scores, present_rare),
        "macro_f1_present": macro(partial(f1_score, zero_division=0), predicted, present),
        "rare_f1": macro(partial(f1_score, zero_division=0), predicted, present_rare),
        "micro_f1": f1_score(truth, predicted, average="micro", zero_division=np.nan),
        "ndcg@5": ndcg_score(truth, scores, k=5),
        "p@5": float(np.mean([precision_score(row[best], [True] * 5) for row, best in zip(truth, top, strict=True)])),
    }


@pytest.mark.parametrize("draw", [draw_bootstrap, draw_halves])
def test_every_metric_in_every_resample_is_that_of_scikit_learn_on_the_drawn_rows(draw, run_of) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((60, 12)) < 0.5 / np.arange(1, 13) ** 0.7
    truth[np.arange(60), rng.integers(12, size=60)] = True
    scores = (rng.normal(size=truth.shape) + truth).astype(np.float32)  # without ties
    system = run_of(scores, truth, threshold=0.6)
    weights = draw(60, 12, rng)
    ours = metric_values(system, METRICS, weights)
    for column in range(12):
        rows = np.repeat(np.arange(60), weights[:, column].astype(int))
        theirs = scikit_learn(scores[rows], truth[rows], np.float32(0.6), system.labels.groups["rare"])
        assert set(theirs) == set(METRICS)
        for metric in METRICS:
            assert ours[metric][column] == pytest.approx(theirs[metric], abs=1e-12), metric


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
