"""AUC and average precision against scikit-learn, resample by resample."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from plant.metrics import curves
from plant.metrics.curves import label_curves, micro_roc_auc

MANY = 12


def sklearn_auc(truth: np.ndarray, scores: np.ndarray) -> float:
    lowest = np.where(np.isfinite(scores), scores, -1e6)
    return roc_auc_score(truth, lowest) if 0 < truth.sum() < truth.size else np.nan


def sklearn_precision(truth: np.ndarray, scores: np.ndarray) -> float:
    """scikit-learn on the documents that have a score, times the share of positives among them."""
    if not truth.any():
        return np.nan
    scored = np.isfinite(scores)
    if not truth[scored].any():
        return 0.0
    return average_precision_score(truth[scored], scores[scored]) * truth[scored].sum() / truth.sum()


@pytest.mark.parametrize("columns", [1, MANY])
@given(data=st.data())
@settings(max_examples=25)
def test_auc_and_precision_are_those_of_scikit_learn_on_repeated_documents(columns: int, data) -> None:
    scores = data.draw(arrays(np.float32, (8, 3), elements=st.one_of(st.integers(-2, 2).map(float), st.just(-np.inf))))
    truth = data.draw(arrays(bool, (8, 3)))
    weights = data.draw(arrays(np.int64, (8, columns), elements=st.integers(0, 3)))
    auc, precision = label_curves(sp.csr_array(truth), scores, weights)
    for b in range(columns):
        drawn = np.repeat(np.arange(8), weights[:, b])
        for c in range(3):
            assert auc[c, b] == pytest.approx(sklearn_auc(truth[drawn, c], scores[drawn, c]), nan_ok=True)
            expected = sklearn_precision(truth[drawn, c], scores[drawn, c])
            assert precision[c, b] == pytest.approx(expected, nan_ok=True)


def test_auc_is_the_exact_share_of_pairs_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    scores, truth = rng.integers(40, size=(60, 2)).astype(np.float32), rng.random((60, 2)) < 0.3
    weights = rng.integers(4, size=(60, MANY))
    auc, micro = label_curves(sp.csr_array(truth), scores, weights)[0], []
    for b in range(MANY):

        def share(columns: slice, b: int = b) -> float:
            """Of the pairs of a positive and a negative, by counting them."""
            true, values = truth[:, columns].ravel(), scores[:, columns].ravel()
            drawn = np.repeat(weights[:, b], truth[:, columns].shape[1])
            above = np.sign(values[true][:, None] - values[~true])
            pairs = np.outer(drawn[true], drawn[~true])
            return float(Fraction(int((pairs * (1 + above)).sum()), 2 * int(pairs.sum())))

        assert auc[:, b].tolist() == [share(slice(c, c + 1)) for c in range(2)]
        micro.append(share(slice(None)))
    assert micro_roc_auc(sp.csr_array(truth), scores, weights).tolist() == micro


def test_blocks_change_nothing(case, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(1)
    truth, weights = sp.csr_array(made.truth), np.random.default_rng(0).poisson(1, size=(40, MANY))

    def values() -> list[np.ndarray]:
        return [*label_curves(truth, made.scores, weights), micro_roc_auc(truth, made.scores, weights)]

    whole = values()
    monkeypatch.setattr(curves, "BLOCK", 130)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(whole, values(), strict=True))


def test_without_a_positive_the_area_over_all_pairs_is_nan() -> None:
    assert np.isnan(micro_roc_auc(sp.csr_array((3, 2), dtype=bool), np.zeros((3, 2)), np.ones((3, 1)))).all()


def test_only_the_labels_that_are_asked_for_are_computed(case) -> None:
    made, once = case(0), np.ones((40, 1))
    truth = sp.csr_array(made.truth)
    asked = label_curves(truth, made.scores, once, labels=np.arange(25) < 3)
    for some, every in zip(asked, label_curves(truth, made.scores, once), strict=True):
        assert np.array_equal(some[:3], every[:3])
        assert np.isnan(some[3:]).all()


@given(data=st.data())
@settings(max_examples=40)
def test_precision_from_kept_scores_takes_the_others_at_their_upper_bound(data) -> None:
    scores = data.draw(arrays(np.float32, (7, 6), elements=st.integers(-3, 3).map(float)))
    truth = data.draw(arrays(bool, (7, 6)))
    weights = data.draw(arrays(np.int64, (7, MANY), elements=st.integers(0, 2)))
    stored = truth | (np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) < 2)
    bound = np.sort(scores, axis=1)[:, -2]
    true = sp.csr_array(truth)
    kept = sp.csr_array((scores[stored], np.nonzero(stored)), shape=scores.shape)  # stored zeros are scores too
    auc, ours = label_curves(true, kept, weights, bound=bound)
    worst = np.where(stored, scores, bound[:, None])
    assert np.array_equal(ours, label_curves(true, worst, weights)[1], equal_nan=True)
    assert not (ours > label_curves(true, scores, weights)[1] + 1e-12).any()
    assert np.isnan(auc).all()
