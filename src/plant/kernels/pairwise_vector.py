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
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from plant.kernels.compiled import njit
from plant.kernels.polynomials import EXP2, EXPONENTIAL_GAIN, LOG1P

STRIDE = 64
"""A loop covers a multiple of so many positions: 4 registers of 16 float32, or 8 of 8."""
_PADDING_GAIN = 2.0  # above every gain
_LARGEST = 1e30  # score
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}  # scores that are not finite are kept out
_INVERSE_LN2 = 1 / math.log(2)
_A0, _A1, _A2, _A3, _A4, _A5, _A6 = np.array(EXP2, np.float32)
_B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7, _B8 = np.array(LOG1P, np.float32)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = np.array(EXPONENTIAL_GAIN, np.float32)
_MINUS_LOG2E = np.float32(-_INVERSE_LN2)
_LEAST_EXPONENT = np.float32(-126)
_HALF, _ONE, _ZERO = np.float32(0.5), np.float32(1), np.float32(0)


class _Positions(NamedTuple):
    """Positions of one list in order of relevance: all of them, or those with a discount. Padded to `STRIDE`."""

    s: np.ndarray  # float32
    gain: np.ndarray  # float32, falling
    discount: np.ndarray  # float32
    slope: np.ndarray  # float32, pulls of the last rows that were swept
    place: np.ndarray  # int64, where they stand among all


class _Work(NamedTuple):
    """Work space of one list of m positions."""

    inside: np.ndarray  # int64, where the list's positions stand in its row
    values: np.ndarray  # float32, to be ranked
    rank: np.ndarray  # int32, of each value
    order: np.ndarray  # int64, the list's positions by falling relevance
    every: _Positions
    top: _Positions
    above: np.ndarray  # int64, how many of `top` stand before a position
    lower: np.ndarray  # int64, the first position of lower relevance
    leader: np.ndarray  # int64, positions whose pairs are swept
    start: np.ndarray  # int64, where the positions begin that they make pairs with
    pull: np.ndarray  # float64, the gradient without its factors


