"""The F1 family against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score, precision_score, recall_score

from plant.metrics.counts import COUNT_METRICS, count


def value(name: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(COUNT_METRICS[name](count(sp.csr_array(truth), sp.csr_array(predicted))))


@given(arrays(bool, (7, 4)), arrays(bool, (7, 4)))
def test_every_metric_is_that_of_scikit_learn(truth: np.ndarray, predicted: np.ndarray) -> None:
    present, means = truth.any(axis=0), {}
    for name, function in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
        by_label = np.array([function(truth[:, c], predicted[:, c], zero_division=0) for c in range(4)])
        means[name] = np.mean(by_label)
        assert value(f"macro_{name}_all", truth, predicted) == pytest.approx(means[name])
        expected = by_label[present].mean() if present.any() else np.nan
        assert value(f"macro_{name}_present", truth, predicted) == pytest.approx(expected, nan_ok=True)
        if predicted.any() and truth.any():
            expected = function(truth, predicted, average="micro", zero_division=0)
            assert value(f"micro_{name}", truth, predicted) == pytest.approx(expected)
    total = means["precision"] + means["recall"]
    harmonic = 2 * means["precision"] * means["recall"] / total if total else 0
    assert value("macro_f1_caml", truth, predicted) == pytest.approx(harmonic)


def test_what_is_not_defined_is_nan_and_never_0() -> None:
    nothing = np.zeros((2, 3), dtype=bool)
    for name in ("macro_f1_present", "micro_f1", "micro_precision", "micro_recall", "macro_recall_present"):
        assert np.isnan(value(name, nothing, nothing)), name
    assert all(np.isnan(value(name, nothing[:, :0], nothing[:, :0])) for name in COUNT_METRICS)
