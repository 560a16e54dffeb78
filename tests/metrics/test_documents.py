"""Metrics at k against naive loops, scikit-learn and the relations that must hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import brier_score_loss, f1_score, ndcg_score

from plant.metrics import documents
from plant.metrics.documents import AT, Terms, rank
from plant.metrics.groups import inverse_propensity
from plant.metrics.scores import Scores

SCORES = arrays(np.float32, (6, 5), elements=st.one_of(st.integers(-3, 3).map(float), st.just(-np.inf)))
TRUTH = arrays(bool, (6, 5))


def known(scores: np.ndarray, truth: np.ndarray) -> Scores:
    """All scores, as `read_scores` returns them."""
    ids, names = (tuple(map(str, range(n))) for n in truth.shape)
    return Scores(ids, names, sp.csr_array(truth), sp.csr_array(truth.shape), scores.astype(np.float32), 100, 0.0)


def mean(terms: Terms) -> float:
    return float(terms.total(np.ones((terms.numerator.size, 1)))[0])


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


@given(SCORES, TRUTH, st.integers(1, 7))
def test_metrics_at_k_are_those_of_a_naive_loop(scores: np.ndarray, truth: np.ndarray, k: int) -> None:
    ranking = rank(known(scores, truth), 7)
    for name, metric in AT.items():
        assert mean(metric(ranking, k)) == pytest.approx(naive(name, scores, truth, k), nan_ok=True), name


@given(SCORES, TRUTH, arrays(bool, 5), st.integers(1, 5))
def test_a_group_is_ranked_as_if_other_labels_did_not_exist(
    scores: np.ndarray, truth: np.ndarray, members: np.ndarray, k: int
) -> None:
    ranking = rank(known(scores, truth), 5, members)
    for name, metric in AT.items():
        expected = naive(name, scores[:, members], truth[:, members], k)
        assert mean(metric(ranking, k)) == pytest.approx(expected, nan_ok=True), name


def test_ndcg_is_that_of_scikit_learn_without_ties() -> None:
    rng = np.random.default_rng(0)
    scores, truth = rng.normal(size=(50, 20)), rng.random((50, 20)) < 0.2
    truth[:, 0] = True
    for k in (1, 3, 8, 20):
        ours = mean(documents.ndcg_at(rank(known(scores, truth), 20), k))
        assert ours == pytest.approx(ndcg_score(truth, scores, k=k), abs=1e-6)


@given(SCORES, TRUTH, st.integers(1, 5))
def test_precision_stays_below_its_ceiling_and_a_perfect_ranking_reaches_it(
    scores: np.ndarray, truth: np.ndarray, k: int
) -> None:
    truth[:, 0] |= ~truth.any(axis=1)  # every document has a label
    ceiling = np.minimum(truth.sum(axis=1), k).mean() / k
    assert mean(documents.precision_at(rank(known(scores, truth), 5), k)) <= ceiling + 1e-12
    perfect = rank(known(truth.astype(np.float32), truth), 5)
    assert mean(documents.precision_at(perfect, k)) == pytest.approx(ceiling)
    for name in ("r", "rp", "ndcg"):
        assert mean(AT[name](perfect, k)) == pytest.approx(1.0)


@given(SCORES, TRUTH, st.permutations(range(6)))
def test_the_order_of_documents_does_not_matter(scores: np.ndarray, truth: np.ndarray, order: list[int]) -> None:
    for metric in AT.values():
        here, there = (metric(rank(known(scores[o], truth[o]), 5), 3) for o in (list(range(6)), order))
        assert np.array_equal(here.numerator[order], there.numerator)
        assert mean(here) == pytest.approx(mean(there), nan_ok=True)


def test_equal_scores_are_ranked_by_label_id() -> None:
    ranking = rank(known(np.array([[1.0, 1.0, 1.0]]), np.array([[False, True, False]])), 3)
    assert ranking.best.tolist() == [[0, 1, 2]]
    assert [mean(documents.precision_at(ranking, k)) for k in (1, 2)] == [0.0, 0.5]


def test_labels_without_a_score_are_never_retrieved() -> None:
    ranking = rank(known(np.array([[-np.inf, -np.inf, 0.0]]), np.array([[True, True, True]])), 3)
    assert ranking.best.tolist() == [[2, -1, -1]]
    assert mean(documents.precision_at(ranking, 3)) == pytest.approx(1 / 3)
    assert mean(documents.ndcg_at(ranking, 3)) == pytest.approx(1 / (1 + 1 / math.log2(3) + 1 / 2))


def test_propensity_scored_precision_is_the_ratio_of_jain_et_al() -> None:
    rng = np.random.default_rng(1)
    truth, scores = rng.random((30, 12)) < 0.25, rng.normal(size=(30, 12))
    n_train, (a, b), total = rng.integers(0, 40, size=12), (0.55, 1.5), 200
    scale = (math.log(total) - 1) * (b + 1) ** a
    inverse = np.array([1 + scale * math.exp(-a * math.log(n + b)) for n in n_train])
    assert inverse_propensity(n_train, total, (a, b)) == pytest.approx(inverse)
    for k in (1, 3, 5):
        found = best = 0.0
        for row, true in zip(scores, truth, strict=True):
            found += sum(inverse[c] * true[c] for c in ranked(row)[:k])
            best += sum(sorted(inverse[true], reverse=True)[:k])
        terms = documents.propensity_precision_at(
            rank(known(scores, truth), 5), k, truth=sp.csr_array(truth), inverse=inverse
        )
        assert mean(terms) == pytest.approx(found / best)


def test_equal_propensities_make_psp_the_share_of_what_precision_can_reach(case) -> None:
    made = case(0)
    ranking = rank(known(made.scores, made.truth), 5)
    flat = documents.propensity_precision_at(ranking, 5, truth=sp.csr_array(made.truth), inverse=np.full(25, 3.0))
    ceiling = np.minimum(made.truth.sum(axis=1), 5).mean() / 5
    assert mean(flat) == pytest.approx(mean(documents.precision_at(ranking, 5)) / ceiling)


@given(arrays(bool, (6, 4)), arrays(bool, (6, 4)))
def test_document_f1_is_that_of_scikit_learn_where_it_is_defined(predicted: np.ndarray, truth: np.ndarray) -> None:
    defined = (predicted | truth).any(axis=1)
    ours = mean(documents.document_f1(sp.csr_array(predicted), sp.csr_array(truth)))
    rows = [f1_score(t, p, zero_division=0) for p, t in zip(predicted[defined], truth[defined], strict=True)]
    assert ours == pytest.approx(np.mean(rows) if rows else np.nan, nan_ok=True)


@given(SCORES, TRUTH)
def test_brier_skill_is_one_less_the_squared_error_against_that_of_silence(
    scores: np.ndarray, truth: np.ndarray
) -> None:
    with np.errstate(over="ignore"):
        probabilities = 1 / (1 + np.exp(-scores.astype(np.float64)))
    ours = mean(documents.brier_skill(known(scores, truth)))
    if not truth.any():
        assert math.isnan(ours)
        return
    pooled = brier_score_loss(truth.reshape(-1), probabilities.reshape(-1)), truth.mean()
    assert ours == pytest.approx(1 - pooled[0] / pooled[1])


def test_brier_skill_is_highest_at_the_true_probabilities_and_one_where_they_are_certain() -> None:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(-2, 2, size=(2000, 30))
    truth = rng.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))
    told = {change: mean(documents.brier_skill(known(change(log_odds), truth))) for change in (
        lambda z: z, lambda z: z / 2, lambda z: 2 * z, lambda z: z + 1, lambda z: z - 1)}  # fmt: skip
    assert next(iter(told)) is max(told, key=told.get)
    assert mean(documents.brier_skill(known(np.where(truth, 800.0, -800.0), truth))) == pytest.approx(1)
    assert mean(documents.brier_skill(known(np.full(truth.shape, -np.inf), truth))) == pytest.approx(0)
    assert mean(documents.brier_skill(known(np.zeros(truth.shape), truth))) < 0


def test_brier_skill_of_kept_scores_counts_the_rest_as_silence(case) -> None:
    made = case(4)
    everything = known(made.scores, made.truth)
    order = np.argsort(np.argsort(-made.scores, axis=1, kind="stable"), axis=1)
    first = (order < 5) & np.isfinite(made.scores)
    stays = first | (made.truth & np.isfinite(made.scores))  # true labels are kept wherever they stand
    kept = sp.csr_array((made.scores[stays].astype(np.float32), np.nonzero(stays)), shape=stays.shape)
    only_kept = Scores(everything.document_ids, everything.label_names, everything.truth, kept, None, 5, 0.0)
    silent = known(np.where(first, made.scores, -np.inf), made.truth)
    assert mean(documents.brier_skill(only_kept)) == pytest.approx(mean(documents.brier_skill(silent)))
    assert documents.brier_skill(replace(only_kept, natural_threshold=None)) is None


def test_kept_scores_rank_as_all_scores_do(case) -> None:
    made = case(3)
    everything = known(made.scores, made.truth)
    finite = np.isfinite(made.scores)
    kept = sp.csr_array((made.scores[finite], np.nonzero(finite)), shape=made.scores.shape)
    only_kept = Scores(everything.document_ids, everything.label_names, everything.truth, kept, None, 25, 0.0)
    assert np.array_equal(rank(only_kept, 8).best, rank(everything, 8).best)
    assert np.array_equal(rank(only_kept, 8).hits, rank(everything, 8).hits)
