"""approxNDCG: 1 - nDCG@k with smooth ranks, in place of Eq. 2 (Qin, Liu & Li 2010, section 4; choice C23).

Per list, with gain g_j, temperature tau and the logistic function:

    rank_j = 1 + sum over i != j of logistic((s_i - s_j) / tau)
    L = 1 - sum_j g_j * cut_j / log2(1 + rank_j) / max DCG@k

cut_j = logistic((k + 1/2 - rank_j) / tau) in lists longer than k, and 1 in the others. As tau goes to 0, L goes to
1 - nDCG@k of `plant.pretraining.ndcg` wherever no two scores are equal.

The gradient is computed by hand, through chunks of pairs. Only positions with a gain need a rank, so a list of all
labels with a handful of true ones costs a handful of rows, not |L| of them.
"""

import math
from functools import partial

import torch
from torch import Tensor

from plant.pretraining.losses._with_gradient import WithGradient
from plant.pretraining.ndcg import gains, ideal_dcg

CHUNK_PAIRS = 4_000_000  # pairs that are in memory at once: about 0.1 GB


def approx_ndcg_loss(scores: Tensor, relevance: Tensor, *, k: int, temperature: float, gain: str) -> Tensor:
    """1 - approximate nDCG@k of each list; no t x t tensor outlives the call.

    Args:
        scores, relevance, k, gain: as in `plant.pretraining.ndcg.ndcg`.
        temperature: tau > 0; smaller is closer to nDCG and flatter away from ties.

    Returns:
        (...) in fp32 or wider, below 1, lower is better, and at least 0 in lists of up to k positions; 0 for a list
        without a positive relevance, where nDCG is not defined.
    """
    compute = partial(_loss_and_gradient, relevance=relevance, k=k, temperature=temperature, gain=gain)
    return WithGradient.apply(scores, compute)


def _loss_and_gradient(
    scores: Tensor, relevance: Tensor, k: int, temperature: float, gain: str
) -> tuple[Tensor, Tensor]:
    t = scores.shape[-1]
    wide = torch.promote_types(scores.dtype, torch.float32)
    flat, targets = scores.to(wide).reshape(-1, t), relevance.reshape(-1, t)
    losses, gradient = flat.new_zeros(len(flat)), torch.zeros_like(flat)
    ranked = int((targets > 0).sum(-1).max()) if targets.numel() else 0  # rows j of the longest list
    lists = max(1, CHUNK_PAIRS // max(1, ranked * t))
    for start in range(0, len(flat) if ranked else 0, lists):
        part = slice(start, start + lists)
        losses[part] = _add_gradient(flat[part], targets[part].to(wide), gradient[part], k, temperature, gain)
    return losses.view(scores.shape[:-1]), gradient.view(scores.shape).to(scores.dtype)


def _add_gradient(s: Tensor, r: Tensor, gradient: Tensor, k: int, temperature: float, gain: str) -> Tensor:
    """Losses (lists) of a few lists (lists, t); their gradient is added to `gradient` (lists, t).

    With a_j = dL/drank_j and w_ij = dlogistic/ds_i of the pair, dL/ds_i = sum_j a_j w_ij - a_i sum_j w_ij. The pair
    (j, j) adds and takes away the same.
    """
    g, inside = gains(r, gain), r >= 0
    ideal = ideal_dcg(r, k, gain)[:, None]
    g = torch.where(ideal > 0, g / ideal.clamp_min(torch.finfo(s.dtype).tiny), 0)
    whole = inside.sum(-1, keepdim=True) <= k
    order = g.argsort(dim=-1, descending=True, stable=True)[:, : int((g > 0).sum(-1).max())]  # rows with a gain
    total = s.new_zeros(len(s))
    step = max(1, CHUNK_PAIRS // max(1, s.numel()))
    for first in range(0, order.shape[1], step):
        j = order[:, first : first + step]
        own, weight = s.gather(1, j), g.gather(1, j)
        above = torch.sigmoid((s[:, None, :] - own[:, :, None]) / temperature)  # (lists, j, t)
        above = above.masked_fill_(~inside[:, None, :], 0)
        rank = 0.5 + above.sum(-1)  # the pair (j, j) is 1/2
        value, slope = _discount(rank, whole, k, temperature)
        total += (weight * value).sum(-1)
        pull = -weight * slope  # a_j, at least 0
        slopes = above.mul_(1 - above).mul_((pull / temperature)[:, :, None])  # a_j w_ij
        gradient += slopes.sum(1)
        gradient.scatter_add_(1, j, -slopes.sum(-1))
    return torch.where(ideal[:, 0] > 0, 1 - total, 0)


def _discount(rank: Tensor, whole: Tensor, k: int, temperature: float) -> tuple[Tensor, Tensor]:
    """cut / log2(1 + rank) and its derivative with respect to the rank."""
    log = torch.log1p(rank)
    value, slope = math.log(2) / log, -math.log(2) / ((1 + rank) * log * log)
    cut = torch.sigmoid((k + 0.5 - rank) / temperature).masked_fill(whole, 1)
    return value * cut, slope * cut - value * cut * (1 - cut) / temperature
