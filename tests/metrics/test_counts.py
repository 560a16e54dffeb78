"""The F1 family against hand fractions and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score, precision_score, recall_score

from plant.metrics import counts


def tally(predicted: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> counts.Counts:
    weights = np.ones((len(truth), 1), dtype=np.float32) if weights is None else weights
    return counts.count(sp.csr_array(predicted), sp.csr_array(truth), weights)


def value(name: str, predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(counts.BY_NAME[name](tally(predicted, truth))[0])


def test_the_three_macro_f1s_differ_where_a_label_is_absent() -> None:
    truth = np.array([[1, 0, 0], [1, 1, 0]], dtype=bool)  # label 2 has no positive
    predicted = np.array([[1, 0, 0], [0, 1, 1]], dtype=bool)
    # F1 by label: 2/3 (1 of 2 found), 1, 0 (predicted in vain)
    assert value("macro_f1_present", predicted, truth) == pytest.approx((2 / 3 + 1) / 2)
    assert value("macro_f1_all", predicted, truth) == pytest.approx((2 / 3 + 1 + 0) / 3)
    # precision 1, 1, 0 -> 2/3; recall 1/2, 1, 0 -> 1/2; harmonic mean 4/7
    assert value("macro_f1_caml", predicted, truth) == pytest.approx(4 / 7)
    # 2 hits, 3 predictions, 3 positives
    assert value("micro_f1", predicted, truth) == pytest.approx(2 * 2 / (3 + 3))
    assert value("micro_precision", predicted, truth) == value("micro_recall", predicted, truth) == pytest.approx(2 / 3)


def test_present_is_all_times_labels_over_present_labels(case) -> None:
    made = case(0)
    predicted, present = made.scores > 0, made.truth.any(axis=0).sum()
    assert present < made.truth.shape[1]
    assert value("macro_f1_present", predicted, made.truth) == pytest.approx(
        value("macro_f1_all", predicted, made.truth) * made.truth.shape[1] / present
    )


@given(arrays(bool, (7, 4)), arrays(bool, (7, 4)))
def test_every_metric_is_that_of_scikit_learn(predicted: np.ndarray, truth: np.ndarray) -> None:
    columns = range(4)
    by_label = {
        "f1": [f1_score(truth[:, c], predicted[:, c], zero_division=0) for c in columns],
        "precision": [precision_score(truth[:, c], predicted[:, c], zero_division=0) for c in columns],
        "recall": [recall_score(truth[:, c], predicted[:, c], zero_division=0) for c in columns],
    }
    present = truth.any(axis=0)
    for name, values in by_label.items():
        assert value(f"macro_{name}_all", predicted, truth) == pytest.approx(np.mean(values))
        expected = np.mean(np.array(values)[present]) if present.any() else np.nan
        assert value(f"macro_{name}_present", predicted, truth) == pytest.approx(expected, nan_ok=True)
    if predicted.any() and truth.any():
        for name, function in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
            expected = function(truth, predicted, average="micro", zero_division=0)
            assert value(f"micro_{name}", predicted, truth) == pytest.approx(expected)


@given(arrays(bool, (5, 3)), arrays(bool, (5, 3)), arrays(np.int64, (5, 4), elements=st.integers(0, 3)))
def test_a_weight_is_the_same_as_repeating_the_document(
    predicted: np.ndarray, truth: np.ndarray, weights: np.ndarray
) -> None:
    weighted = tally(predicted, truth, weights.astype(np.float32))
    for column in range(4):
        drawn = np.repeat(np.arange(5), weights[:, column])
        for name, metric in counts.BY_NAME.items():
            expected = float(metric(tally(predicted[drawn], truth[drawn]))[0])
            assert metric(weighted)[column] == pytest.approx(expected, nan_ok=True), name


def test_what_is_not_defined_is_nan_and_never_0() -> None:
    nothing = np.zeros((2, 3), dtype=bool)
    for name in ("macro_f1_present", "micro_f1", "micro_precision", "micro_recall", "macro_recall_present"):
        assert np.isnan(value(name, nothing, nothing)), name
    no_label = tally(nothing, nothing).of(np.zeros(3, dtype=bool))
    assert all(np.isnan(metric(no_label)).all() for metric in counts.BY_NAME.values())
