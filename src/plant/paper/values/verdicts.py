"""How a number of ours compares with a number of the paper: within, above, below, or not attempted."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Literal, get_args

from plant.paper.values.transcription import half_unit

Verdict = Literal["within", "above", "below", "not attempted"]
"""above: our number is above the paper's, which is a discrepancy too."""


def judge(printed: Decimal, low: float, high: float, *, decimals: int) -> Verdict:
    """Whether a number that the paper prints is in our interval.

    Many numbers round to the printed one. It is enough if our interval holds one of them; the audit treats the paper's
    own sums in the same way. For a count both ends of the interval are the count.

    Args:
        low: lower end of our interval, in the paper's unit.
        high: upper end.

    >>> [judge(Decimal("57.0"), *ours, decimals=1) for ours in ((56.9, 57.4), (57.1, 57.4), (56.1, 56.9), (57.04, 58))]
    ['within', 'above', 'below', 'within']
    """
    half = half_unit(decimals)
    if Decimal(repr(low)) > printed + half:
        return "above"
    return "below" if Decimal(repr(high)) < printed - half else "within"


def tally(verdicts: Iterable[str]) -> str:
    """How many verdicts there are of each kind, as one line.

    >>> tally(["within", "above", "within", "not attempted"])
    '4 cells: 2 within, 1 above, 0 below, 1 not attempted'
    """
    given = list(verdicts)
    counts = ", ".join(f"{given.count(verdict)} {verdict}" for verdict in get_args(Verdict))
    return f"{len(given)} cell{'' if len(given) == 1 else 's'}: {counts}"
