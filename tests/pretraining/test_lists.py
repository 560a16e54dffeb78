"""T_l met with a document: against a dictionary."""

import numpy as np
import pytest

from plant.pretraining.lists import TopTokens, label_weights, labels_of_document, packed


def top(k=3):
    return TopTokens.from_csr(
        np.array([0, 3, 3, 5]), np.array([7, 2, 9, 2, 0]), np.array([1.0, 0.5, 0.25, 1.0, 0.1], dtype=np.float32),
        k=k, vocabulary=10,
    )  # fmt: skip


def test_every_repeat_of_a_token_has_the_relevance_of_the_token():
    table = {0: {7: 1.0, 2: 0.5, 9: 0.25}, 1: {}, 2: {2: 1.0, 0: np.float32(0.1)}}
    ids, labels = np.array([2, 7, 7, 1, 0, 2]), np.array([0, 1, 2])
    expected = [[table[label].get(int(token), -1) for token in ids] for label in labels]
    np.testing.assert_array_equal(top().relevance_of(labels, ids), np.array(expected, dtype=np.float32))


def test_k_keeps_the_first_of_each_label():
    found = top(k=1).relevance_of(np.array([0, 2]), np.array([7, 2, 9, 0]))
    np.testing.assert_array_equal(found, np.array([[1, -1, -1, -1], [-1, 1, -1, -1]], dtype=np.float32))


def test_packing_keeps_every_listed_position_and_no_other():
    random = np.random.default_rng(0)
    parts = [np.where(random.random((m, n)) < 0.4, random.random((m, n)), -1).astype(np.float32)
             for m, n in ((2, 9), (3, 4), (1, 6))]  # fmt: skip
    positions, values = packed(parts)
    for document, part in enumerate(parts):
        for label in range(values.shape[1]):
            inside = values[document, label] >= 0
            got = dict(zip(positions[document, label][inside].tolist(), values[document, label][inside], strict=True))
            row = part[label] if label < len(part) else np.array([])
            assert got == {j: r for j, r in enumerate(row) if r >= 0}


def test_a_look_up_in_pieces_finds_the_same(monkeypatch):
    random = np.random.default_rng(0)
    tokens = np.concatenate([random.permutation(50)[: 5 + label] for label in range(9)])
    indptr = np.concatenate([[0], np.cumsum(5 + np.arange(9))])
    full = TopTokens.from_csr(indptr, tokens, random.random(len(tokens)).astype(np.float32), k=9, vocabulary=50)
    labels, ids = np.array([8, 0, 3, 3, 5]), random.integers(0, 50, 30)
    whole = full.relevance_of(labels, ids)
    monkeypatch.setattr("plant.pretraining.lists.LOOKED_UP", 7)
    np.testing.assert_array_equal(full.relevance_of(labels, ids), whole)
    assert (whole >= 0).any(axis=1).all()


def test_negatives_are_never_positives_and_as_many_as_asked_for():
    random = np.random.default_rng(0)
    for _ in range(50):
        drawn = labels_of_document(np.array([3, 5]), np.arange(10), 4, random)
        assert drawn[:2].tolist() == [3, 5]
        assert len(set(drawn.tolist())) == 6
    assert labels_of_document(np.array([1]), np.arange(4), None, random).tolist() == [0, 1, 2, 3]
    assert sorted(labels_of_document(np.array([1]), np.arange(3), 100, random).tolist()) == [0, 1, 2]
    drawn = labels_of_document(np.array([4]), np.array([1, 4, 7]), 100, random)
    assert sorted(drawn.tolist()) == [1, 4, 7]


@pytest.mark.parametrize("positives", [[], [2], [0, 5, 9]], ids=str)
def test_weighted_sums_over_sampled_labels_are_unbiased_for_the_sum_over_all(positives):
    """Simulation: the mean over draws lies within four standard errors of the sum; without weights it does not."""
    random, draws, eligible = np.random.default_rng(2), 3000, np.array([0, 1, 2, 4, 5, 6, 8, 9, 11, 12, 13])
    positives = np.array(positives, dtype=np.int64)
    losses = random.random(14) ** 2 + 0.1  # of each label, whatever the draw
    weighted, plain = np.zeros(draws), np.zeros(draws)
    for draw in range(draws):
        labels = labels_of_document(positives, eligible, 3, random)
        weighted[draw] = label_weights(labels, len(positives), len(eligible)) @ losses[labels]
        plain[draw] = losses[labels].sum()
    expected, error = losses[eligible].sum(), weighted.std() / np.sqrt(draws)
    assert error < 0.02 * expected
    assert abs(weighted.mean() - expected) < 4 * error
    assert abs(plain.mean() - expected) > 20 * error


def test_weights_are_1_where_every_label_was_drawn():
    labels = labels_of_document(np.array([1, 2]), np.arange(5), 100, np.random.default_rng(0))
    assert label_weights(labels, 2, 5).tolist() == [1, 1, 1, 1, 1]
    assert label_weights(np.array([1, 2]), 2, 5).tolist() == [1, 1]
