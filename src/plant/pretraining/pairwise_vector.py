"""Eq. 2 and its gradient in float32, several pairs at a time: the fast twin of `pairwise_kernel`.

Positions are put in order of relevance, so that position j makes pairs with what stands behind it, one stretch of
memory. The loop over that stretch has no branch and calls nothing: the compiler makes it work on 8 or 16 pairs at once.
What is not a pair gets weight 0 by itself: equal relevance has equal gain, and max(gain_j - gain_h, 0) is 0 for what
stands before j and for the padding at the end, whose gain is higher than any. exp and log1p are polynomials (numba
brings no vectorised ones), with exp(-|x|) in (0, 1] so that nothing overflows whatever the scores.

Accuracy (tested against float64): the gradient to 1e-5 of the list's largest, the loss to 1e-5 of its value. The last
bits depend on how many pairs the processor takes at a time, so they may differ between machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from plant.compiled import njit

STRIDE = 64
"""A loop covers a multiple of so many positions: 4 registers of 16 float32, or 8 of 8."""
_PADDING_GAIN = 2.0  # above every gain
_LARGEST = 1e30  # score
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}  # scores that are not finite are kept out
_INVERSE_LN2 = 1 / math.log(2)


def _fit(function: Callable[[np.ndarray], np.ndarray], degree: int, low: float, high: float) -> tuple[np.float32, ...]:
    """Coefficients, constant first, of the interpolation at Chebyshev's points."""
    fitted = np.polynomial.Chebyshev.interpolate(function, degree, domain=[low, high])
    return tuple(fitted.convert(kind=np.polynomial.Polynomial).coef.astype(np.float32))


# relative errors: 2^f within 3e-9; log1p(e) = e * polynomial within 4e-8, both before rounding to float32
_A0, _A1, _A2, _A3, _A4, _A5, _A6 = _fit(np.exp2, 6, -0.5, 0.5)
_B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7, _B8 = _fit(lambda e: np.log1p(e) / e, 8, 0.0, 1.0)
_MINUS_LOG2E = np.float32(-_INVERSE_LN2)
_LEAST_EXPONENT = np.float32(-126)
_HALF, _ONE, _ZERO = np.float32(0.5), np.float32(1), np.float32(0)


