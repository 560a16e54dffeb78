"""Eq. 2: the gradient by hand against autograd, a naive loop, and relations that must hold."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.pretraining.ranking_loss import mse_loss, pairwise_loss, pairwise_loss_dense

WAYS = {"compiled": pairwise_loss, "dense": pairwise_loss_dense}


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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_loss_equals_the_naive_double_loop(way, gain, k):
    scores, relevance = lists()
    expected = [naive(s.tolist(), r.tolist(), k, 1.3, gain) for s, r in zip(scores, relevance, strict=True)]
    actual = WAYS[way](scores, relevance, k=k, sigma=1.3, gain=gain)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_gradient_by_hand_equals_autograd_of_the_dense_form_and_follows_the_incoming_gradient(gain, k):
    scores, relevance = lists()
    weights, found = torch.arange(6, dtype=torch.float64), []
    for way in WAYS.values():
        s = scores.clone().requires_grad_()
        (way(s, relevance, k=k, sigma=0.7, gain=gain) * weights).sum().backward()
        found.append(s.grad)
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 7e-7), (torch.float32, 1e-20), (torch.float64, 7e-14)])
@pytest.mark.parametrize("way", WAYS)
def test_small_relevance_has_the_loss_of_linear_gain(way, dtype, size):
    """2^r - 1 is r ln 2 in the limit, and the factor ln 2 cancels in nDCG."""
    scores, relevance = (values.to(dtype) for values in lists())
    relevance = torch.where(relevance > 0, relevance * size, relevance)
    exponential, linear = (
        WAYS[way](scores, relevance, k=9, sigma=1.3, gain=gain) for gain in ("exponential", "linear")
    )
    torch.testing.assert_close(exponential, linear, rtol=1e-5, atol=0)


def test_gradcheck_where_no_rank_changes():
    # delta nDCG is a step function of the ranks: well separated scores keep it constant under the probe
    scores = torch.tensor([[4.0, 1.0, 2.5, -1.0]], dtype=torch.float64, requires_grad=True)
    relevance = torch.tensor([[0.2, 1.0, 0.6, 0.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda s: pairwise_loss(s, relevance, k=3, sigma=1.0, gain="exponential"), (scores,)
    )


@pytest.mark.parametrize(
    "relevance",
    [[-1.0, -1.0, -1.0], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [0.7, -1.0, -1.0]],
    ids=["empty list", "one relevance", "all zero", "one token"],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_list_without_a_pair_costs_nothing_and_pulls_nothing(way, relevance):
    scores = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    losses = WAYS[way](scores, torch.tensor([relevance]), k=10, sigma=1.0, gain="exponential")
    losses.sum().backward()
    assert (losses.tolist(), scores.grad.tolist()) == ([0.0], [[0.0, 0.0, 0.0]])


def test_two_tokens_in_the_right_order_have_the_closed_form():
    s, r = torch.tensor([[2.0, 0.5]], dtype=torch.float64), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    delta = 1 * (1 - 1 / math.log2(3)) / 1
    expected = delta * math.log2(1 + math.exp(-1.5))
    assert pairwise_loss(s, r, k=10, sigma=1, gain="linear").item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("spread", [1e-30, 1.0, 1e4, 1e20])
@pytest.mark.parametrize("k", [1, 5, 10**6])
def test_float32_scores_give_the_dense_float64_loss_to_their_last_digits(k, spread):
    scores, relevance = lists(seed=3, t=90)
    scores, relevance = (scores * spread).float(), relevance.float()
    scores[:, 1::7] = scores[:, :1]  # equal scores are ranked by position
    one, two = scores.clone().requires_grad_(), scores.double().requires_grad_()
    loss = pairwise_loss(one, relevance, k=k, sigma=1.3, gain="exponential")
    dense = pairwise_loss_dense(two, relevance.double(), k=k, sigma=1.3, gain="exponential")
    (loss.sum() + dense.sum()).backward()
    torch.testing.assert_close(loss, dense.float(), rtol=1e-6, atol=1e-35)
    torch.testing.assert_close(one.grad, two.grad.float(), rtol=1e-5, atol=1e-6 * float(two.grad.abs().max()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_lower_precisions_get_the_float64_result_in_their_own_dtype(dtype):
    scores, relevance = lists(seed=4, t=30)
    scores = scores.to(dtype).requires_grad_()
    exact = scores.detach().double().requires_grad_()
    loss, expected = (pairwise_loss(s, relevance, k=9, sigma=1.0, gain="linear") for s in (scores, exact))
    (loss.sum().double() + expected.sum()).backward()
    assert loss.dtype == scores.grad.dtype == dtype
    assert torch.equal(loss, expected.to(dtype)) and torch.equal(scores.grad, exact.grad.to(dtype))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_spoils_its_own_list_and_is_seen(bad):
    scores, relevance = lists()
    relevance[1, 5] = -1
    scores[1, 5] = bad  # outside the list it is not looked at
    expected = pairwise_loss(scores, relevance, k=9, sigma=1.0, gain="linear")
    assert expected.isfinite().all()
    relevance[1, 5] = 0.5
    scores.requires_grad_()
    losses = pairwise_loss(scores, relevance, k=9, sigma=1.0, gain="linear")
    losses.sum().backward()
    others = torch.arange(6) != 1
    assert losses[1].isnan() and scores.grad[1, relevance[1] >= 0].isnan().all()
    assert torch.equal(losses[others], expected[others]) and scores.grad[others].isfinite().all()


def test_a_view_with_strides_and_leading_dimensions_is_read_as_it_is():
    scores, relevance = lists()
    straight = pairwise_loss(scores, relevance, k=9, sigma=1.0, gain="linear")
    turned = pairwise_loss(scores.T.contiguous().T, relevance.T.contiguous().T, k=9, sigma=1.0, gain="linear")
    stacked = pairwise_loss(scores.view(2, 3, -1), relevance.view(2, 3, -1), k=9, sigma=1.0, gain="linear")
    assert torch.equal(straight, turned) and torch.equal(straight.view(2, 3), stacked)


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
