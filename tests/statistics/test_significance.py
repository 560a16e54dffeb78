"""The paper's two conditions."""

import numpy as np
import pytest

from plant.statistics.significance import arrow


@pytest.mark.parametrize(
    ("p", "low", "high", "expected"),
    [
        (0.01, 0.006, 0.018, "up"),  # appendix F: 14.7 (+1.2, [0.6, 1.8])
        (0.01, -0.021, -0.007, "down"),  # 70.1 (-1.4, [-2.1, -0.7])
        (0.01, 0.0, 0.006, ""),  # 73.8 (+0.3, [0.0, 0.6])
        (0.05, 0.006, 0.018, ""),
        (0.01, -0.1, 0.1, ""),
        (0.01, -0.006, 0.0, ""),
        (None, 0.006, 0.018, ""),
        (0.01, None, 0.018, ""),
        (np.nan, 0.006, 0.018, ""),
    ],
)
def test_an_arrow_needs_both_the_test_and_the_interval(p, low, high, expected: str) -> None:
    assert arrow(p, low, high, alpha=0.05) == expected