@intrinsic
def _power_of_two(_context: Any, n: Any) -> Any:  # noqa: ARG001 (calls may name it)
    """2^n of int32 n in -126..127 as float32, put together from its bits."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (number,) = arguments
        biased = builder.add(number, number.type(127))
        return builder.bitcast(builder.shl(biased, number.type(23)), _target.get_value_type(types.float32))

    return types.float32(types.int32), generate


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _sweep(
    first: int, last: int, behind: _Positions, m: int, sigma: np.float32, work: _Work
) -> np.float32:  # fmt: skip
    """Pairs of some leaders with the m positions `behind` them: the loss in nats, without its factors.

    Pulls on the leaders go to `work.pull`, pulls on the others to `behind.slope`.
    """
    total, base2, room = _ZERO, sigma * _MINUS_LOG2E, np.uint64(_padded(m))
    s, gain, discount, slope = behind.s, behind.gain, behind.discount, behind.slope
    for leader in range(first, last):
        j = work.leader[leader]
        if work.start[leader] == m:
            continue
        s_j, gain_j, discount_j = work.every.s[j], work.every.gain[j], work.every.discount[j]
        own, loss = _ZERO, _ZERO
        for h in range(np.uint64(work.start[leader] // STRIDE * STRIDE), room):
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
        work.pull[j] -= own
        total += loss
    return total


@njit(forceinline=True)
def _sweep_all(n: int, behind: _Positions, m: int, sigma: np.float32, work: _Work) -> float:
    """`_sweep` of n leaders. Sums move to float64 so often that no float32 sum is long, however long the list."""
    total = 0.0
    for first in range(0, n, STRIDE):
        total += _sweep(first, min(first + STRIDE, n), behind, m, sigma, work)
        for h in range(m):
            work.pull[behind.place[h]] += behind.slope[h]
            behind.slope[h] = 0
    return total


@njit(forceinline=True)
def _pairs(m: int, k: int, sigma: np.float32, work: _Work) -> float:
    """All pairs of a list: the loss in nats, without its factors; pulls go to `work.pull`.

    Two positions beyond rank k have no weight, so a position beyond it is led or followed by the k of the top only.
    """
    if k >= m:
        for j in range(m):
            work.leader[j], work.start[j] = j, work.lower[j]
        return _sweep_all(m, work.every, m, sigma, work)
    tops, n = _gather_top(m, work), 0
    for j in range(m):
        if work.every.discount[j] > 0:
            work.leader[n], work.start[n] = j, work.lower[j]
            n += 1
    total = _sweep_all(n, work.every, m, sigma, work)
    n = 0
    for j in range(m):
        if work.every.discount[j] <= 0:
            work.leader[n], work.start[n] = j, work.above[work.lower[j]]
            n += 1
    return total + _sweep_all(n, work.top, tops, sigma, work)


@njit()
def _gather_top(m: int, work: _Work) -> int:
    """Copy the positions with a discount to `work.top`; how many they are."""
    every, top, tops = work.every, work.top, 0
    for j in range(m):
        work.above[j] = tops
        if every.discount[j] > 0:
            top.s[tops], top.gain[tops], top.discount[tops] = every.s[j], every.gain[j], every.discount[j]
            top.slope[tops], top.place[tops] = 0, j
            tops += 1
    work.above[m] = tops
    _pad(top, tops)
    return tops


@njit()
def _padded(m: int) -> int:
    return (m + STRIDE - 1) // STRIDE * STRIDE


@njit()
def _pad(positions: _Positions, m: int) -> None:
    """Fill up with positions that make no pair."""
    for i in range(m, _padded(m)):
        positions.s[i], positions.gain[i], positions.discount[i], positions.slope[i] = 0, _PADDING_GAIN, 0, 0


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
def _arrange(
    scores: np.ndarray, relevance: np.ndarray, m: int, k: int, exponential: bool, discounts: np.ndarray, work: _Work
) -> float:
    """Put a list of m positions into `work.every` in order of relevance; returns max DCG@k."""
    values, every = work.values, work.every
    for i in range(m):
        values[i] = relevance[work.inside[i]]
    _rank(values[:m], work.rank[:m])
    for i in range(m):
        place = work.rank[i]
        work.order[place], every.gain[place], every.place[place] = i, values[i], place
    work.lower[m - 1] = m
    for j in range(m - 2, -1, -1):
        work.lower[j] = work.lower[j + 1] if every.gain[j] == every.gain[j + 1] else j + 1
    if exponential:  # the same arithmetic for every position: equal relevance has equal gain, bit for bit
        for j in range(m):
            r = every.gain[j]
            power = ((((((_C8 * r + _C7) * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2) * r + _C1
            every.gain[j] = r * (power * r + _C0)
    for i in range(m):
        values[i] = scores[work.inside[i]]
    _rank(values[:m], work.rank[:m])
    ideal = 0.0
    for j in range(m):
        rank = work.rank[work.order[j]]
        every.s[j], every.slope[j], work.pull[j] = values[work.order[j]], 0, 0
        every.discount[j] = discounts[rank] if rank < k else 0
        ideal += every.gain[j] * discounts[j] if j < k else 0.0
    _pad(every, m)
    return ideal


@njit()
def _positions(t: int) -> _Positions:
    floats = np.empty((4, _padded(t)), np.float32)
    return _Positions(floats[0], floats[1], floats[2], floats[3], np.empty(t + 1, np.int64))


@njit()
def pairwise_vectors(
    scores: np.ndarray, relevance: np.ndarray, k: int, sigma: float, exponential: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Loss float32 (lists) and gradient float32 (lists, t) of Eq. 2.

    Args:
        scores: float32 (lists, t). A list with a score that is not finite (or beyond 1e30) has loss and gradient NaN.
        relevance: float32 (lists, t) in [0, 1], negative outside the list.
        k: truncation of nDCG.
        sigma: slope.
        exponential: gain 2^r - 1, else r.
    """
    n_lists, t = scores.shape
    losses, gradient = np.zeros(n_lists, np.float32), np.zeros((n_lists, t), np.float32)
    discounts = 1 / np.log2(np.arange(2.0, t + 2.0))
    whole = np.empty((6, t + 1), np.int64)
    work = _Work(
        whole[0], np.empty(t, np.float32), np.empty(t, np.int32), whole[1], _positions(t), _positions(t),
        whole[2], whole[3], whole[4], whole[5], np.empty(t),
    )  # fmt: skip
    for row in range(n_lists):
        m, finite = 0, True
        for position in range(t):
            if relevance[row, position] >= 0:
                work.inside[m] = position
                m += 1
                finite &= abs(scores[row, position]) < _LARGEST
        if m < 2:
            continue
        if not finite:
            losses[row] = np.nan
            for i in range(m):
                gradient[row, work.inside[i]] = np.nan
            continue
        ideal = _arrange(scores[row], relevance[row], m, k, exponential, discounts, work)
        if ideal > 0:
            losses[row] = _pairs(m, k, np.float32(sigma), work) * _INVERSE_LN2 / ideal
            for j in range(m):
                gradient[row, work.inside[work.order[j]]] = work.pull[j] * (sigma * _INVERSE_LN2 / ideal)
    return losses, gradient
