"""When a difference gets an arrow in a table."""

from typing import Literal

import numpy as np

Arrow = Literal["up", "down", ""]


def arrow(p: float | None, low: float | None, high: float | None, *, alpha: float) -> Arrow:
    """An arrow only if the test passes (p < alpha) AND the interval from `low` to `high` excludes 0 (appendix F).

    "up" is a gain, "down" a drop. A bound of exactly 0 includes 0. A missing value gives no arrow.

    Tables use it twice: with the paper's Wilcoxon test and percentile interval, and with the approximate randomisation
    and our interval.
    """
    if p is None or low is None or high is None or np.isnan([p, low, high]).any() or not p < alpha:
        return ""
    if low > 0:
        return "up"
    return "down" if high < 0 else ""
