"""The signed-rank test against the enumeration of all signs."""

from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.statistics.wilcoxon import signed_rank


def mean_ranks(values: list[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


def enumerated(differences: list[float]) -> tuple[float, float]:
    """W = min(W+, W-), and P(min(W+, W-) <= W) over all 2^n equally likely signs."""
    kept = [d for d in differences if d != 0]
    ranks = mean_ranks([abs(d) for d in kept])
    total = sum(ranks)
    plus = sum(rank for d, rank in zip(kept, ranks, strict=True) if d > 0)
    observed = min(plus, total - plus)
    sums = [
        sum(rank for sign, rank in zip(signs, ranks, strict=True) if sign)
        for signs in product((0, 1), repeat=len(kept))
    ]
    return observed, sum(min(each, total - each) <= observed + 1e-9 for each in sums) / len(sums)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
@settings(max_examples=20)
def test_small_samples_with_ties_and_zeros_are_exact(differences: list[int]) -> None:
    first = np.linspace(0, 1, len(differences))
    result = signed_rank(first, first + np.array(differences) / 8)
    if any(differences):
        statistic, p = enumerated([float(d) for d in differences])
        assert result.statistic == pytest.approx(statistic)
        assert result.p == pytest.approx(min(1.0, p))
        assert result.n == sum(d != 0 for d in differences)
    else:
        assert result == (0.0, 0, 1.0)


def test_large_samples_follow_the_normal_approximation_of_the_appendix() -> None:
    rng = np.random.default_rng(0)
    differences = rng.normal(0.1, 1, size=400)
    result = signed_rank(np.zeros(400), differences)
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1.0
    w = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    z = (w - 400 * 401 / 4) / np.sqrt(400 * 401 * 801 / 24)
    assert result.statistic == w
    assert result.p == pytest.approx(2 * NormalDist().cdf(z), rel=1e-6)


def test_pairs_without_a_value_are_left_out() -> None:
    first, second = np.array([1.0, 2.0, np.nan, 4.0]), np.array([2.0, 4.0, 1.0, 7.0])
    assert signed_rank(first, second) == signed_rank(first[[0, 1, 3]], second[[0, 1, 3]])
    assert np.isnan(signed_rank(np.array([np.nan]), np.array([1.0])).p)


def test_rounding_neither_makes_a_difference_nor_breaks_a_tie() -> None:
    first = np.full(5, 0.1 + 0.2)
    assert signed_rank(first, np.full(5, 0.3)) == (0.0, 0, 1.0)
    noise = 1e-16 * np.arange(4)
    assert signed_rank(np.zeros(4), np.array([0.1, -0.1, 0.1, 0.2]) + noise).statistic == 2
