"""The threshold search against trying every threshold with scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score

from plant.ground.errors import InputError
from plant.metrics.arrays import ordered_codes, scores_of_codes
from plant.metrics.f1 import best_threshold, best_threshold_of_entries

FLOATS = st.one_of(st.floats(-4, 4, width=16), st.just(-np.inf))


def f1(truth: np.ndarray, predicted: np.ndarray, average: str) -> float:
    """scikit-learn's, of labels with a positive only where it is a mean over labels."""
    if average == "micro":
        return f1_score(truth, predicted, average="micro", zero_division=0)
    present = np.flatnonzero(truth.any(axis=0))
    return float(np.mean([f1_score(truth[:, c], predicted[:, c], zero_division=0) for c in present]))


@pytest.mark.parametrize("average", ["macro", "micro"])
@given(scores=arrays(np.float32, (6, 4), elements=FLOATS), truth=arrays(bool, (6, 4)))
def test_no_threshold_gives_a_higher_f1_than_the_best_one(average: str, scores: np.ndarray, truth: np.ndarray) -> None:
    truth[0, 0] = True
    best = best_threshold(scores, truth, "micro_f1" if average == "micro" else "macro_f1_present")
    levels = np.unique(scores[np.isfinite(scores)])
    every_cut = [f1(truth, np.isfinite(scores) & (scores >= level), average) for level in levels]
    assert best.objective == pytest.approx(max(every_cut, default=0.0))
    assert f1(truth, scores > best.value, average) == pytest.approx(best.objective)


def test_equal_maxima_take_the_highest_threshold() -> None:
    scores = np.array([[3.0, 1.0], [2.0, 0.0]], dtype=np.float32)
    truth = np.array([[True, False], [True, False]])
    assert best_threshold(scores, truth).value == 1.5  # cuts below 2, 1 and 0 all give F1 = 1 for the only label


def test_neighbouring_float32_scores_are_separated() -> None:
    upper = np.float32(1.0)
    lower = np.nextafter(upper, np.float32(0))
    scores, truth = np.array([[upper], [lower]]), np.array([[True], [False]])
    best = best_threshold(scores, truth)
    assert best.objective == 1.0
    assert (scores > np.float32(best.value)).tolist() == truth.tolist()


@pytest.mark.parametrize("objective", ["macro_f1_present", "micro_f1"])
def test_threshold_of_entries_is_that_of_the_dense_array(objective) -> None:
    rng = np.random.default_rng(0)
    scores, truth = rng.normal(size=(300, 12)).astype(np.float32), rng.random((300, 12)) < 0.2
    scores[rng.random((300, 12)) < 0.05], truth[:, 3] = -np.inf, False
    rows, columns = np.nonzero(np.ones_like(truth))
    entries = best_threshold_of_entries(
        columns, scores[rows, columns], truth[rows, columns], positives=truth.sum(axis=0), objective=objective
    )
    assert entries.value == best_threshold(scores, truth, objective).value
    assert entries.objective == pytest.approx(best_threshold(scores, truth, objective).objective, abs=1e-13)


def test_blocks_of_labels_give_the_same_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    scores, truth = rng.normal(size=(20, 17)).astype(np.float32), rng.random((20, 17)) < 0.3
    whole = best_threshold(scores, truth)
    monkeypatch.setattr("plant.metrics.f1.BLOCK", 60)
    assert best_threshold(scores, truth) == pytest.approx(whole)


def test_where_no_true_label_has_a_score_the_best_f1_is_zero() -> None:
    assert best_threshold(np.array([[-np.inf, 2.0]]), np.array([[True, False]])) == (0.0, 0.0)


def test_validation_without_labels_is_refused() -> None:
    with pytest.raises(InputError, match="at least one true label with training documents"):
        best_threshold(np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))


def test_nan_scores_and_wrong_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="NaN"):
        best_threshold(np.array([[np.nan]]), np.array([[True]]))
    with pytest.raises(InputError, match="shape"):
        best_threshold(np.zeros((2, 2)), np.ones((2, 3), dtype=bool))


@given(arrays(np.float32, 20, elements=st.floats(width=32, allow_nan=False)))
def test_codes_have_the_order_of_the_scores_and_lead_back(scores: np.ndarray) -> None:
    codes = ordered_codes(scores).astype(np.int64)
    expected = (scores[:, None] > scores).astype(int) - (scores[:, None] < scores)
    assert np.array_equal(np.sign(codes[:, None] - codes), expected)
    assert np.array_equal(scores_of_codes(ordered_codes(scores)), scores)
