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
        for (one, other), metrics in (
            ([first.scores.dense, second.scores.dense], METRICS[:4]),  # the same threshold in both systems
            (by_label, ("map", "macro_auc", "rare_ap")),
        ):
            exchanged = np.where(chosen, other, one), np.where(chosen, one, other)
            here, there = (metric_values(run_of(scores, truth), metrics) for scores in exchanged)
            for metric in metrics:
                expected = here[metric][0] - there[metric][0]
                assert ours[metric][column] == pytest.approx(expected, nan_ok=True), metric


def test_no_swap_gives_the_observed_difference_and_all_swaps_its_negative(run) -> None:
    first, second = run(seed=1), run(seed=2, strength=1.0)
    swaps = np.stack([np.zeros(30), np.ones(30)], axis=1).astype(np.float32)
    differences = swapped_differences(first, second, swaps, METRICS)
    plain = [metric_values(system, METRICS) for system in (first, second)]
    for metric in METRICS:
        observed = plain[0][metric][0] - plain[1][metric][0]
        assert differences[metric] == pytest.approx([observed, -observed]), metric


def test_each_document_is_swapped_with_probability_one_half() -> None:
    patterns = draw_swaps(4, 8000, np.random.default_rng(0)).T @ 2 ** np.arange(4)
    assert np.bincount(patterns.astype(int)) / 8000 == pytest.approx(1 / 16, abs=0.01)


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
    found = SimpleNamespace(predictions=lambda _: sp.csr_array((2, 3)))
    none = SimpleNamespace(predictions=lambda _: None)
    assert Stacked(found, found).predictions("natural").shape == (4, 3)
    assert Stacked(found, none).predictions("natural") is Stacked(none, found).predictions("natural") is None
