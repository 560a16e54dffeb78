"""Verdicts: where they turn, and that rounding never makes a discrepancy."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.paper.values.verdicts import judge, tally


@pytest.mark.parametrize(("low", "high", "expected"), [
    (56.0, 58.0, "within"), (57.0, 57.0, "within"),
    (57.05, 60.0, "within"), (57.06, 60.0, "above"),  # 57.0 is what any number from 56.95 to 57.05 is printed as
    (50.0, 56.95, "within"), (50.0, 56.94, "below"),
])  # fmt: skip
def test_a_verdict_turns_half_a_unit_beside_the_printed_number(low, high, expected):
    assert judge(Decimal("57.0"), low, high, decimals=1) == expected


def test_half_a_unit_is_that_of_the_last_printed_place():
    assert judge(Decimal("70.24"), 70.25, 71.0, decimals=2) == "above"
    assert judge(Decimal("70.2"), 70.25, 71.0, decimals=1) == "within"
    assert judge(Decimal("-0.1"), -0.05, 0.3, decimals=1) == "within"


@pytest.mark.parametrize(("ours", "expected"), [(52722.0, "below"), (52723.0, "within"), (52724.0, "above")])
def test_a_count_is_within_only_if_it_is_the_count(ours, expected):
    assert judge(Decimal(52723), ours, ours, decimals=0) == expected


@given(
    true=st.decimals(-100, 100, places=5), decimals=st.integers(0, 3),
    below=st.floats(0, 5), above=st.floats(0, 5), shift=st.floats(0.001, 50),
)  # fmt: skip
def test_an_interval_that_holds_the_unrounded_number_is_within_and_one_far_off_is_not(
    true, decimals, below, above, shift
):
    printed, number = round(true, decimals), float(true)
    assert judge(printed, number - below, number + above, decimals=decimals) == "within"
    away = 10.0**-decimals + shift
    assert judge(printed, number + away, number + away + above, decimals=decimals) == "above"
    assert judge(printed, number - away - below, number - away, decimals=decimals) == "below"


def test_a_tally_names_every_verdict_even_at_zero():
    assert tally([]) == "0 cells: 0 within, 0 above, 0 below, 0 not attempted"
    assert tally(["below"]) == "1 cell: 0 within, 0 above, 1 below, 0 not attempted"
