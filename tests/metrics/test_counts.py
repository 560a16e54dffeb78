"""The F1 family against hand fractions and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score, precision_score, recall_score

from plant.metrics.counts import COUNT_METRICS, count, macro_f1_all, macro_f1_caml, macro_f1_present, micro_f1


def value(name: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(COUNT_METRICS[name](sp.csr_array(truth), sp.csr_array(predicted)))


def test_the_three_macro_f1s_differ_where_a_label_is_absent() -> None:
    truth = sp.csr_array(np.array([[1, 0, 0], [1, 1, 0]], dtype=bool))  # label 2 has no positive
    predicted = sp.csr_array(np.array([[1, 0, 0], [0, 1, 1]], dtype=bool))
    # F1 by label: 2/3 (1 of 2 found), 1, 0 (predicted in vain)
    assert macro_f1_present(truth, predicted) == pytest.approx((2 / 3 + 1) / 2)
    assert macro_f1_all(truth, predicted) == pytest.approx((2 / 3 + 1 + 0) / 3)
    # precision 1, 1, 0 -> 2/3; recall 1/2, 1, 0 -> 1/2; harmonic mean 4/7
    assert macro_f1_caml(truth, predicted) == pytest.approx(4 / 7)
    assert micro_f1(truth, predicted) == pytest.approx(2 * 2 / (3 + 3))  # 2 hits, 3 predictions, 3 positives


@given(arrays(bool, (7, 4)), arrays(bool, (7, 4)))
def test_every_metric_is_that_of_scikit_learn(truth: np.ndarray, predicted: np.ndarray) -> None:
    present = truth.any(axis=0)
    for name, function in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
        by_label = np.array([function(truth[:, c], predicted[:, c], zero_division=0) for c in range(4)])
        assert value(f"macro_{name}_all", truth, predicted) == pytest.approx(np.mean(by_label))
        expected = by_label[present].mean() if present.any() else np.nan
        assert value(f"macro_{name}_present", truth, predicted) == pytest.approx(expected, nan_ok=True)
        if predicted.any() and truth.any():
            expected = function(truth, predicted, average="micro", zero_division=0)
            assert value(f"micro_{name}", truth, predicted) == pytest.approx(expected)


@given(arrays(bool, (5, 3)), arrays(bool, (5, 3)), arrays(np.int64, (5, 4), elements=st.integers(0, 3)))
def test_a_weight_is_the_same_as_repeating_the_document(
    truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray
) -> None:
    arguments = sp.csr_array(truth), sp.csr_array(predicted)
    counts = count(*arguments, weights)
    for name, metric in COUNT_METRICS.items():
        weighted = metric(*arguments, weights)
        assert np.array_equal(weighted, metric(arguments[0], counts), equal_nan=True)
        for column in range(4):
            drawn = np.repeat(np.arange(5), weights[:, column])
            assert weighted[column] == pytest.approx(value(name, truth[drawn], predicted[drawn]), nan_ok=True), name


def test_what_is_not_defined_is_nan_and_never_0() -> None:
    nothing = np.zeros((2, 3), dtype=bool)
    for name in ("macro_f1_present", "micro_f1", "micro_precision", "micro_recall", "macro_recall_present"):
        assert np.isnan(value(name, nothing, nothing)), name
    assert all(np.isnan(value(name, nothing[:, :0], nothing[:, :0])) for name in COUNT_METRICS)
