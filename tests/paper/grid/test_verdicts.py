"""Verdicts: where they turn, and that rounding never makes a discrepancy."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.paper.grid.cells import judge, tally


@pytest.mark.parametrize(("printed", "low", "high", "expected"), [
    ("57.0", 56.0, 58.0, "within"), ("57.0", 57.0, 57.0, "within"),
    ("57.0", 57.05, 60.0, "within"), ("57.0", 57.06, 60.0, "above"),  # numbers from 56.95 to 57.05 are printed as 57.0
    ("57.0", 50.0, 56.95, "within"), ("57.0", 50.0, 56.94, "below"),
    ("70.24", 70.25, 71.0, "above"), ("70.2", 70.25, 71.0, "within"), ("-0.1", -0.05, 0.3, "within"),
    ("52723", 52722.0, 52722.0, "below"), ("52723", 52723.0, 52723.0, "within"), ("52723", 52724.0, 52724.0, "above"),
])  # fmt: skip
def test_a_verdict_turns_half_a_unit_of_the_last_place_beside_the_printed_number_and_at_one_for_a_count(
    printed, low, high, expected
):
    assert judge(Decimal(printed), low, high, decimals=len(printed.partition(".")[2])) == expected


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
