"""The top k against scoring every token, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.ground.settings import Relevance
from plant.relevance.choice import Training, best, normalised, plain_choice
from plant.relevance.contingency import label_documents
from plant.relevance.measures import PairCounts, mig

V = 9
documents_and_label = st.lists(
    st.tuples(st.lists(st.integers(0, V - 1), max_size=6), st.booleans()), min_size=2, max_size=14
)


def training_of(documents, n_labels, least=1):
    """Of documents, given as (token ids, label ids)."""
    words, rows = zip(*documents, strict=True)
    ids, carried = (np.array([one for some in lists for one in some], np.int32) for lists in (words, rows))
    offsets, indptr = (np.cumsum([0, *map(len, lists)]) for lists in (words, rows))
    names = (tuple(f"{i}" for i in range(size)) for size in (n_labels, V))
    return Training(
        *names, ids, offsets, np.ones(V, bool), *label_documents(indptr, carried, n_labels), min_documents=least
    )


def choose(documents, *, measure, k, sign="both", least=1):
    """(token, n_joint, relevance) of the one label, which the documents' flags say."""
    training = training_of([(words, [0] if flag else []) for words, flag in documents], 1, least)
    settings = Relevance(k=min(k, len(training.order)), sign=sign, min_documents=least, rows_in_memory=1)
    (piece,) = plain_choice(training, measure, settings)
    return piece.token.tolist(), piece.n_joint.tolist(), piece.relevance.tolist()


@pytest.mark.parametrize("sign", ["both", "positive"])
@pytest.mark.parametrize("measure", ["mig", "smoothed_mig", "pmi", "chi2", "term_frequency"])
@given(documents=documents_and_label, k=st.integers(1, V), least=st.integers(1, 3))
def test_the_top_k_are_those_of_scoring_every_token(oracle, measure, sign, documents, k, least):
    train = [(words, [0] if flag else []) for words, flag in documents]
    may = [token for token in range(V) if sum(token in words for words, _ in documents) >= least]
    if not may or not any(flag for _, flag in documents):
        return
    token, n_joint, relevance = choose(documents, measure=measure, k=k, sign=sign, least=least)
    expected = oracle(train, may, 0, measure=measure, k=k, sign=sign)
    assert list(zip(token, n_joint, strict=True)) == [row[:2] for row in expected]
    np.testing.assert_allclose(relevance, [row[2] for row in expected], atol=2**-24)


def test_a_frequent_token_that_avoids_the_label_scores_unless_the_sign_must_be_positive():
    documents = [([0], True)] * 5 + [([1], False)] * 5
    assert choose(documents, measure="mig", k=2) == ([0, 1], [5, 0], [1.0, 1.0])
    assert choose(documents, measure="mig", k=2, sign="positive")[0] == [0]


@pytest.mark.parametrize("total", [1_000, 50_000, 1_000_000])
def test_equal_tables_reached_by_other_sums_stay_ties_at_scale(total):
    random = np.random.default_rng(total)
    n_label = total // 3
    joint = random.integers(1, n_label, size=500)
    absent = random.integers(1, total - n_label, size=500)
    # token 2i occurs in joint + absent documents; token 2i + 1 in exactly the others
    n_token = np.stack([joint + absent, total - joint - absent], axis=1).ravel()
    n_joint = np.stack([joint, n_label - joint], axis=1).ravel()
    token, relevance = best(np.arange(1000), normalised(mig(PairCounts(n_joint, n_token, n_label, total))), 1000)
    rank = np.argsort(token)
    assert (relevance[rank][0::2] == relevance[rank][1::2]).all()
    assert (rank[0::2] < rank[1::2]).all()


def test_random_tokens_are_distinct_and_drawn_evenly_from_the_candidates():
    training = training_of([([0, 3, 1, 5, 3], range(2000))], 2000)
    (piece,) = plain_choice(training, "random", Relevance(k=2))
    pairs, relevance = piece.token.reshape(2000, 2), piece.relevance.reshape(2000, 2)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert (relevance[:, 0] == 1).all() and (relevance > 0).all()
    shares = np.bincount(pairs.ravel(), minlength=6) / 2000
    np.testing.assert_allclose(shares, [0.5, 0.5, 0, 0.5, 0, 0.5], atol=5 * np.sqrt(0.25 / 2000))
