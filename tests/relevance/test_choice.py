"""The top k against scoring every token, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.ground.settings import Relevance
from plant.relevance.choice import best, normalised, plain_choice, random_tokens

V = 9
documents_and_label = st.lists(
    st.tuples(st.lists(st.integers(0, V - 1), max_size=6), st.booleans()), min_size=2, max_size=14
)


@pytest.fixture(scope="module")
def choose(make_training):
    """(token, n_joint, relevance) of the one label, which the documents' flags say."""

    def of(documents, *, measure, k, sign="both", least=1):
        training = make_training([(words, [0] if flag else []) for words, flag in documents], V, 1, least=least)
        settings = Relevance(k=min(k, len(training.order)) or 1, sign=sign, min_documents=least, rows_in_memory=1)
        pieces = list(plain_choice(training, measure, settings))
        if not pieces:
            return [], [], []
        return tuple(getattr(pieces[0], name).tolist() for name in ("token", "n_joint", "relevance"))

    return of


@pytest.mark.parametrize("sign", ["both", "positive"])
@pytest.mark.parametrize("measure", ["mig", "smoothed_mig", "pmi", "chi2", "term_frequency"])
@given(documents=documents_and_label, k=st.integers(1, V), least=st.integers(1, 3))
def test_the_top_k_are_those_of_scoring_every_token(choose, oracle, measure, sign, documents, k, least):
    train = [(words, [0] if flag else []) for words, flag in documents]
    may = [token for token in range(V) if sum(token in words for words, _ in documents) >= least]
    if not may or not any(flag for _, flag in documents):
        return
    token, n_joint, relevance = choose(documents, measure=measure, k=k, sign=sign, least=least)
    expected = oracle(train, may, 0, measure=measure, k=k, sign=sign)
    assert list(zip(token, n_joint, strict=True)) == [row[:2] for row in expected]
    np.testing.assert_allclose(relevance, [row[2] for row in expected], atol=2**-24)


def test_a_frequent_token_that_avoids_the_label_scores_unless_the_sign_must_be_positive(choose):
    documents = [([0], True)] * 5 + [([1], False)] * 5
    assert choose(documents, measure="mig", k=2) == ([0, 1], [5, 0], [1.0, 1.0])
    assert choose(documents, measure="mig", k=2, sign="positive")[0] == [0]


@pytest.mark.parametrize("total", [1_000, 50_000, 1_000_000])
def test_equal_tables_reached_by_other_sums_stay_ties_at_scale(total):
    from plant.relevance.measures import PairCounts, mig

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


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_normalised_values_lie_in_the_unit_interval_and_keep_their_order(values):
    values = np.sort(np.array(values))
    relevance = normalised(values)
    assert relevance.dtype == np.float32
    assert relevance.min() >= 0 and (np.diff(relevance) >= 0).all()
    assert relevance[-1] == (1 if values[-1] > 0 else 0)


def test_random_tokens_are_seeded_distinct_and_drawn_evenly_from_the_candidates():
    among = np.array([0, 3, 1, 5])
    one, again, other = (random_tokens(among, k=3, generator=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one, again, strict=True)) and (one[1] != other[1]).all()
    assert len(set(one[0].tolist())) == 3 and one[1].max() == 1 and (one[1] > 0).all()
    drawn = [random_tokens(among, k=1, generator=np.random.default_rng(i))[0][0] for i in range(2000)]
    shares = np.bincount(drawn, minlength=6) / 2000
    np.testing.assert_allclose(shares, [0.25, 0.25, 0, 0.25, 0, 0.25], atol=5 * np.sqrt(0.25 * 0.75 / 2000))
