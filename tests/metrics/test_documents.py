"""Metrics at k against naive loops, scikit-learn and the relations that must hold."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import brier_score_loss, f1_score

from plant.ground.settings import Evaluation
from plant.metrics.documents import AT_K, brier_gains, brier_skill, document_f1, propensity_precision_at_k, rank
from plant.metrics.groups import LabelSpace

SCORES = arrays(np.float32, (6, 5), elements=st.one_of(st.integers(-3, 3).map(float), st.just(-np.inf)))
TRUTH = arrays(bool, (6, 5))


def ranked(row: np.ndarray) -> list[int]:
    return [c for c in sorted(range(row.size), key=lambda c: (-row[c], c)) if row[c] > -np.inf]


def naive(name: str, scores: np.ndarray, truth: np.ndarray, k: int) -> float:
    """The definition, document by document."""
    values = []
    for row, true in zip(scores, truth, strict=True):
        hits = [bool(true[label]) for label in ranked(row)[:k]]
        number = int(true.sum())
        if number and name == "p":
            values.append(sum(hits) / k)
        elif number and name in ("r", "rp"):
            values.append(sum(hits) / min(k, number))
        elif number:
            gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits))
            values.append(gain / sum(1 / math.log2(place + 2) for place in range(min(k, number))))
    return sum(values) / len(values) if values else math.nan


@given(SCORES, TRUTH, st.integers(1, 7), arrays(np.int64, (6, 3), elements=st.integers(0, 2)))
def test_metrics_at_k_are_those_of_a_naive_loop_on_repeated_documents(
    scores: np.ndarray, truth: np.ndarray, k: int, weights: np.ndarray
) -> None:
    true = sp.csr_array(truth)
    for name, metric in AT_K.items():
        assert metric(true, scores, k) == pytest.approx(naive(name, scores, truth, k), nan_ok=True), name
        values = metric(true, rank(true, scores, 7), k, weights=weights)
        for column, value in enumerate(values):
            drawn = np.repeat(np.arange(6), weights[:, column])
            assert value == pytest.approx(naive(name, scores[drawn], truth[drawn], k), nan_ok=True), name
        each = [naive(name, scores[n : n + 1], truth[n : n + 1], k) for n in range(6)]
        assert metric(true, scores, k, average=False) == pytest.approx(each, nan_ok=True), name


def test_propensity_scored_precision_is_the_ratio_of_jain_et_al() -> None:
    rng = np.random.default_rng(1)
    truth, scores = rng.random((30, 12)) < 0.25, rng.normal(size=(30, 12))
    n_train, (a, b), total = rng.integers(0, 40, size=12), (0.55, 1.5), 200
    scale = (math.log(total) - 1) * (b + 1) ** a
    inverse = np.array([1 + scale * math.exp(-a * math.log(n + b)) for n in n_train])
    assert LabelSpace((), n_train, total, Evaluation(propensity=(a, b))).inverse_propensity == pytest.approx(inverse)
    for k in (1, 3, 5):
        found = best = 0.0
        for row, true in zip(scores, truth, strict=True):
            found += sum(inverse[c] * true[c] for c in ranked(row)[:k])
            best += sum(sorted(inverse[true], reverse=True)[:k])
        ours = propensity_precision_at_k(sp.csr_array(truth), scores, k, inverse_propensity=inverse)
        assert ours == pytest.approx(found / best)


@given(arrays(bool, (6, 4)), arrays(bool, (6, 4)))
def test_document_f1_is_that_of_scikit_learn_where_it_is_defined(predicted: np.ndarray, truth: np.ndarray) -> None:
    defined = (predicted | truth).any(axis=1)
    rows = [f1_score(t, p, zero_division=0) for p, t in zip(predicted[defined], truth[defined], strict=True)]
    ours = document_f1(sp.csr_array(truth), sp.csr_array(predicted))
    assert ours == pytest.approx(np.mean(rows) if rows else np.nan, nan_ok=True)


def skill(truth: np.ndarray, scores: np.ndarray | sp.csr_array, natural: float = 0.0) -> float:
    true = sp.csr_array(truth)
    return brier_skill(true, brier_gains(true, scores, natural))


@given(SCORES, TRUTH)
def test_brier_skill_is_one_less_the_squared_error_against_that_of_silence(
    scores: np.ndarray, truth: np.ndarray
) -> None:
    with np.errstate(over="ignore"):
        probabilities = 1 / (1 + np.exp(-scores.astype(np.float64)))
    ours = skill(truth, scores)
    if not truth.any():
        assert math.isnan(ours)
        return
    pooled = brier_score_loss(truth.reshape(-1), probabilities.reshape(-1)), truth.mean()
    assert ours == pytest.approx(1 - pooled[0] / pooled[1])
    assert skill(truth, scores + 2, 2.0) == pytest.approx(ours)  # log-odds are scores less the natural threshold


def test_brier_skill_is_highest_at_the_true_probabilities_and_one_where_they_are_certain() -> None:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(-2, 2, size=(2000, 30))
    truth = rng.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))
    changes = (log_odds, log_odds / 2, 2 * log_odds, log_odds + 1, log_odds - 1)
    told = [skill(truth, changed) for changed in changes]
    assert max(told) == told[0]
    for certain, expected in ((np.where(truth, 800.0, -800.0), 1), (np.full(truth.shape, -np.inf), 0)):
        assert skill(truth, certain) == pytest.approx(expected)
    assert skill(truth, np.zeros(truth.shape)) < 0


def test_a_score_that_is_not_stored_counts_as_minus_infinity(case) -> None:
    made = case(4)
    stored = made.scores > 0
    kept = sp.csr_array((made.scores[stored], np.nonzero(stored)), shape=stored.shape)
    assert skill(made.truth, kept) == pytest.approx(skill(made.truth, np.where(stored, made.scores, -np.inf)))
