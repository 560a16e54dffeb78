"""The Stage 1 losses: pairwise ranking weighted by |delta nDCG@k| (Eq. 2), and its ablation, MSE.

Per list (one label l in one document), over pairs j, h in T_l with r_lj > r_lh:

    L = sum |delta nDCG@k|_jh * log2(1 + exp(-sigma (s_j - s_h))),
    |delta nDCG@k|_jh = |gain_j - gain_h| * |D_j - D_h| / max DCG@k,

where D is the discount of a position's rank by predicted score (0 beyond k). The weight carries no gradient.
(Eq. 2 writes -log2 (1 + e^..)^-1, which is the same.)

Two ways to the same number:
- `pairwise_loss_dense`: plain autograd over (..., t, t) tensors. The obvious one: the oracle.
- `pairwise_loss`: an autograd function with the gradient by hand. No t x t tensor exists on CPU, where loops are
  compiled (float32: several pairs at a time; float64: one by one, exact), nor on a GPU with Triton; elsewhere it goes
  through chunks of lists.
"""

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from plant.pretraining.ndcg import discounts, gains, ideal_dcg

CHUNK_PAIRS = 16_000_000  # pairs a chunk holds at once where there is no compiled kernel: about 0.3 GB


def pairwise_loss_dense(scores: Tensor, relevance: Tensor, *, k: int, sigma: float, gain: str) -> Tensor:
    """Eq. 2 of each list by plain autograd; memory grows with t squared.

    Args:
        scores: s (..., t).
        relevance: r (..., t) in [0, 1], -1 at positions outside the list.
        k: truncation of nDCG.
        sigma: slope.
        gain: "exponential" or "linear".

    Returns:
        (...), at least 0; 0 for a list without a pair.
    """
    weight, ordered = _pair_weights(scores.detach(), relevance, k=k, gain=gain)
    difference = scores[..., :, None] - scores[..., None, :]
    losses = weight * F.softplus(-sigma * difference) / math.log(2)
    return losses.masked_fill(~ordered, 0).sum((-2, -1))


def _pair_weights(scores: Tensor, relevance: Tensor, *, k: int, gain: str) -> tuple[Tensor, Tensor]:
    """|delta nDCG@k|_jh (..., t, t), and which pairs count: both inside, r_j > r_h."""
    g, d = gains(relevance, gain), discounts(scores, relevance, k)
    ideal = ideal_dcg(relevance, k, gain)
    scale = torch.where(ideal > 0, 1 / ideal, 0)[..., None, None]
    weight = (g[..., :, None] - g[..., None, :]).abs() * (d[..., :, None] - d[..., None, :]).abs() * scale
    ordered = (relevance[..., :, None] > relevance[..., None, :]) & (relevance[..., None, :] >= 0)
    return weight, ordered


class _Pairwise(torch.autograd.Function):
    """Loss and gradient together; only the gradient (..., t) is kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, relevance: Tensor, k: int, sigma: float, gain: str) -> Tensor:
        losses, gradient = _way(scores)(scores, relevance, k, sigma, gain)
        ctx.save_for_backward(gradient)
        return losses

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return outputs[0][..., None] * gradient, None, None, None, None


def pairwise_loss(scores: Tensor, relevance: Tensor, *, k: int, sigma: float, gain: str) -> Tensor:
    """Eq. 2 of each list, with the gradient by hand: no t x t tensor outlives the call.

    Args and Returns as `pairwise_loss_dense`.
    """
    return _Pairwise.apply(scores, relevance, k, sigma, gain)


def _way(scores: Tensor) -> Callable[..., tuple[Tensor, Tensor]]:
    """How loss and gradient are computed for scores of this kind on this device."""
    if scores.device.type == "cpu":
        return _compiled
    if scores.device.type == "cuda" and scores.dtype != torch.float64 and find_spec("triton"):
        from plant.kernels.pairwise_triton import pairwise_fused

        return pairwise_fused
    return _chunked


def _compiled(scores: Tensor, relevance: Tensor, k: int, sigma: float, gain: str) -> tuple[Tensor, Tensor]:
    if scores.dtype == torch.float64:
        from plant.kernels.pairwise import pairwise_lists as kernel

        kind = torch.float64
    else:
        from plant.kernels.pairwise_vector import pairwise_vectors as kernel

        kind = torch.float32
    shape = scores.shape
    flat, targets = (values.detach().reshape(-1, shape[-1]).to(kind).contiguous() for values in (scores, relevance))
    losses, gradient = kernel(flat.numpy(), targets.numpy(), k, float(sigma), gain == "exponential")
    return (
        torch.from_numpy(losses).to(scores.dtype).view(shape[:-1]),
        torch.from_numpy(gradient).to(scores.dtype).view(shape),
    )


def _chunked(scores: Tensor, relevance: Tensor, k: int, sigma: float, gain: str) -> tuple[Tensor, Tensor]:
    t = scores.shape[-1]
    flat, targets = scores.detach().reshape(-1, t), relevance.reshape(-1, t)
    losses, gradient = flat.new_empty(len(flat)), torch.empty_like(flat)
    rows = max(1, CHUNK_PAIRS // (t * t))
    for start in range(0, len(flat), rows):
        part = slice(start, start + rows)
        weight, ordered = _pair_weights(flat[part], targets[part], k=k, gain=gain)
        weight = weight.masked_fill(~ordered, 0).to(flat.dtype)
        x = sigma * (flat[part][:, :, None] - flat[part][:, None, :])
        losses[part] = (weight * F.softplus(-x)).sum((1, 2)) / math.log(2)
        slope = weight * torch.sigmoid(-x) * (sigma / math.log(2))  # -dL/ds_j of each pair
        gradient[part] = slope.sum(1) - slope.sum(2)
    return losses.view(scores.shape[:-1]), gradient.view(scores.shape)


def mse_loss(scores: Tensor, relevance: Tensor) -> Tensor:
    """Mean squared error between scores and relevance over each list (ablation 7).

    Args:
        scores: s (..., t).
        relevance: r (..., t) in [0, 1], -1 at positions outside the list.

    Returns:
        (...), at least 0; 0 for an empty list.
    """
    inside = relevance >= 0
    squares = (scores - relevance).square().masked_fill(~inside, 0).sum(-1)
    return squares / inside.sum(-1).clamp_min(1)
