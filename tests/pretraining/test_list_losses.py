"""The losses of a list: against loops over pairs, their gradients against autograd of the loops, and relations."""

import itertools
import math
from functools import cache, partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.pretraining.losses import approx_ndcg, pairwise
from plant.pretraining.losses.approx_ndcg import approx_ndcg_loss
from plant.pretraining.losses.mse import mse_loss
from plant.pretraining.losses.pairwise import by_chunks, pairwise_loss, pairwise_loss_dense
from plant.pretraining.ndcg import ndcg


def on_a_gpu(scores, relevance, *, k, sigma, gain):
    """`pairwise_loss` as a GPU computes it; the gradient by hand takes the place of autograd."""
    losses, gradient = by_chunks(scores.detach(), relevance, k, sigma, gain)
    return losses + (gradient * (scores - scores.detach())).sum(-1)


SIGMA, TEMPERATURE = {"sigma": 1.3}, {"temperature": 0.4}
WAYS = {
    "pairwise": partial(pairwise_loss, **SIGMA),
    "pairwise, dense": partial(pairwise_loss_dense, **SIGMA),
    "pairwise, on a GPU": partial(on_a_gpu, **SIGMA),
    "approx_ndcg": partial(approx_ndcg_loss, **TEMPERATURE),
}
FAST = ["pairwise", "approx_ndcg"]


def by_loops(way, scores, relevance, k, gain):
    """The formula of one list, word for word: Eq. 2, or 1 - nDCG@k with smooth ranks."""
    inside = [j for j, r in enumerate(relevance) if r >= 0]
    value = {j: (2 ** relevance[j] - 1 if gain == "exponential" else relevance[j]) for j in inside}
    best = sorted(value.values(), reverse=True)[:k]
    ideal = sum(g / math.log2(1 + rank) for rank, g in enumerate(best, start=1))
    total = torch.zeros((), dtype=torch.float64)
    if way == "approx_ndcg":
        for j in inside:
            rank = 1 + sum(((scores[i] - scores[j]) / 0.4).sigmoid() for i in inside if i != j)
            cut = ((k + 0.5 - rank) / 0.4).sigmoid() if len(inside) > k else 1
            total = total + value[j] * cut / (1 + rank).log2() / ideal
        return 1 - total
    ranking = sorted(inside, key=lambda j: (-scores[j].item(), j))
    discount = {j: (1 / math.log2(1 + rank) if rank <= k else 0.0) for rank, j in enumerate(ranking, start=1)}
    for j, h in itertools.permutations(inside, 2):
        if relevance[j] > relevance[h]:
            delta = abs(value[j] - value[h]) * abs(discount[j] - discount[h]) / ideal
            total = total + delta * (1 + (-1.3 * (scores[j] - scores[h])).exp()).log2()
    return total


def lists(seed=0, t=12, rows=4):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, t, generator=random, dtype=torch.float64)
    relevance = (torch.rand(rows, t, generator=random, dtype=torch.float64) * 6).round() / 6  # with ties and zeros
    relevance[torch.rand(rows, t, generator=random) < 0.3] = -1
    return scores, relevance


def loss_and_gradient(loss, scores, weights=1.0):
    """Losses of some scores, and the gradient of their weighted sum."""
    given_scores = scores.clone().requires_grad_()
    losses = loss(given_scores)
    (losses * weights).sum().backward()
    return losses.detach(), given_scores.grad


@cache
def expected(way, k, gain):
    scores, relevance = lists()

    def loss(s):
        return torch.stack([by_loops(way, row, r, k, gain) for row, r in zip(s, relevance.tolist(), strict=True)])

    return loss_and_gradient(loss, scores, torch.arange(4, dtype=torch.float64))


@pytest.mark.parametrize("chunk", [1, 200, 10_000_000])  # pairs: one row at a time ... everything at once
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_loss_and_gradient_are_those_of_loops_over_pairs(monkeypatch, k, gain, way, chunk):
    for module in (approx_ndcg, pairwise):
        monkeypatch.setattr(module, "CHUNK_PAIRS", chunk)
    scores, relevance = lists()
    weights = torch.arange(4, dtype=torch.float64)
    found = loss_and_gradient(lambda s: WAYS[way](s, relevance, k=k, gain=gain), scores, weights)
    for one, other in zip(found, expected(way.partition(",")[0], k, gain), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@settings(max_examples=30)
@pytest.mark.parametrize("way", FAST)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.integers(1, 20))
def test_shifts_change_nothing_permutations_follow_and_masking_is_deleting(way, seed, shift, k):
    scores, relevance = lists(seed, t=9, rows=1)
    relevance[0, 0] = 1.0  # one at least
    loss = partial(WAYS[way], k=k, gain="exponential")
    order, kept = torch.randperm(9, generator=torch.Generator().manual_seed(seed)), relevance[0] >= 0
    for other in (
        loss(scores + shift, relevance), loss(scores[:, order], relevance[:, order]),
        loss(scores[:, kept], relevance[:, kept]),
    ):  # fmt: skip
        torch.testing.assert_close(loss(scores, relevance), other, rtol=1e-9, atol=1e-9)


