"""Approximate randomisation against the enumeration of all swaps."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from plant.evaluation.values import metric_values
from plant.statistics.randomization import (
    Stacked,
    draw_swaps,
    label_ranks,
    overall_ranks,
    randomization_p,
    swapped_differences,
)

METRICS = ("macro_f1_present", "micro_f1", "p@3", "ndcg@3", "map", "macro_auc", "micro_auc", "rare_ap")


def all_swaps(documents: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=documents)), dtype=np.float32).T


def test_each_swap_gives_the_metrics_of_really_exchanged_documents(run, run_of) -> None:
    first, second = run(seed=1, documents=4), run(seed=2, strength=1.0, documents=4)
    swaps = all_swaps(4)
    ours = swapped_differences(first, second, swaps, METRICS)
    truth = first.truth.toarray()
    by_label = [label_ranks(system.scores.dense) for system in (first, second)]
    for column in range(16):
        chosen = swaps[:, column].astype(bool)[:, None]

        def exchanged(pair: list[np.ndarray], chosen: np.ndarray = chosen) -> list[np.ndarray]:
            return [np.where(chosen, pair[1], pair[0]), np.where(chosen, pair[0], pair[1])]

        scores = exchanged([first.scores.dense, second.scores.dense])  # the same threshold in both systems
        raw = [metric_values(run_of(each, truth), METRICS) for each in scores]
        ranked = [metric_values(run_of(each, truth), METRICS) for each in exchanged(by_label)]
        for metric in ("macro_f1_present", "micro_f1", "p@3", "ndcg@3"):
            assert ours[metric][column] == pytest.approx(raw[0][metric][0] - raw[1][metric][0]), metric
        for metric in ("map", "macro_auc", "rare_ap"):
            expected = ranked[0][metric][0] - ranked[1][metric][0]
            assert ours[metric][column] == pytest.approx(expected, nan_ok=True), metric


def test_no_swap_gives_the_observed_difference_and_all_swaps_its_negative(run) -> None:
    first, second = run(seed=1), run(seed=2, strength=1.0)
    swaps = np.stack([np.zeros(30), np.ones(30)], axis=1).astype(np.float32)
    differences = swapped_differences(first, second, swaps, METRICS)
    plain = [metric_values(system, METRICS) for system in (first, second)]
    for metric in METRICS:
        observed = plain[0][metric][0] - plain[1][metric][0]
        assert differences[metric] == pytest.approx([observed, -observed]), metric


def test_many_random_swaps_come_near_the_enumeration_of_all(run) -> None:
    first, second = run(seed=1, documents=8), run(seed=2, strength=0.5, documents=8)
    every = swapped_differences(first, second, all_swaps(8), METRICS)
    drawn = swapped_differences(first, second, draw_swaps(8, 4000, np.random.default_rng(0)), METRICS)
    for metric in METRICS:
        observed = every[metric][0]
        exact = np.mean(np.abs(every[metric]) >= abs(observed) - 1e-12)
        assert randomization_p(observed, drawn[metric]) == pytest.approx(exact, abs=0.04), metric


def test_p_counts_the_observed_arrangement_too() -> None:
    assert randomization_p(0.5, np.array([0.4, -0.6, 0.5, 0.1])) == 3 / 5
    assert randomization_p(0.0, np.zeros(9)) == 1
    assert randomization_p(0.5, np.full(99, 0.1)) == 1 / 100
    assert randomization_p(0.5, np.array([np.nan])) == 1
    assert np.isnan(randomization_p(np.nan, np.zeros(3)))


def test_the_scale_of_a_system_does_not_matter(run, run_of) -> None:
    first, second = run(seed=1), run(seed=2, strength=1.0)
    scaled = run_of(16 * second.scores.dense + 3, second.truth.toarray(), threshold=16 * -1.0 + 3)
    swaps = draw_swaps(30, 40, np.random.default_rng(0))
    here, there = (swapped_differences(first, other, swaps, METRICS) for other in (second, scaled))
    for metric in METRICS:
        assert here[metric] == pytest.approx(there[metric], nan_ok=True), metric


@given(arrays(np.float32, (7, 3), elements=st.one_of(st.integers(-3, 3).map(float), st.just(-np.inf))))
def test_ranks_are_those_of_scipy_and_a_label_without_a_score_keeps_none(scores: np.ndarray) -> None:
    scored = scores > -np.inf
    by_label, overall = rankdata(scores, axis=0), rankdata(scores).reshape(7, 3) - 21  # counted from the top
    assert np.array_equal(label_ranks(scores), np.where(scored, by_label, -np.inf))
    assert np.array_equal(overall_ranks(scores), np.where(scored, overall, -np.inf))


def test_two_runs_of_which_one_has_no_natural_threshold_have_no_predictions_together():
    with_one, without = (
        SimpleNamespace(predictions=lambda _, made=made: made) for made in (sp.csr_array((2, 3)), None)
    )
    assert Stacked(with_one, with_one).predictions("natural").shape == (4, 3)
    assert Stacked(with_one, without).predictions("natural") is None
    assert Stacked(without, with_one).predictions("natural") is None
