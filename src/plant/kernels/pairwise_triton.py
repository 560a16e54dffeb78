"""Eq. 2 and its gradient on a GPU, fused: no t x t tensor exists (docs/speed/ranking-loss.md counts the operations).

Positions are put in order of relevance, as in `pairwise_vector`; one program takes one list and goes through the upper
triangle of its pairs in tiles. A tile's pulls are added along both of its sides: over h they stay in registers, over j
they go to the list's row of the gradient, which no other program touches. So the sums have one order, and the result is
the same at every run.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from plant.kernels.polynomials import LOG1P
from plant.pretraining.ndcg import discounts, gains, ideal_dcg

TILE_J, TILE_H, WARPS = 16, 64, 2
"""A thread holds 16 pairs of a tile, all of one h, so that sums over j need no exchange between threads."""
_INVERSE_LN2 = 1 / math.log(2)


@triton.jit
def _kernel(  # type: ignore[no-untyped-def]
    scores, gain, discount, sizes, losses, pulls, t, sigma,
    TILE_J: tl.constexpr, TILE_H: tl.constexpr, LOG1P: tl.constexpr,
):  # fmt: skip
    """One list; arrays (lists, t) in order of relevance, `sizes` positions of each; pulls come in as zeros.

    The loss is in nats, and neither it nor the pulls are divided by max DCG@k yet.
    """
    row = tl.program_id(0).to(tl.int64)
    m = tl.load(sizes + row)
    base = row * t
    LOG2E: tl.constexpr = 1.4426950408889634
    total = tl.zeros((TILE_J, TILE_H), tl.float32)
    for j0 in range(0, m, TILE_J):
        j = j0 + tl.arange(0, TILE_J)
        s_j = tl.load(scores + base + j, mask=j < m, other=0.0)
        gain_j = tl.load(gain + base + j, mask=j < m, other=0.0)  # below every gain: padding leads no pair
        discount_j = tl.load(discount + base + j, mask=j < m, other=0.0)
        own = tl.zeros((TILE_J, TILE_H), tl.float32)
        for h0 in range(j0 // TILE_H * TILE_H, m, TILE_H):
            h = h0 + tl.arange(0, TILE_H)
            s_h = tl.load(scores + base + h, mask=h < m, other=0.0)
            gain_h = tl.load(gain + base + h, mask=h < m, other=2.0)  # above every gain: padding follows in no pair
            discount_h = tl.load(discount + base + h, mask=h < m, other=0.0)
            weight = tl.maximum(gain_j[:, None] - gain_h[None, :], 0.0)
            weight *= tl.abs(discount_j[:, None] - discount_h[None, :])
            lead = s_j[:, None] - s_h[None, :]
            e = tl.exp2(-tl.abs(lead) * (sigma * LOG2E))
            pull = weight * tl.where(lead >= 0, e, 1.0) / (1.0 + e)
            log1p = LOG1P[8]
            for i in tl.static_range(7, -1, -1):
                log1p = log1p * e + LOG1P[i]
            total += weight * (log1p * e + sigma * tl.maximum(-lead, 0.0))
            own += pull
            before = tl.load(pulls + base + h, mask=h < m, other=0.0)
            tl.store(pulls + base + h, before + tl.sum(pull, 0), mask=h < m)
            tl.debug_barrier()  # the next tile may read what another thread has written
        before = tl.load(pulls + base + j, mask=j < m, other=0.0)
        tl.store(pulls + base + j, before - tl.sum(own, 1), mask=j < m)
        tl.debug_barrier()
    tl.store(losses + row, tl.sum(total))


def pairwise_fused(scores: Tensor, relevance: Tensor, k: int, sigma: float, gain: str) -> tuple[Tensor, Tensor]:
    """Loss (...) and gradient (..., t) of Eq. 2 in float32, returned in the dtype of the scores.

    Args:
        scores: s (..., t) on the GPU.
        relevance: r (..., t) in [0, 1], -1 at positions outside the list.
        k: truncation of nDCG.
        sigma: slope.
        gain: "exponential" or "linear".
    """
    t = scores.shape[-1]
    s, r = scores.detach().reshape(-1, t).float(), relevance.detach().reshape(-1, t).float()
    order = r.argsort(dim=-1, descending=True, stable=True)
    arrays = [array.gather(1, order).contiguous() for array in (s, gains(r, gain), discounts(s, r, k).float())]
    sizes = (r >= 0).sum(1, dtype=torch.int32)
    losses, pulls = s.new_empty(len(s)), torch.zeros_like(s)
    if len(s):
        with torch.cuda.device_of(s):  # the GPU that holds them, whichever is the current one
            _kernel[(len(s),)](
                *arrays, sizes, losses, pulls, t, float(sigma),
                TILE_J=TILE_J, TILE_H=TILE_H, LOG1P=LOG1P, num_warps=WARPS,
            )  # fmt: skip
    ideal = ideal_dcg(r, k, gain)
    scale = torch.where(ideal > 0, 1 / ideal, 0)
    gradient = torch.zeros_like(s).scatter_(1, order, pulls * (scale * (sigma * _INVERSE_LN2))[:, None])
    losses *= scale * _INVERSE_LN2
    return losses.to(scores.dtype).view(scores.shape[:-1]), gradient.to(scores.dtype).view(scores.shape)
