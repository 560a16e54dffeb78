"""Eq. 2: the gradient by hand against autograd, a naive loop, and relations that must hold."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.pretraining.ranking_loss import _chunked, _compiled, mse_loss, pairwise_loss, pairwise_loss_dense

WAYS = {"compiled": _compiled, "chunked": _chunked}


def naive(scores, relevance, k, sigma, gain):
    """Eq. 2 of one list, word for word."""
    inside = [j for j, r in enumerate(relevance) if r >= 0]
    ranking = sorted(inside, key=lambda j: (-scores[j], j))
    discount = {j: (1 / math.log2(1 + rank) if rank <= k else 0.0) for rank, j in enumerate(ranking, start=1)}
    value = {j: (2 ** relevance[j] - 1 if gain == "exponential" else relevance[j]) for j in inside}
    best = sorted(value.values(), reverse=True)[:k]
    ideal = sum(g / math.log2(1 + rank) for rank, g in enumerate(best, start=1))
    loss = 0.0
    for j, h in itertools.permutations(inside, 2):
        if relevance[j] > relevance[h]:
            delta = abs(value[j] - value[h]) * abs(discount[j] - discount[h]) / ideal
            loss += delta * math.log2(1 + math.exp(-sigma * (scores[j] - scores[h])))
    return loss


def lists(seed=0, t=17):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(6, t, generator=random, dtype=torch.float64)
    relevance = (torch.rand(6, t, generator=random, dtype=torch.float64) * 6).round() / 6  # with ties
    relevance[torch.rand(6, t, generator=random) < 0.3] = -1
    return scores, relevance


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_loss_equals_the_naive_double_loop(gain, k):
    scores, relevance = lists()
    expected = [naive(s.tolist(), r.tolist(), k, 1.3, gain) for s, r in zip(scores, relevance, strict=True)]
    actual = pairwise_loss(scores, relevance, k=k, sigma=1.3, gain=gain)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_gradient_by_hand_equals_autograd_of_the_dense_form(way, gain, k):
    scores, relevance = lists()
    scores.requires_grad_()
    dense = pairwise_loss_dense(scores, relevance, k=k, sigma=0.7, gain=gain)
    (expected,) = torch.autograd.grad(dense.sum(), scores)
    losses, gradient = WAYS[way](scores, relevance, k, 0.7, gain)
    torch.testing.assert_close(losses, dense.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 7e-7), (torch.float32, 1e-20), (torch.float64, 7e-14)])
@pytest.mark.parametrize("way", [*WAYS, "dense"])
def test_small_relevance_has_the_loss_of_linear_gain(way, dtype, size):
    """2^r - 1 is r ln 2 in the limit, and the factor ln 2 cancels in nDCG."""
    scores, relevance = (values.to(dtype) for values in lists())
    relevance = torch.where(relevance > 0, relevance * size, relevance)
    if way == "dense":
        exponential, linear = (
            pairwise_loss_dense(scores, relevance, k=9, sigma=1.3, gain=gain) for gain in ("exponential", "linear")
        )
    else:
        exponential, linear = (WAYS[way](scores, relevance, 9, 1.3, gain)[0] for gain in ("exponential", "linear"))
    torch.testing.assert_close(exponential, linear, rtol=1e-5, atol=0)


def test_gradcheck_where_no_rank_changes():
    # delta nDCG is a step function of the ranks: well separated scores keep it constant under the probe
    scores = torch.tensor([[4.0, 1.0, 2.5, -1.0]], dtype=torch.float64, requires_grad=True)
    relevance = torch.tensor([[0.2, 1.0, 0.6, 0.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda s: pairwise_loss(s, relevance, k=3, sigma=1.0, gain="exponential"), (scores,)
    )


def test_backward_weights_each_list_by_its_incoming_gradient():
    scores, relevance = lists()
    weights = torch.arange(6, dtype=torch.float64)
    one, two = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    (pairwise_loss(one, relevance, k=5, sigma=1, gain="linear") * weights).sum().backward()
    (pairwise_loss_dense(two, relevance, k=5, sigma=1, gain="linear") * weights).sum().backward()
    torch.testing.assert_close(one.grad, two.grad)


@pytest.mark.parametrize(
    "relevance",
    [[-1.0, -1.0, -1.0], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [0.7, -1.0, -1.0]],
    ids=["empty list", "one relevance", "all zero", "one token"],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_list_without_a_pair_costs_nothing_and_pulls_nothing(way, relevance):
    losses, gradient = WAYS[way](torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([relevance]), 10, 1.0, "exponential")
    assert losses.tolist() == [0.0]
    assert gradient.tolist() == [[0.0, 0.0, 0.0]]


def test_two_tokens_in_the_right_order_have_the_closed_form():
    s, r = torch.tensor([[2.0, 0.5]], dtype=torch.float64), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    delta = 1 * (1 - 1 / math.log2(3)) / 1
    expected = delta * math.log2(1 + math.exp(-1.5))
    assert pairwise_loss(s, r, k=10, sigma=1, gain="linear").item() == pytest.approx(expected, rel=1e-12)


def test_extreme_scores_give_finite_losses_and_gradients():
    scores = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = pairwise_loss(scores, torch.tensor([[0.0, 1.0, 0.5]]), k=3, sigma=1, gain="exponential")
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(scores.grad).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.integers(1, 20))
def test_loss_ignores_a_shift_of_scores_and_follows_a_permutation(seed, shift, k):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 9, generator=random, dtype=torch.float64)
    relevance = torch.rand(2, 9, generator=random, dtype=torch.float64)
    order = torch.randperm(9, generator=random)
    base = pairwise_loss(scores, relevance, k=k, sigma=1, gain="exponential")
    moved = pairwise_loss(scores + shift, relevance, k=k, sigma=1, gain="exponential")
    permuted = pairwise_loss(scores[:, order], relevance[:, order], k=k, sigma=1, gain="exponential")
    torch.testing.assert_close(base, moved, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(base, permuted, rtol=1e-9, atol=1e-9)


def test_a_position_outside_the_list_is_the_same_as_a_deleted_one():
    scores, relevance = lists()
    full = pairwise_loss(scores, relevance, k=5, sigma=1, gain="linear")
    for row in range(len(scores)):
        inside = relevance[row] >= 0
        alone = pairwise_loss(scores[row, inside][None], relevance[row, inside][None], k=5, sigma=1, gain="linear")
        torch.testing.assert_close(alone[0], full[row])


def test_mse_is_the_mean_square_over_the_list():
    scores, relevance = torch.tensor([[1.0, 5.0, 0.0]]), torch.tensor([[0.5, -1.0, 1.0]])
    assert mse_loss(scores, relevance).tolist() == [pytest.approx((0.25 + 1.0) / 2)]
    assert mse_loss(scores, torch.full((1, 3), -1.0)).tolist() == [0.0]
