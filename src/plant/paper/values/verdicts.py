"""What a number of ours says about a number of the paper: within, above, below, or not attempted."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Literal, get_args

from plant.paper.values.transcription import half_unit

Verdict = Literal["within", "above", "below", "not attempted"]
"""Of our number: above means that ours is above the paper's. Above is a discrepancy too."""


def judge(printed: Decimal, low: float, high: float, *, decimals: int) -> Verdict:
    """Whether a number that the paper prints lies in our interval.

    A printed number stands for every number that rounds to it, so the interval needs to reach only one of these; the
    audit of the paper is as lenient with its own sums. A count of ours is its own interval.

    Args:
        printed: the paper's number.
        low: lower end of our interval, in the paper's unit.
        high: upper end.
        decimals: of the printed number.

    >>> [judge(Decimal("57.0"), *ours, decimals=1) for ours in ((56.9, 57.4), (57.1, 57.4), (56.1, 56.9), (57.04, 58))]
    ['within', 'above', 'below', 'within']
    """
    half = half_unit(decimals)
    if Decimal(repr(low)) > printed + half:
        return "above"
    return "below" if Decimal(repr(high)) < printed - half else "within"


def tally(verdicts: Iterable[str]) -> str:
    """One line that counts verdicts.

    >>> tally(["within", "above", "within", "not attempted"])
    '4 cells: 2 within, 1 above, 0 below, 1 not attempted'
    """
    given = list(verdicts)
    counts = ", ".join(f"{given.count(verdict)} {verdict}" for verdict in get_args(Verdict))
    return f"{len(given)} cell{'' if len(given) == 1 else 's'}: {counts}"