@intrinsic
def _power_of_two(_context: Any, n: Any) -> Any:  # noqa: ARG001 (calls may name it)
    """2^n of int32 n in -126..127 as float32, put together from its bits."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (number,) = arguments
        biased = builder.add(number, number.type(127))
        return builder.bitcast(builder.shl(biased, number.type(23)), _target.get_value_type(types.float32))

    return types.float32(types.int32), generate


@njit(fastmath=_FAST, error_model="numpy")
def _stretch(
    s: np.ndarray, gain: np.ndarray, discount: np.ndarray, slope: np.ndarray,
    s_j: np.float32, gain_j: np.float32, discount_j: np.float32, sigma: np.float32,
) -> tuple[np.float32, np.float32]:  # fmt: skip
    """One position against a stretch of positions, all float32.

    Adds each pair's pull to `slope` of the stretch; returns the sum of the pulls and the loss (nats, not yet divided).
    """
    own, loss, base2 = _ZERO, _ZERO, sigma * _MINUS_LOG2E
    for h in range(len(s)):
        weight = max(gain_j - gain[h], _ZERO) * abs(discount_j - discount[h])
        lead = s_j - s[h]
        # e = exp(-sigma |lead|) = 2^n 2^f, n whole, f in [-1/2, 1/2]
        exponent = max(abs(lead) * base2, _LEAST_EXPONENT)
        n = np.int32(exponent - _HALF)
        f = exponent - np.float32(n)
        e = (((((_A6 * f + _A5) * f + _A4) * f + _A3) * f + _A2) * f + _A1) * f + _A0
        e *= _power_of_two(n)
        pull = weight * (e if lead >= _ZERO else _ONE) / (_ONE + e)
        own += pull
        slope[h] += pull
        log1p = (((((((_B8 * e + _B7) * e + _B6) * e + _B5) * e + _B4) * e + _B3) * e + _B2) * e + _B1) * e + _B0
        loss += weight * (e * log1p + sigma * max(-lead, _ZERO))
    return own, loss


class _Work(NamedTuple):
    """Work space of one list; float32 arrays are padded to a multiple of `STRIDE`."""

    place: np.ndarray  # int64, positions inside the list
    values: np.ndarray  # float32, to be ranked
    rank: np.ndarray  # int32, of each value
    order: np.ndarray  # int64, positions inside the list by falling relevance
    ranked: np.ndarray  # float64, discount of each position inside the list
    run_end: np.ndarray  # int64, first position of lower relevance; from here on all in order of relevance
    pull: np.ndarray  # float64, the gradient without its factors
    s: np.ndarray
    gain: np.ndarray
    discount: np.ndarray
    slope: np.ndarray
    top: np.ndarray  # int64, positions with a discount, for lists longer than k
    above: np.ndarray  # int64, how many of those stand before a position
    top_s: np.ndarray
    top_gain: np.ndarray
    top_discount: np.ndarray
    top_slope: np.ndarray


@njit()
def pairwise_vectors(
    scores: np.ndarray, relevance: np.ndarray, k: int, sigma: float, exponential: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Loss float32 (lists) and gradient float32 (lists, t) of Eq. 2.

    Args:
        scores: float32 (lists, t). A list with a score that is not finite (or beyond 1e30) has loss and gradient NaN.
        relevance: float32 (lists, t), negative outside the list.
        k: truncation of nDCG.
        sigma: slope.
        exponential: gain 2^r - 1, else r.
    """
    n_lists, t = scores.shape
    losses, gradient = np.zeros(n_lists, np.float32), np.zeros((n_lists, t), np.float32)
    discounts = 1 / np.log2(np.arange(2.0, t + 2.0))
    long, padded = t + 1, _padded(t)
    floats = np.empty((8, padded), np.float32)
    work = _Work(
        np.empty(long, np.int64), np.empty(long, np.float32), np.empty(long, np.int32), np.empty(long, np.int64),
        np.empty(long), np.empty(long, np.int64), np.empty(long), floats[0], floats[1], floats[2], floats[3],
        np.empty(long, np.int64), np.empty(long, np.int64), floats[4], floats[5], floats[6], floats[7],
    )  # fmt: skip
    for row in range(n_lists):
        m, finite = 0, True
        for position in range(t):
            if relevance[row, position] >= 0:
                work.place[m] = position
                m += 1
                finite &= abs(scores[row, position]) < _LARGEST
        if m < 2:
            continue
        if not finite:
            losses[row] = np.nan
            for j in range(m):
                gradient[row, work.place[j]] = np.nan
            continue
        ideal = _arrange(scores[row], relevance[row], m, k, exponential, discounts, work)
        if ideal > 0:
            losses[row] = _pairs(m, k, np.float32(sigma), work) * _INVERSE_LN2 / ideal
            for j in range(m):
                gradient[row, work.place[work.order[j]]] = work.pull[j] * (sigma * _INVERSE_LN2 / ideal)
    return losses, gradient


@njit()
def _padded(m: int) -> int:
    return (m + STRIDE - 1) // STRIDE * STRIDE


