"""approxNDCG: its limit, a naive loop, autograd of the dense form, and relations that must hold."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.pretraining import approx_ndcg
from plant.pretraining.approx_ndcg import approx_ndcg_loss, approx_ndcg_loss_dense
from plant.pretraining.ndcg import ndcg

WAYS = {"by hand": approx_ndcg_loss, "dense": approx_ndcg_loss_dense}


def naive(scores, relevance, k, temperature, gain):
    """The formula of one list, word for word."""
    inside = [j for j, r in enumerate(relevance) if r >= 0]
    value = {j: (2 ** relevance[j] - 1 if gain == "exponential" else relevance[j]) for j in inside}
    ideal = sum(g / math.log2(1 + i) for i, g in enumerate(sorted(value.values(), reverse=True)[:k], start=1))
    if not ideal:
        return 0.0
    total = 0.0
    for j in inside:
        rank = 1 + sum(1 / (1 + math.exp(-(scores[i] - scores[j]) / temperature)) for i in inside if i != j)
        cut = 1 if len(inside) <= k else 1 / (1 + math.exp(-(k + 0.5 - rank) / temperature))
        total += value[j] * cut / math.log2(1 + rank)
    return 1 - total / ideal


def lists(seed=0, t=17, rows=6):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, t, generator=random, dtype=torch.float64)
    relevance = (torch.rand(rows, t, generator=random, dtype=torch.float64) * 6).round() / 6  # with ties and zeros
    relevance[torch.rand(rows, t, generator=random) < 0.3] = -1
    return scores, relevance


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_loss_equals_the_naive_loop(way, gain, k):
    scores, relevance = lists()
    expected = [naive(s.tolist(), r.tolist(), k, 0.4, gain) for s, r in zip(scores, relevance, strict=True)]
    actual = WAYS[way](scores, relevance, k=k, temperature=0.4, gain=gain)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_small_temperatures_give_1_minus_ndcg(gain, k):
    scores, relevance = lists()
    scores = scores.argsort(1).argsort(1).double()  # whole numbers: no ties
    actual = approx_ndcg_loss(scores, relevance, k=k, temperature=0.01, gain=gain)
    torch.testing.assert_close(actual, 1 - ndcg(scores, relevance, k=k, gain=gain), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("chunk", [1, 40, 200, 10_000_000])  # pairs: one row at a time ... everything at once
@pytest.mark.parametrize("k", [3, 100])
def test_gradient_by_hand_equals_autograd_of_the_dense_form(monkeypatch, chunk, k):
    monkeypatch.setattr(approx_ndcg, "CHUNK_PAIRS", chunk)
    scores, relevance = lists()
    weights, found = torch.arange(6, dtype=torch.float64), []
    for way in WAYS.values():
        s = scores.clone().requires_grad_()
        (way(s, relevance, k=k, temperature=0.3, gain="exponential") * weights).sum().backward()
        found.append(s.grad)
    torch.testing.assert_close(found[0], found[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("k", [2, 50])
def test_gradient_agrees_with_finite_differences(k):
    scores, relevance = lists(seed=1, t=7, rows=3)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: approx_ndcg_loss(s, relevance, k=k, temperature=0.5, gain="linear"), (scores,)
    )


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 20))
def test_masking_a_position_is_deleting_it(seed, k):
    scores, relevance = lists(seed, t=9, rows=1)
    relevance[0, 0] = 1.0  # one at least
    kept = relevance[0] >= 0
    recipe = {"k": k, "temperature": 0.2, "gain": "linear"}
    whole = approx_ndcg_loss(scores, relevance, **recipe)
    torch.testing.assert_close(whole, approx_ndcg_loss(scores[:, kept], relevance[:, kept], **recipe))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(-5, 5))
def test_loss_ignores_a_shift_of_scores_and_follows_a_permutation(seed, shift):
    scores, relevance = lists(seed, t=9, rows=2)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(seed))
    recipe = {"k": 4, "temperature": 0.2, "gain": "exponential"}
    base = approx_ndcg_loss(scores, relevance, **recipe)
    torch.testing.assert_close(base, approx_ndcg_loss(scores + shift, relevance, **recipe), rtol=1e-9, atol=1e-9)
    moved = approx_ndcg_loss(scores[:, order], relevance[:, order], **recipe)
    torch.testing.assert_close(base, moved, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("relevance", [[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [0.0, -1.0, 0.0]], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_a_list_without_relevance_costs_nothing_and_pulls_nothing(way, relevance):
    scores = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    loss = WAYS[way](scores, torch.tensor([relevance]), k=10, temperature=0.1, gain="linear")
    loss.sum().backward()
    assert loss.tolist() == [0.0]
    assert scores.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_extreme_scores_and_half_precision_give_finite_losses_and_gradients():
    for dtype in (torch.float32, torch.bfloat16):
        scores = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype, requires_grad=True)
        loss = approx_ndcg_loss(scores, torch.tensor([[0.0, 1.0, 0.5]]), k=3, temperature=0.1, gain="linear")
        loss.sum().backward()
        assert loss.dtype == torch.float32
        assert torch.isfinite(loss).all() and torch.isfinite(scores.grad).all()
        assert scores.grad.dtype == dtype


def test_a_list_of_all_labels_costs_a_row_a_true_label():
    t = 200_000  # t x t pairs would be 160 GB
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(2, t, generator=random, dtype=torch.float64).requires_grad_()
    truth = torch.zeros(2, t, dtype=torch.float64)
    truth[0, :2] = truth[1, 7:10] = 1
    loss = approx_ndcg_loss(scores, truth, k=t, temperature=0.1, gain="linear")
    loss.sum().backward()
    s = scores.detach()[0]
    ranks = [0.5 + torch.sigmoid((s - s[j]) / 0.1).sum().item() for j in (0, 1)]
    expected = 1 - sum(1 / math.log2(1 + rank) for rank in ranks) / (1 + 1 / math.log2(3))
    assert loss[0].item() == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(scores.grad.sum(1), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (scores.grad[0, :2] < 0).all() and (scores.grad[0, 2:] >= 0).all()


def test_descent_on_the_loss_raises_ndcg():
    scores, relevance = lists(seed=3)
    scores = (scores * 0.1).requires_grad_()
    before = ndcg(scores.detach(), relevance, k=100)
    optimiser = torch.optim.Adam([scores], lr=0.05)
    for _ in range(100):
        optimiser.zero_grad()
        approx_ndcg_loss(scores, relevance, k=100, temperature=0.1, gain="exponential").sum().backward()
        optimiser.step()
    after = ndcg(scores.detach(), relevance, k=100)
    assert (after > before).all() and (after > 0.95).all()
