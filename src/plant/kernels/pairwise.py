"""Eq. 2 and its gradient, list by list and pair by pair in float64: no t x t tensor exists.

The oracle of `pairwise_vector`, which does the same in float32 several pairs at a time.
"""

import math

import numpy as np

from plant.kernels.compiled import njit

LN2 = math.log(2)
INVERSE_LN2 = 1 / LN2


@njit()
def pairwise_lists(
    scores: np.ndarray, relevance: np.ndarray, k: int, sigma: float, exponential: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Loss (lists) and gradient (lists, t) of Eq. 2.

    Args:
        scores: float64 (lists, t).
        relevance: float64 (lists, t), negative outside the list.
        k: truncation of nDCG.
        sigma: slope.
        exponential: gain 2^r - 1, else r.
    """
    n_lists, t = scores.shape
    losses = np.zeros(n_lists)
    gradient = np.zeros((n_lists, t))
    for row in range(n_lists):
        inside = np.flatnonzero(relevance[row] >= 0)
        m = len(inside)
        if m < 2:
            continue
        s, r = scores[row][inside], relevance[row][inside]
        gain = np.empty(m)
        discount = np.zeros(m)
        for j in range(m):
            gain[j] = math.expm1(r[j] * LN2) if exponential else r[j]
        by_score = np.argsort(-s, kind="mergesort")
        by_gain = np.argsort(-r, kind="mergesort")
        ideal = 0.0
        for rank in range(min(k, m)):
            weight = 1 / math.log2(rank + 2.0)
            discount[by_score[rank]] = weight
            ideal += gain[by_gain[rank]] * weight
        if ideal <= 0:
            continue
        # positions in order of relevance: every later one with a lower relevance makes a pair
        s, gain, discount, r = s[by_gain], gain[by_gain], discount[by_gain], r[by_gain]
        slope = np.zeros(m)
        total = 0.0
        for j in range(m - 1):
            own = 0.0
            for h in range(j + 1, m):
                if r[h] == r[j]:
                    continue
                weight = (gain[j] - gain[h]) * abs(discount[j] - discount[h])
                if weight == 0.0:
                    continue
                x = sigma * (s[j] - s[h])
                e = math.exp(-abs(x))
                total += weight * (math.log1p(e) + max(-x, 0.0))
                pull = weight * (e if x >= 0 else 1.0) / (1.0 + e)
                own += pull
                slope[h] += pull
            slope[j] -= own
        losses[row] = total * INVERSE_LN2 / ideal
        scale = sigma * INVERSE_LN2 / ideal
        for j in range(m):
            gradient[row, inside[by_gain[j]]] = slope[j] * scale
    return losses, gradient