@njit()
def _arrange(
    scores: np.ndarray, relevance: np.ndarray, m: int, k: int, exponential: bool, discounts: np.ndarray,
    work: _Work,
) -> float:  # fmt: skip
    """Fill the arrays of a list of m positions, in order of relevance; returns max DCG@k."""
    for i in range(m):
        work.values[i] = scores[work.place[i]]
    _rank(work.values[:m], work.rank[:m])
    for i in range(m):
        work.ranked[i] = discounts[work.rank[i]] if work.rank[i] < k else 0.0
        work.values[i] = relevance[work.place[i]]
    _rank(work.values[:m], work.rank[:m])
    for i in range(m):
        work.order[work.rank[i]] = i
    ideal, gain, before = 0.0, 0.0, -1.0
    for j in range(m):
        i = work.order[j]
        r = np.float64(work.values[i])
        if r != before:  # repeats of a token share one relevance
            gain, before = (2.0**r - 1 if exponential else r), r
        ideal += gain * discounts[j] if j < k else 0.0
        work.s[j] = scores[work.place[i]]
        work.gain[j], work.discount[j], work.slope[j], work.pull[j] = gain, work.ranked[i], 0, 0
    for j in range(m, _padded(m)):
        work.s[j], work.gain[j], work.discount[j], work.slope[j] = 0, _PADDING_GAIN, 0, 0
    end = m
    for j in range(m - 1, -1, -1):
        if j + 1 < m and work.values[work.order[j]] != work.values[work.order[j + 1]]:
            end = j + 1
        work.run_end[j] = end
    return ideal


@njit()
def _rank(values: np.ndarray, rank: np.ndarray) -> None:
    """Rank of each value from 0, highest first, equal ones by position: how many stand before it.

    m^2 / 2 comparisons, 16 at a time, are faster here than a sort of m keys.
    """
    rank[:] = 0
    for i in range(len(values)):
        value, later, rank_later = values[i], values[i + 1 :], rank[i + 1 :]
        before = np.int32(0)
        for j in range(len(later)):
            higher = np.int32(later[j] > value)
            before = np.int32(before + higher)
            rank_later[j] += np.int32(1) - higher
        rank[i] += before


@njit()
def _pairs(m: int, k: int, sigma: np.float32, work: _Work) -> float:
    """Sum over the pairs of a list, in nats and not yet divided by max DCG@k; pulls go to `work.pull`.

    Two positions beyond rank k have no weight: beyond k only the k positions of the top are looked at.
    """
    tops = _gather_top(m, work) if k < m else 0
    room, top_room = _padded(m), _padded(tops)
    total = 0.0
    for j in range(m):
        start = work.run_end[j]
        if start == m:
            break
        if k >= m or work.discount[j] > 0:
            part = slice(start // STRIDE * STRIDE, room)
            own, loss = _stretch(
                work.s[part], work.gain[part], work.discount[part], work.slope[part],
                work.s[j], work.gain[j], work.discount[j], sigma,
            )  # fmt: skip
        else:
            part = slice(work.above[start] // STRIDE * STRIDE, top_room)
            own, loss = _stretch(
                work.top_s[part], work.top_gain[part], work.top_discount[part], work.top_slope[part],
                work.s[j], work.gain[j], work.discount[j], sigma,
            )  # fmt: skip
        work.pull[j] -= own
        total += loss
        if j % STRIDE == STRIDE - 1:
            _collect(m, tops, work)
    _collect(m, tops, work)
    return total


@njit()
def _collect(m: int, tops: int, work: _Work) -> None:
    """Move the sums of some pulls to float64: no float32 sum has more than `STRIDE` terms, however long the list."""
    for i in range(m):
        work.pull[i] += work.slope[i]
        work.slope[i] = 0
    for i in range(tops):
        work.pull[work.top[i]] += work.top_slope[i]
        work.top_slope[i] = 0


@njit()
def _gather_top(m: int, work: _Work) -> int:
    """Copy the positions with a discount to arrays of their own; how many they are."""
    tops = 0
    for j in range(m):
        work.above[j] = tops
        if work.discount[j] > 0:
            work.top[tops] = j
            work.top_s[tops], work.top_gain[tops] = work.s[j], work.gain[j]
            work.top_discount[tops], work.top_slope[tops] = work.discount[j], 0
            tops += 1
    for i in range(tops, _padded(tops)):
        work.top_s[i], work.top_gain[i], work.top_discount[i], work.top_slope[i] = 0, _PADDING_GAIN, 0, 0
    return tops
