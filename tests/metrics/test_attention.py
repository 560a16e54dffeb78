"""Attention against marked tokens: naive loops, scikit-learn, and closed forms."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from plant.metrics.attention import entropy, equal_length_recall, marked_ndcg, mass, relative_entropy, top_tokens


@st.composite
def rows(draw):
    """Attention of one label to n tokens, with ties, and the marked ones, at least one."""
    n = draw(st.integers(2, 12))
    scores = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=float) + 1
    marked = np.zeros(n, dtype=bool)
    marked[draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))] = True
    return scores[None] / scores.sum(), marked[None]


@given(rows(), st.integers(1, 15))
def test_ndcg_of_marked_tokens_is_that_of_scikit_learn(row, k):
    weights, marked = row
    np.testing.assert_allclose(marked_ndcg(weights, marked, k), [ndcg_score(marked, weights, k=k)], rtol=1e-12)


@given(rows())
def test_mass_entropy_and_recall_are_those_of_a_loop(row):
    weights, marked = row
    n = weights.shape[1]
    np.testing.assert_allclose(mass(weights, marked), [weights[marked].sum()])
    nats = -sum(w * math.log(w) for w in weights[0])
    np.testing.assert_allclose(entropy(weights), [nats])
    np.testing.assert_allclose(relative_entropy(weights), [nats / math.log(n)])
    # recall: among the tokens above the boundary all count, of those at the boundary the expected number
    size = int(marked.sum())
    boundary = sorted(weights[0], reverse=True)[size - 1]
    above, at = weights[0] > boundary, weights[0] == boundary
    expected = (marked[0][above].sum() + marked[0][at].mean() * (size - above.sum())) / size
    np.testing.assert_allclose(equal_length_recall(weights, marked), [expected])


def test_top_tokens_come_in_the_order_of_the_text_and_the_first_of_equal_ones_wins():
    assert top_tokens(np.array([0.1, 0.3, 0.3, 0.3]), 2).tolist() == [1, 2]
