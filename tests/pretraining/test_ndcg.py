"""nDCG@k against scikit-learn and by hand."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import ndcg_score

from plant.pretraining.ndcg import discounts, gains, ideal_dcg, ndcg


@pytest.mark.parametrize("k", [1, 3, 50])
def test_ndcg_equals_scikit_learn_with_linear_gain(k):
    random = np.random.default_rng(0)
    relevance, scores = random.random((5, 12)), random.permutation(60).reshape(5, 12).astype(float)
    expected = [ndcg_score(r[None], s[None], k=k) for r, s in zip(relevance, scores, strict=True)]
    actual = ndcg(torch.from_numpy(scores), torch.from_numpy(relevance), k=k, gain="linear")
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


def test_exponential_gain_by_hand():
    relevance = torch.tensor([1.0, 0.5], dtype=torch.float64)
    scores = torch.tensor([0.0, 1.0], dtype=torch.float64)
    low, high = math.sqrt(2) - 1, 1.0
    expected = (low + high / math.log2(3)) / (high + low / math.log2(3))
    assert ndcg(scores, relevance, k=10).item() == pytest.approx(expected)


def test_positions_outside_the_list_do_not_count():
    scores, relevance = torch.tensor([9.0, 2.0, 1.0]), torch.tensor([-1.0, 1.0, 0.0])
    assert ndcg(scores, relevance, k=10).item() == 1.0
    assert discounts(scores, relevance, 10)[0].item() == 0.0
    assert gains(relevance, "linear")[0].item() == 0.0


def test_a_list_without_relevance_is_not_defined():
    assert math.isnan(ndcg(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]), k=5).item())
    assert ideal_dcg(torch.tensor([0.0, -1.0]), 5, "linear").item() == 0.0


def test_ties_are_broken_by_position():
    relevance = torch.tensor([1.0, 0.0])
    assert ndcg(torch.zeros(2), relevance, k=5).item() == 1.0
    assert ndcg(torch.zeros(2), relevance.flip(0), k=5).item() == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("size", [1e-3, 1e-6, 2.0**-24, 1e-20, 1e-30])
def test_small_relevance_keeps_its_gain_in_single_precision(size):
    """Against scikit-learn in float64, on gains by expm1 from the standard library."""
    random = np.random.default_rng(0)
    relevance = (random.random((5, 12)) * size).astype(np.float32)
    scores = random.permuted(np.tile(np.arange(12.0), (5, 1)), axis=1)
    exact = np.array([[math.expm1(float(r) * math.log(2)) for r in row] for row in relevance])
    expected = [ndcg_score(row[None], score[None], k=8) for row, score in zip(exact / size, scores, strict=True)]
    actual = ndcg(torch.from_numpy(scores), torch.from_numpy(relevance), k=8)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