NOTHING = [[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
NO_PAIR = [*NOTHING, [0.5, 0.5, 0.5], [0.7, -1.0, -1.0]]


@pytest.mark.parametrize(
    ("way", "relevance"), [(way, row) for way in WAYS for row in (NOTHING if way == "approx_ndcg" else NO_PAIR)]
)
def test_a_list_that_ranks_nothing_costs_nothing_and_pulls_nothing(way, relevance):
    scores, given_relevance = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([relevance])
    found = loss_and_gradient(lambda s: WAYS[way](s, given_relevance, k=10, gain="exponential"), scores)
    assert [part.tolist() for part in found] == [[0.0], [[0.0, 0.0, 0.0]]]


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 7e-7), (torch.float32, 1e-20), (torch.float64, 7e-14)])
@pytest.mark.parametrize("way", WAYS)
def test_small_relevance_has_the_loss_of_linear_gain(way, dtype, size):
    """2^r - 1 is r ln 2 in the limit, and the factor ln 2 cancels in nDCG."""
    scores, relevance = (values.to(dtype) for values in lists())
    relevance = torch.where(relevance > 0, relevance * size, relevance)
    exponential, linear = (WAYS[way](scores, relevance, k=9, gain=gain) for gain in ("exponential", "linear"))
    torch.testing.assert_close(exponential, linear, rtol=1e-5, atol=0)


@pytest.mark.parametrize("spread", [1e-30, 1.0, 1e4, 1e20])
@pytest.mark.parametrize("k", [1, 5, 10**6])
@pytest.mark.parametrize(("way", "digits"), [("pairwise", 1e-6), ("pairwise, on a GPU", 1e-5)])
def test_float32_scores_give_the_dense_float64_loss_to_their_last_digits(way, digits, k, spread):
    scores, relevance = lists(seed=3, t=90)
    scores, relevance = (scores * spread).float(), relevance.float()
    scores[:, 1::7] = scores[:, :1]  # equal scores are ranked by position
    loss, slope = loss_and_gradient(lambda s: WAYS[way](s, relevance, k=k, gain="exponential"), scores)
    dense, exact = loss_and_gradient(
        lambda s: WAYS["pairwise, dense"](s, relevance.double(), k=k, gain="exponential"), scores.double()
    )
    torch.testing.assert_close(loss, dense.float(), rtol=digits, atol=1e-35)
    torch.testing.assert_close(slope, exact.float(), rtol=10 * digits, atol=digits * float(exact.abs().max()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_lower_precisions_get_the_float64_result_in_their_own_dtype(dtype):
    scores, relevance = lists(seed=4, t=30)
    scores = scores.to(dtype)
    found, exact = (
        loss_and_gradient(lambda s: WAYS["pairwise"](s, relevance, k=9, gain="linear"), s)
        for s in (scores, scores.double())
    )
    for one, other in zip(found, exact, strict=True):
        assert torch.equal(one, other.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_extreme_scores_give_approx_ndcg_finite_losses_and_gradients(dtype):
    scores, relevance = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype), torch.tensor([[0.0, 1.0, 0.5]])
    loss, slope = loss_and_gradient(lambda s: WAYS["approx_ndcg"](s, relevance, k=3, gain="linear"), scores)
    assert (loss.dtype, slope.dtype) == (torch.float32, dtype)
    assert torch.isfinite(loss).all() and torch.isfinite(slope).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_spoils_its_own_list_and_is_seen(bad):
    scores, relevance = lists()
    relevance[1, 5] = -1
    scores[1, 5] = bad  # outside the list it is not looked at
    good = WAYS["pairwise"](scores, relevance, k=9, gain="linear")
    assert good.isfinite().all()
    relevance[1, 5] = 0.5
    losses, slope = loss_and_gradient(lambda s: WAYS["pairwise"](s, relevance, k=9, gain="linear"), scores)
    others = torch.arange(4) != 1
    assert losses[1].isnan() and slope[1, relevance[1] >= 0].isnan().all()
    assert torch.equal(losses[others], good[others]) and slope[others].isfinite().all()


@pytest.mark.parametrize("way", FAST)
def test_a_view_with_strides_and_leading_dimensions_is_read_as_it_is(way):
    scores, relevance = lists()
    loss = partial(WAYS[way], k=9, gain="linear")
    straight = loss(scores, relevance)
    assert torch.equal(loss(scores.T.contiguous().T, relevance.T.contiguous().T), straight)
    assert torch.equal(loss(scores.view(2, 2, -1), relevance.view(2, 2, -1)), straight.view(2, 2))


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_small_temperatures_give_1_minus_ndcg(gain, k):
    scores, relevance = lists()
    scores = scores.argsort(1).argsort(1).double()  # whole numbers: no ties
    actual = approx_ndcg_loss(scores, relevance, k=k, temperature=0.01, gain=gain)
    torch.testing.assert_close(actual, 1 - ndcg(scores, relevance, k=k, gain=gain), rtol=1e-9, atol=1e-9)


def test_a_list_of_all_labels_costs_a_row_a_true_label():
    t = 200_000  # t x t pairs would be 160 GB
    scores = torch.randn(2, t, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth = torch.zeros(2, t, dtype=torch.float64)
    truth[0, :2] = truth[1, 7:10] = 1
    loss, slope = loss_and_gradient(lambda s: approx_ndcg_loss(s, truth, k=t, temperature=0.1, gain="linear"), scores)
    ranks = [0.5 + torch.sigmoid((scores[0] - scores[0, j]) / 0.1).sum().item() for j in (0, 1)]
    expected_loss = 1 - sum(1 / math.log2(1 + rank) for rank in ranks) / (1 + 1 / math.log2(3))
    assert loss[0].item() == pytest.approx(expected_loss, rel=1e-10)
    torch.testing.assert_close(slope.sum(1), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (slope[0, :2] < 0).all() and (slope[0, 2:] >= 0).all()


def test_mse_is_the_mean_square_over_the_list():
    scores, relevance = torch.tensor([[1.0, 5.0, 0.0]]), torch.tensor([[0.5, -1.0, 1.0]])
    assert mse_loss(scores, relevance).tolist() == [pytest.approx((0.25 + 1.0) / 2)]
    assert mse_loss(scores, torch.full((1, 3), -1.0)).tolist() == [0.0]
