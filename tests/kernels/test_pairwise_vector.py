"""The float32 loops against the float64 ones: Eq. 2 of the same scores, to 1e-5."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.kernels import pairwise_vector
from plant.kernels.pairwise import pairwise_lists
from plant.kernels.pairwise_vector import STRIDE, pairwise_vectors
from plant.pretraining.ranking_loss import pairwise_loss

TOLERANCE, LEAST = 1e-5, 1e-35  # exp(-x) is at least 2^-126, times sigma and a few


def lists(seed, t, *, n=3, spread=3.0, ties=20):
    """float32 scores and relevances; some positions outside, many equal relevances, some equal scores."""
    random = np.random.default_rng(seed)
    scores = random.normal(0, spread, (n, t)).astype(np.float32)
    scores[:, 1::7] = scores[:, :1]
    relevance = random.random((n, t)).astype(np.float32)
    relevance[relevance < 0.6] = np.round(relevance[relevance < 0.6] * ties) / ties
    relevance[random.random((n, t)) < 0.2] = -1
    return scores, relevance


def assert_close(scores, relevance, *, k=10**6, sigma=1.0, exponential=True):
    losses, gradient = pairwise_vectors(scores, relevance, k, sigma, exponential)
    expected, slope = pairwise_lists(scores.astype(float), relevance.astype(float), k, sigma, exponential)
    assert (losses.dtype, gradient.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(losses, expected, rtol=TOLERANCE, atol=LEAST)
    largest = np.abs(slope).max(1, keepdims=True)
    assert (np.abs(gradient - slope) <= TOLERANCE * largest + LEAST).all()
    return expected


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), t=st.integers(1, 3 * STRIDE), k=st.integers(1, 4 * STRIDE),
    spread=st.floats(1e-3, 1e5), sigma=st.floats(0.01, 100), exponential=st.booleans(),
)  # fmt: skip
def test_loss_and_gradient_are_those_of_float64_for_any_length_truncation_and_spread(
    seed, t, k, spread, sigma, exponential
):
    scores, relevance = lists(seed, t, spread=spread)
    assert_close(scores, relevance, k=k, sigma=sigma, exponential=exponential)


@pytest.mark.parametrize("m", [2, STRIDE - 1, STRIDE, STRIDE + 1, 2 * STRIDE])
@pytest.mark.parametrize("k", [1, 5, 10**6])
def test_lists_that_end_at_or_beside_the_end_of_a_stride(m, k):
    random = np.random.default_rng(m)
    scores = random.normal(0, 2, (4, m)).astype(np.float32)
    assert (assert_close(scores, random.random((4, m)).astype(np.float32), k=k) > 0).all()


@pytest.mark.parametrize("k", [300, 10**6])
def test_errors_do_not_grow_with_the_length_of_the_list(k):
    scores, relevance = lists(0, 4000, n=1)
    assert_close(scores, relevance, k=k)


def test_well_ranked_lists_have_a_small_loss_that_is_right_too():
    relevance = np.linspace(0, 1, 50, dtype=np.float32)[None]
    assert assert_close(relevance * 800, relevance)[0] < 1e-6


@pytest.mark.parametrize("scale", [1e-30, 1e4, 1e20])
def test_any_finite_scores_give_finite_losses_and_gradients(scale):
    scores, relevance = lists(1, 90)
    assert_close(scores * np.float32(scale), relevance)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_spoil_their_own_list_and_are_seen(bad):
    scores, relevance = lists(2, 40)
    expected = pairwise_vectors(scores, relevance, 9, 1.0, True)
    relevance[1, 5], scores[1, 5] = 0.5, bad
    losses, gradient = pairwise_vectors(scores, relevance, 9, 1.0, True)
    assert np.isnan(losses[1]) and np.isnan(gradient[1, relevance[1] >= 0]).all()
    assert (losses[[0, 2]] == expected[0][[0, 2]]).all() and (gradient[[0, 2]] == expected[1][[0, 2]]).all()
    relevance[1, 5] = -1  # outside the list it is not looked at
    assert np.isfinite(pairwise_vectors(scores, relevance, 9, 1.0, True)[0]).all()


def test_minus_zero_ties_with_zero():
    relevance = np.array([[0.2, 1.0, 0.5]], np.float32)
    one = pairwise_vectors(np.array([[-0.0, 0.0, 1.0]], np.float32), relevance, 1, 1.0, True)
    two = pairwise_vectors(np.array([[0.0, 0.0, 1.0]], np.float32), relevance, 1, 1.0, True)
    assert one[0].tolist() == two[0].tolist() and one[1].tolist() == two[1].tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_lower_precisions_give_their_own_dtype_with_the_float32_result(dtype):
    scores, relevance = (torch.from_numpy(values) for values in lists(3, 30))
    scores = scores.to(dtype).requires_grad_()
    losses = pairwise_loss(scores, relevance, k=9, sigma=1.0, gain="linear")
    losses.sum().backward()
    expected, gradient = pairwise_vectors(scores.detach().float().numpy(), relevance.numpy(), 9, 1.0, False)
    assert losses.dtype == scores.grad.dtype == dtype
    assert (losses.detach() == torch.from_numpy(expected).to(dtype)).all()
    assert (scores.grad == torch.from_numpy(gradient).to(dtype)).all()


def test_a_view_with_strides_is_read_as_it_is():
    scores, relevance = (torch.from_numpy(values) for values in lists(4, 30))
    straight = pairwise_loss(scores, relevance, k=9, sigma=1.0, gain="linear")
    turned = pairwise_loss(scores.T.contiguous().T, relevance.T.contiguous().T, k=9, sigma=1.0, gain="linear")
    assert (straight == turned).all()


@given(st.lists(st.sampled_from([-2.0, -0.0, 0.0, 0.5, 3.0]), min_size=1, max_size=150))
def test_rank_is_that_of_a_stable_sort(values):
    values = np.array(values, np.float32)
    rank = np.empty(len(values), np.int32)
    pairwise_vector._rank(values, rank)
    assert np.argsort(rank).tolist() == np.argsort(-values, kind="stable").tolist()
