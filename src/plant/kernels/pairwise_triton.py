"""Eq. 2 and its gradient on a GPU, fused: no t x t tensor exists.

    loss   = sum over pairs j, h with gain_j > gain_h of w_jh log(1 + exp(-x_jh))
    pull_h = sum over j of w_jh / (1 + exp(x_jh)),   pull_j = -sum over h of the same
    w_jh = (gain_j - gain_h) |D_j - D_h|,   x_jh = sigma (s_j - s_h)

Plain function: `pretraining.ranking_loss.pairwise_loss_dense`. It divides by log 2 and max DCG@k, which the caller of
this kernel does.

What it buys: memory. With all 8,929 labels and lists of 1,000 tokens the t x t tensors of one document are 36 GB each;
here a list is a few arrays of its length. Its time on a GPU is not measured (docs/speed/ranking-loss.md).

One program takes one list and goes through the upper triangle of its pairs in tiles. A tile's pulls are added along
both of its sides. Sums over h stay in registers. Sums over j go to the list's row of the pulls, which no other program
touches. So the sums have one order, and the result is the same in every run.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

TILE_J, TILE_H, WARPS = 16, 64, 2
"""A thread holds 16 pairs of a tile, all of one h, so that sums over j need no exchange between threads."""
LOG1P = tuple(
    np.polynomial.Chebyshev.interpolate(lambda e: np.log1p(e) / e, 8, domain=[0, 1])
    .convert(kind=np.polynomial.Polynomial)
    .coef.tolist()
)
"""log(1 + e) / e for e in [0, 1], constant first: relative error 4e-8."""


@triton.jit
def _kernel(  # type: ignore[no-untyped-def]
    scores, gain, discount, sizes, losses, pulls, t, sigma,
    TILE_J: tl.constexpr, TILE_H: tl.constexpr, LOG1P: tl.constexpr,
):  # fmt: skip
    """One list. Arguments as of `pairwise_fused`; pulls come in as zeros."""
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


def pairwise_fused(
    scores: Tensor, gain: Tensor, discount: Tensor, sizes: Tensor, sigma: float
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Loss (lists) in nats and pulls (lists, t) of Eq. 2 in float32, not yet divided by max DCG@k.

    Args:
        scores: float32 (lists, t) on the GPU, each list in order of falling gain.
        gain: float32 (lists, t) in [0, 1].
        discount: float32 (lists, t), by the rank of the score; 0 beyond k.
        sizes: int32 (lists), positions in each list.
        sigma: slope.
    """
    losses, pulls = scores.new_empty(len(scores)), torch.zeros_like(scores)
    if len(scores):
        with torch.cuda.device_of(scores):  # the GPU that holds them, whichever is the current one
            _kernel[(len(scores),)](
                scores, gain, discount, sizes, losses, pulls, scores.shape[-1], sigma,
                TILE_J=TILE_J, TILE_H=TILE_H, LOG1P=LOG1P, num_warps=WARPS,
            )  # fmt: skip
    return losses, pulls
