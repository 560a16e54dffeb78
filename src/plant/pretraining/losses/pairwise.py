"""The loss of Stage 1: pairwise ranking weighted by |delta nDCG@k| (Eq. 2).

Per list (one label l in one document), over pairs j, h in T_l with r_lj > r_lh:

    L = sum |delta nDCG@k|_jh * log2(1 + exp(-sigma (s_j - s_h))),
    |delta nDCG@k|_jh = |gain_j - gain_h| * |D_j - D_h| / max DCG@k,

where D is the discount of a position's rank by predicted score (0 beyond k). The weight carries no gradient.
(Eq. 2 writes -log2 (1 + e^..)^-1, which is the same.)

Two ways to the same number:
- `pairwise_loss_dense`: plain autograd over (..., t, t) tensors. It is the oracle.
- `pairwise_loss`: loss and gradient together, and no t x t tensor outlives the call. The CPU runs a compiled loop in
  float64, `kernels.pairwise`; a GPU runs the plain way, some lists at a time.
"""

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from plant.pretraining.losses._with_gradient import WithGradient
from plant.pretraining.ndcg import discounts, gains, ideal_dcg

_INVERSE_LN2 = 1 / math.log(2)
CHUNK_PAIRS = 2**24  # t x t entries that a GPU holds at once: about 1 GB


def pairwise_loss_dense(scores: Tensor, relevance: Tensor, *, k: int, sigma: float, gain: str) -> Tensor:
    """Eq. 2 of each list (...) by plain autograd; memory grows with t squared.

    Args:
        scores, relevance, k, gain: as in `plant.pretraining.ndcg.ndcg`.
        sigma: slope.
    """
    weight, ordered = _pair_weights(scores, relevance, k, gain)
    difference = scores[..., :, None] - scores[..., None, :]
    losses = weight * F.softplus(-sigma * difference) / math.log(2)
    return losses.masked_fill(~ordered, 0).sum((-2, -1))


def _pair_weights(scores: Tensor, relevance: Tensor, k: int, gain: str) -> tuple[Tensor, Tensor]:
    """|delta nDCG@k| of every entry (j, h), and whether it is a pair: both in the list and r_j > r_h; (..., t, t)."""
    g, d = gains(relevance, gain), discounts(scores.detach(), relevance, k)
    ideal = ideal_dcg(relevance, k, gain)
    scale = torch.where(ideal > 0, 1 / ideal, 0)[..., None, None]
    ordered = (relevance[..., :, None] > relevance[..., None, :]) & (relevance[..., None, :] >= 0)
    return (g[..., :, None] - g[..., None, :]).abs() * (d[..., :, None] - d[..., None, :]).abs() * scale, ordered


def pairwise_loss(scores: Tensor, relevance: Tensor, *, k: int, sigma: float, gain: str) -> Tensor:
    """`pairwise_loss_dense`, loss and gradient together: no t x t tensor outlives the call."""
    compute = _by_loop if scores.device.type == "cpu" else by_chunks
    return WithGradient.apply(scores, partial(compute, relevance=relevance, k=k, sigma=sigma, gain=gain))


def _by_loop(scores: Tensor, relevance: Tensor, k: int, sigma: float, gain: str) -> tuple[Tensor, Tensor]:
    """Loss (...) and gradient (..., t) of Eq. 2, in the dtype of the scores."""
    from plant.kernels.pairwise import pairwise_lists  # numba, which a GPU does without

    t = scores.shape[-1]
    s, r = (values.reshape(-1, t).double() for values in (scores, relevance))
    # (lists, t) in order of relevance: a position makes pairs with those behind it
    order = r.argsort(dim=-1, descending=True, stable=True)
    lead, g, d = (array.gather(1, order).contiguous() for array in (s, gains(r, gain), discounts(s, r, k)))
    sizes = (r >= 0).sum(1, dtype=torch.int32)
    arrays = pairwise_lists(*(array.numpy() for array in (lead, g, d, sizes)), float(sigma))
    losses, pulls = (torch.from_numpy(array) for array in arrays)
    ideal = ideal_dcg(r, k, gain)
    scale = torch.where(ideal > 0, 1 / ideal, 0)
    gradient = torch.zeros_like(s).scatter_(1, order, pulls * (scale * (sigma * _INVERSE_LN2))[:, None])
    losses *= scale * _INVERSE_LN2
    return losses.to(scores).view(scores.shape[:-1]), gradient.to(scores).view(scores.shape)


def by_chunks(scores: Tensor, relevance: Tensor, k: int, sigma: float, gain: str) -> tuple[Tensor, Tensor]:
    """The same by the formula of `pairwise_loss_dense` and its derivative, some lists at a time, in fp32 or wider."""
    t = scores.shape[-1]
    s = scores.reshape(-1, t).to(torch.promote_types(scores.dtype, torch.float32))
    r, losses, gradient = relevance.reshape(-1, t), s.new_zeros(len(s)), torch.zeros_like(s)
    size = max(1, CHUNK_PAIRS // max(1, t * t))
    for start in range(0, len(s), size):
        part = slice(start, start + size)
        weight, ordered = _pair_weights(s[part], r[part], k, gain)
        margin = sigma * (s[part, :, None] - s[part, None, :])  # (lists, t, t)
        losses[part] = (weight * F.softplus(-margin)).masked_fill(~ordered, 0).sum((-2, -1)) * _INVERSE_LN2
        pulls = (weight * torch.sigmoid(-margin)).masked_fill(~ordered, 0) * (sigma * _INVERSE_LN2)
        gradient[part] = pulls.sum(-2) - pulls.sum(-1)  # s_h is pushed down, s_j up
    return losses.to(scores).view(scores.shape[:-1]), gradient.to(scores).view(scores.shape)
