"""AUC and AP against scikit-learn, resample by resample; the compiled sums against the plain ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from plant.kernels.curves import GUIDED, pack
from plant.metrics import curves, resamples
from plant.metrics.curves import Kept, auc_and_precision, micro_auc
from plant.metrics.resamples import Resamples, plain_totals

MANY = resamples.FEW + 4


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


@pytest.mark.parametrize("columns", [1, MANY])
@given(data=st.data())
@settings(max_examples=25)
def test_auc_and_precision_are_those_of_scikit_learn_on_repeated_documents(columns: int, data) -> None:
    scores = data.draw(arrays(np.float32, (8, 3), elements=st.one_of(st.integers(-2, 2).map(float), st.just(-np.inf))))
    truth = data.draw(arrays(bool, (8, 3)))
    weights = data.draw(arrays(np.int64, (8, columns), elements=st.integers(0, 3)))
    auc, precision = everything(scores, truth, weights.astype(np.float32))
    for b in range(columns):
        drawn = np.repeat(np.arange(8), weights[:, b])
        for c in range(3):
            assert auc[c, b] == pytest.approx(twin_auc(scores[drawn, c], truth[drawn, c]), nan_ok=True)
            expected = twin_precision(scores[drawn, c], truth[drawn, c])
            assert precision[c, b] == pytest.approx(expected, nan_ok=True)


def both_ways(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, Any]:
    """What compiled code gives, and what NumPy gives column by column."""
    monkeypatch.setattr(resamples, "LARGE", 0)
    compiled = call()
    monkeypatch.setattr(resamples, "LARGE", 10**12)
    monkeypatch.setattr(resamples, "FEW", 10**12)
    return compiled, call()


@pytest.mark.parametrize("columns", [1, 70, 600])  # part of a chunk, a chunk and part of the next vector, two chunks
@pytest.mark.parametrize("largest", [1, 3, 255])  # as halves, as resamples, and the most that a byte holds
def test_the_compiled_sums_are_the_plain_ones_to_the_last_bit(
    case, monkeypatch: pytest.MonkeyPatch, columns: int, largest: int
) -> None:
    made = case(0, documents=300)
    weights = np.random.default_rng(0).integers(largest + 1, size=(300, columns)).astype(np.float32)
    truth = sp.csr_array(made.truth)
    compiled, plain = both_ways(monkeypatch, lambda: everything(made.scores, made.truth, weights))
    assert np.isfinite(plain[0]).any()
    for ours, theirs in zip(compiled, plain, strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.array_equal(*both_ways(monkeypatch, lambda: micro_auc(made.scores, truth, weights)))
    totals = Resamples(weights, pack(weights)).totals(truth)
    assert np.array_equal(totals, plain_totals(truth, weights.astype(np.float64)))


def test_labels_with_very_many_different_positive_scores_are_searched_by_a_table(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2500, 2)).astype(np.float32)
    scores[:, 1] = np.round(scores[:, 1] * 400) / 400  # with ties
    truth = rng.random((2500, 2)) < 0.4
    assert min(np.unique(scores[truth[:, c], c]).size for c in range(2)) > GUIDED
    weights = rng.poisson(1, size=(2500, MANY)).astype(np.float32)
    compiled, plain = both_ways(monkeypatch, lambda: everything(scores, truth, weights))
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(compiled, plain, strict=True))
    rows = np.repeat(np.arange(2500), weights[:, 0].astype(int))
    for c in range(2):
        assert compiled[0][c, 0] == pytest.approx(roc_auc_score(truth[rows, c], scores[rows, c]))


@pytest.mark.parametrize("weight", [256, 0.5])
def test_weights_that_no_byte_holds_are_summed_all_the_same(case, weight: float) -> None:
    made = case(0)
    weights = np.ones((40, MANY), dtype=np.float32)
    weights[5] = weight
    assert Resamples.of(weights, labels=25).packed is None
    auc, precision = everything(made.scores, made.truth, weights)
    defined = np.flatnonzero(~np.isnan(auc[:, 0]) & np.isfinite(made.scores).all(axis=0))
    assert defined.size
    for c in defined:
        expected = roc_auc_score(made.truth[:, c], made.scores[:, c], sample_weight=weights[:, 0])
        assert auc[c, 0] == pytest.approx(expected)
        expected = average_precision_score(made.truth[:, c], made.scores[:, c], sample_weight=weights[:, 0])
        assert precision[c, 0] == pytest.approx(expected)


@pytest.mark.parametrize("columns", [1, MANY])
def test_blocks_change_nothing(case, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    made = case(1)
    weights = np.random.default_rng(0).poisson(1, size=(40, columns)).astype(np.float32)
    whole = [*everything(made.scores, made.truth, weights), micro_auc(made.scores, sp.csr_array(made.truth), weights)]
    monkeypatch.setattr(curves, "BLOCK", 130)
    parts = [*everything(made.scores, made.truth, weights), micro_auc(made.scores, sp.csr_array(made.truth), weights)]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(whole, parts, strict=True))


@pytest.mark.parametrize("columns", [1, MANY])
def test_micro_auc_is_that_of_scikit_learn(case, columns: int) -> None:
    made = case(2)
    weights = np.random.default_rng(0).poisson(1, size=(40, columns)).astype(np.float32)
    weights[:, 0] = 1
    values = micro_auc(made.scores, sp.csr_array(made.truth), weights)
    lowest = np.where(np.isfinite(made.scores), made.scores, -1e6)
    for b in range(columns):
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


@pytest.mark.parametrize("columns", [1, MANY])
@given(data=st.data())
@settings(max_examples=25)
def test_precision_from_kept_scores_takes_the_others_at_their_upper_bound(columns: int, data) -> None:
    scores = data.draw(arrays(np.float32, (7, 6), elements=st.integers(-3, 3).map(float)))
    truth = data.draw(arrays(bool, (7, 6)))
    weights = data.draw(arrays(np.int64, (7, columns), elements=st.integers(0, 2)))
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
