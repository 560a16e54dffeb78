"""Effects of factors over the cells of a design, and the correction for many tests."""

import math
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import stats

from plant.statistics.factors import factor_effects, holm


def closed_testing(p: np.ndarray) -> np.ndarray:
    """Holm's procedure by its definition: a hypothesis falls when every set of hypotheses that holds it falls."""
    places = range(len(p))
    sets = chain.from_iterable(combinations(places, size) for size in range(1, len(p) + 1))
    found = np.zeros(len(p))
    for members in sets:
        bound = min(1.0, len(members) * min(p[place] for place in members))
        for place in members:
            found[place] = max(found[place], bound)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_closed_testing_by_bonferroni(seed: int) -> None:
    p = np.random.default_rng(seed).random(6) ** 3
    p[2] = p[4]  # a tie
    assert holm(p) == pytest.approx(closed_testing(p))


def test_holm_leaves_out_tests_that_were_not_made() -> None:
    corrected = holm([0.01, float("nan"), 0.2])
    assert corrected[[0, 2]] == pytest.approx([0.02, 0.2])
    assert np.isnan(corrected[1])
    assert len(holm([])) == 0


def test_a_balanced_design_gives_differences_of_means() -> None:
    cells = [dict(zip("abc", levels, strict=True)) for levels in product(("low", "high"), repeat=3)]
    rng = np.random.default_rng(0)
    effects, errors = rng.normal(size=8), rng.random(8) + 0.1
    found = {each.factor: each for each in factor_effects(cells, effects, errors, 0.95)}
    for name in "abc":
        high = np.array([cell[name] == "high" for cell in cells])
        assert found[name].change == pytest.approx(effects[high].mean() - effects[~high].mean())
        assert found[name].error >= np.sqrt((errors**2).sum()) / 4 - 1e-12
        assert (found[name].level, found[name].baseline) == ("high", "low")


def test_one_factor_at_a_time_is_compared_with_the_centre() -> None:
    cells = [
        {"passes": 8, "sigma": 1},
        {"passes": 2, "sigma": 1},
        {"passes": 32, "sigma": 1},
        {"passes": 8, "sigma": 4},
    ]
    found = factor_effects(cells, np.array([0.10, 0.02, 0.15, 0.09]), np.full(4, 0.01), 0.95)
    changes = {(each.factor, each.level): each.change for each in found}
    assert changes == pytest.approx({("passes", 2): -0.08, ("passes", 32): 0.05, ("sigma", 4): -0.01})


def test_factors_that_cannot_be_told_apart_have_no_row() -> None:
    cells = [{"a": 0, "b": 0}, {"a": 1, "b": 1}]
    assert factor_effects(cells, np.array([0.0, 1.0]), np.full(2, 0.1), 0.95) == []
    assert factor_effects([{"a": 0}, {"a": 0}], np.zeros(2), np.full(2, 0.1), 0.95) == []


def test_without_residuals_the_error_is_that_of_the_cells() -> None:
    cells = [dict(zip("ab", levels, strict=True)) for levels in product((0, 1), repeat=2)]
    errors = np.array([0.1, 0.2, 0.3, 0.4])
    for each in factor_effects(cells, np.array([0.0, 1.0, 2.0, 3.0]), errors, 0.95):  # exactly additive
        assert each.error == pytest.approx(np.sqrt((errors**2).sum()) / 2)
        assert math.isinf(each.degrees)
        assert each.p == pytest.approx(2 * stats.norm.sf(each.change / each.error))


def test_lack_of_fit_widens_the_interval_as_in_a_regression() -> None:
    x, y = np.array([0, 0, 0, 1, 1, 1]), np.array([0.1, 0.5, 0.2, 0.9, 0.4, 1.3])
    (found,) = factor_effects([{"a": int(level)} for level in x], y, np.full(6, 1e-6), 0.9)
    oracle = stats.linregress(x, y)
    assert (found.change, found.error, found.p) == pytest.approx((oracle.slope, oracle.stderr, oracle.pvalue))
    assert found.degrees == 4
    assert found.high - found.change == pytest.approx(oracle.stderr * stats.t.ppf(0.95, 4))


def test_the_interval_of_a_change_holds_its_level() -> None:
    rng = np.random.default_rng(1)
    cells = [dict(zip("abc", levels, strict=True)) for levels in product((0, 1), repeat=3)]
    errors, trials = np.tile([0.1, 0.2, 0.1, 0.3], 2), 1000
    truth = np.array([0.3 + 0.5 * cell["a"] - 0.2 * cell["b"] for cell in cells])
    held = 0
    for _ in range(trials):
        found = {each.factor: each for each in factor_effects(cells, truth + rng.normal(0, errors), errors, 0.9)}
        held += found["a"].low <= 0.5 <= found["a"].high
    assert 0.88 <= held / trials <= 0.97  # the larger of two errors holds at least its level
