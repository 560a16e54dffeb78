"""AUC and AP against scikit-learn, resample by resample; the compiled loop against the plain sums."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from plant.evaluation import curves
from plant.evaluation.curves import Kept, auc_and_precision, micro_auc

MANY = curves.FEW + 4


def everything(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return auc_and_precision(scores, sp.csr_array(truth), weights, members=np.ones(truth.shape[1], dtype=bool))


def twin_auc(scores: np.ndarray, truth: np.ndarray) -> float:
    lowest = np.where(np.isfinite(scores), scores, -1e6)
    return roc_auc_score(truth, lowest) if 0 < truth.sum() < truth.size else np.nan


def twin_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """scikit-learn on the documents that have a score, times the share of positives among them."""
    if not truth.any():
        return np.nan
    scored = np.isfinite(scores)
    if not truth[scored].any():
        return 0.0
    return average_precision_score(truth[scored], scores[scored]) * truth[scored].sum() / truth.sum()


@pytest.mark.parametrize("resamples", [1, MANY])
@given(data=st.data())
@settings(max_examples=25)
def test_auc_and_precision_are_those_of_scikit_learn_on_repeated_documents(resamples: int, data) -> None:
    scores = data.draw(arrays(np.float32, (8, 3), elements=st.one_of(st.integers(-2, 2).map(float), st.just(-np.inf))))
    truth = data.draw(arrays(bool, (8, 3)))
    weights = data.draw(arrays(np.int64, (8, resamples), elements=st.integers(0, 3)))
    auc, precision = everything(scores, truth, weights.astype(np.float32))
    for b in range(resamples):
        drawn = np.repeat(np.arange(8), weights[:, b])
        for c in range(3):
            assert auc[c, b] == pytest.approx(twin_auc(scores[drawn, c], truth[drawn, c]), nan_ok=True)
            expected = twin_precision(scores[drawn, c], truth[drawn, c])
            assert precision[c, b] == pytest.approx(expected, nan_ok=True)


def test_the_compiled_loop_gives_what_the_plain_sums_give(case, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(0)
    weights = np.random.default_rng(0).poisson(1, size=(40, curves.FEW + 600)).astype(np.float32)  # two chunks
    compiled = everything(made.scores, made.truth, weights)
    monkeypatch.setattr(curves, "FEW", weights.shape[1])
    plain = everything(made.scores, made.truth, weights)
    for ours, theirs in zip(compiled, plain, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-12, atol=0, equal_nan=True)


def test_blocks_of_labels_change_nothing(case, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(1)
    weights = np.ones((40, 1), dtype=np.float32)
    whole = everything(made.scores, made.truth, weights)
    monkeypatch.setattr(curves, "BLOCK", 130)
    parts = everything(made.scores, made.truth, weights)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(whole, parts, strict=True))


@pytest.mark.parametrize("resamples", [1, MANY])
def test_micro_auc_is_that_of_scikit_learn(case, resamples: int) -> None:
    made = case(2)
    weights = np.random.default_rng(0).poisson(1, size=(40, resamples)).astype(np.float32)
    weights[:, 0] = 1
    values = micro_auc(made.scores, sp.csr_array(made.truth), weights)
    lowest = np.where(np.isfinite(made.scores), made.scores, -1e6)
    for b in range(resamples):
        drawn = np.repeat(np.arange(40), weights[:, b].astype(int))
        assert values[b] == pytest.approx(roc_auc_score(made.truth[drawn].ravel(), lowest[drawn].ravel()))


def test_labels_without_positives_or_negatives_have_no_auc() -> None:
    scores, weights = np.zeros((3, 2), dtype=np.float32), np.ones((3, 1), dtype=np.float32)
    auc, precision = everything(scores, np.array([[0, 1]] * 3, dtype=bool), weights)
    assert np.isnan(auc).all()
    assert np.isnan(precision[0, 0])
    assert precision[1, 0] == 1.0


def test_a_label_without_a_score_has_auc_one_half_and_precision_zero() -> None:
    scores, truth = np.full((4, 1), -np.inf, dtype=np.float32), np.array([[1], [0], [0], [1]], dtype=bool)
    auc, precision = everything(scores, truth, np.ones((4, 1), dtype=np.float32))
    assert (auc[0, 0], precision[0, 0]) == (0.5, 0.0)


def test_labels_outside_the_members_are_not_computed(case) -> None:
    made = case(0)
    members = np.arange(25) < 3
    auc, precision = auc_and_precision(
        made.scores, sp.csr_array(made.truth), np.ones((40, 1), dtype=np.float32), members=members
    )
    assert np.isfinite(auc[:3]).all()
    assert np.isnan(auc[3:]).all()
    assert np.isnan(precision[3:]).all()


def kept_of(scores: np.ndarray, truth: np.ndarray, top: int) -> Kept:
    order = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    chosen = (order < top) | truth
    bound = np.sort(scores, axis=1)[:, -top]
    return Kept(sp.csr_array((scores[chosen], np.nonzero(chosen)), shape=scores.shape), bound)


@pytest.mark.parametrize("resamples", [1, MANY])
@given(data=st.data())
@settings(max_examples=25)
def test_precision_from_kept_scores_takes_the_others_at_their_upper_bound(resamples: int, data) -> None:
    scores = data.draw(arrays(np.float32, (7, 6), elements=st.integers(-3, 3).map(float)))
    truth = data.draw(arrays(bool, (7, 6)))
    weights = data.draw(arrays(np.int64, (7, resamples), elements=st.integers(0, 2)))
    kept = kept_of(scores, truth, 2)
    worst = np.where(kept.scores.toarray() != 0, kept.scores.toarray(), kept.bound[:, None])
    stored = sp.csr_array((np.ones(kept.scores.nnz), kept.scores.indices, kept.scores.indptr), shape=scores.shape)
    worst = np.where(stored.toarray() > 0, scores, worst)  # stored zeros are scores too
    members = np.ones(6, dtype=bool)
    floats = weights.astype(np.float32)
    auc, bound = auc_and_precision(kept, sp.csr_array(truth), floats, members=members)
    _, expected = everything(worst, truth, floats)
    assert np.isnan(auc).all()
    assert np.allclose(bound, expected, equal_nan=True)
    _, exact = everything(scores, truth, floats)
    assert not (bound > exact + 1e-12).any()


def test_keeping_every_score_gives_the_exact_precision(case) -> None:
    made = case(4)
    finite = np.isfinite(made.scores) | made.truth
    kept = Kept(sp.csr_array((made.scores[finite], np.nonzero(finite)), shape=made.scores.shape), np.full(40, -np.inf))
    weights = np.random.default_rng(0).poisson(1, size=(40, MANY)).astype(np.float32)
    members = np.ones(25, dtype=bool)
    _, ours = auc_and_precision(kept, sp.csr_array(made.truth), weights, members=members)
    assert np.allclose(ours, everything(made.scores, made.truth, weights)[1], equal_nan=True)
