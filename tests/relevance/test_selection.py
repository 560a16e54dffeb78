"""The top k against scoring every token, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.relevance.selection import LabelCounts, candidates, normalised, random_tokens, top_tokens

V = 9
documents_and_label = st.lists(
    st.tuples(st.lists(st.integers(0, V - 1), max_size=6), st.booleans()), min_size=2, max_size=14
)


def prepare(documents, min_documents=1):
    """LabelCounts of the label (the documents' flag), and the candidates."""
    n_token = np.array([sum(t in words for words, _ in documents) for t in range(V)])
    among = candidates(n_token, len(documents), min_documents=min_documents)
    chosen = [words for words, flag in documents if flag]
    n_joint = np.array([sum(t in words for words in chosen) for t in range(V)])
    occurrences = np.array([sum(words.count(t) for words in chosen) for t in range(V)])
    met = np.flatnonzero((n_joint > 0) & (n_token >= min_documents))
    return LabelCounts(len(chosen), met, n_joint[met], occurrences[met], int(occurrences.sum())), among


@pytest.mark.parametrize("sign", ["both", "positive"])
@pytest.mark.parametrize("measure", ["mig", "smoothed_mig", "pmi", "chi2", "term_frequency"])
@given(documents=documents_and_label, k=st.integers(1, V), least=st.integers(1, 3))
def test_the_top_k_are_those_of_scoring_every_token(oracle, measure, sign, documents, k, least):
    label, among = prepare(documents, least)
    if not label.n_label or len(among.order) < k:
        return
    chosen = top_tokens(label, among, measure=measure, k=k, sign=sign)
    train = [(words, [0] if flag else []) for words, flag in documents]
    expected = oracle(train, sorted(among.order.tolist()), 0, measure=measure, k=k, sign=sign)
    assert list(zip(chosen.token.tolist(), chosen.n_joint.tolist(), strict=True)) == [row[:2] for row in expected]
    np.testing.assert_allclose(chosen.relevance, [row[2] for row in expected], atol=2**-24)


def test_a_frequent_token_that_avoids_the_label_scores_unless_the_sign_must_be_positive():
    documents = [([0], True)] * 5 + [([1], False)] * 5
    label, among = prepare(documents)
    both = top_tokens(label, among, measure="mig", k=2)
    assert (both.token.tolist(), both.n_joint.tolist(), both.relevance.tolist()) == ([0, 1], [5, 0], [1.0, 1.0])
    assert top_tokens(label, among, measure="mig", k=2, sign="positive").token.tolist() == [0]


def test_ties_go_to_the_smaller_token_id():
    documents = [([5, 2, 8], True)] + [([1], False)] * 6
    label, among = prepare(documents)
    assert top_tokens(label, among, measure="mig", k=3).token.tolist()[:2] == [1, 2]  # 1 avoids: the same table
    assert top_tokens(label, among, measure="pmi", k=2).token.tolist() == [2, 5]


def test_a_label_on_every_document_gets_zeros():
    label, among = prepare([([3, 1], True), ([1], True), ([0], True)])
    chosen = top_tokens(label, among, measure="mig", k=2)
    assert (chosen.token.tolist(), chosen.relevance.tolist()) == ([0, 1], [0.0, 0.0])


def test_ties_across_the_edge_of_the_tokens_that_never_occur_with_the_label_go_by_token_id():
    # pmi gives 0 to all of them, however frequent: the frequent tokens 7 and 8 must not be preferred to 0.
    documents = [([4], True)] + [([7, 8], False)] * 3 + [([0], False)]
    label, among = prepare(documents)
    assert top_tokens(label, among, measure="pmi", k=2).token.tolist() == [4, 0]


def test_ties_among_the_rarest_of_the_tokens_that_never_occur_with_the_label_go_by_token_id():
    # The k most frequent are 7, 8 and, of those in one document, 0 and 1; all have pmi 0, and 2 comes before 7.
    documents = [([4], True), ([7, 8], False), ([7, 8], False), ([0, 1, 2, 3], False)]
    label, among = prepare(documents)
    assert top_tokens(label, among, measure="pmi", k=5).token.tolist() == [4, 0, 1, 2, 3]


@pytest.mark.parametrize("total", [1_000, 50_000, 1_000_000])
def test_equal_tables_reached_by_other_sums_stay_ties_at_scale(total):
    random = np.random.default_rng(total)
    n_label = total // 3
    joint = random.integers(1, n_label, size=500)
    absent = random.integers(1, total - n_label, size=500)
    # token 2i occurs in joint + absent documents; token 2i + 1 in exactly the others
    n_token = np.stack([joint + absent, total - joint - absent], axis=1).ravel()
    n_joint = np.stack([joint, n_label - joint], axis=1).ravel()
    among = candidates(n_token, total, min_documents=1)
    chosen = top_tokens(LabelCounts(n_label, np.arange(1000), n_joint), among, measure="mig", k=1000)
    rank = np.argsort(chosen.token)
    assert (chosen.relevance[rank][0::2] == chosen.relevance[rank][1::2]).all()
    assert (rank[0::2] < rank[1::2]).all()


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_normalised_values_lie_in_the_unit_interval_and_keep_their_order(values):
    values = np.sort(np.array(values))
    relevance = normalised(values, values[-1])
    assert relevance.dtype == np.float32
    assert relevance.min() >= 0 and (np.diff(relevance) >= 0).all()
    assert relevance[-1] == (1 if values[-1] > 0 else 0)


def test_random_tokens_are_seeded_distinct_and_blind_to_the_counts():
    documents = [([0, 1, 2], True), ([3, 4, 5], False), ([6, 7], False)]
    label, among = prepare(documents)
    other = LabelCounts(1, np.array([7]), np.array([1]))
    chosen = random_tokens(label, among, k=5, generator=np.random.default_rng(1))
    again = random_tokens(other, among, k=5, generator=np.random.default_rng(1))
    different = random_tokens(label, among, k=5, generator=np.random.default_rng(2))
    assert chosen.token.tolist() == again.token.tolist() and (chosen.relevance == again.relevance).all()
    assert chosen.token.tolist() != different.token.tolist()
    assert len(set(chosen.token.tolist())) == 5 and set(chosen.token.tolist()) <= set(range(8))
    assert chosen.relevance.max() == 1 and (chosen.relevance > 0).all() and (np.diff(chosen.relevance) <= 0).all()
    assert chosen.n_joint.tolist() == [int(token in (0, 1, 2)) for token in chosen.token.tolist()]


def test_random_tokens_are_drawn_evenly():
    label, among = prepare([([0, 1, 2, 3], True)] + [([0], False)] * 20)
    first = [random_tokens(label, among, k=1, generator=np.random.default_rng(i)).token[0] for i in range(2000)]
    shares = np.bincount(first, minlength=4)[:4] / 2000
    np.testing.assert_allclose(shares, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 2000))
