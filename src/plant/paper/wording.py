"""How numbers and names are printed, in one place for tables, figures and the report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeGuard

from plant.statistics.significance import Arrow

ARROWS: dict[Arrow, str] = {"up": "▲", "down": "▼", "": ""}
MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"
ONE_SEED = "documents, one seed"
"""What the interval of one training run covers. Another run may be outside it."""
OVER = {
    True: "over training seeds and test documents together",
    False: "over test documents alone (one seed: another training run may lie outside)",
}
"""What the intervals of an experiment cover: with several seeds (True), and with one."""
OVER_DOCUMENTS = "over test documents alone"
"""What they cover if no system is trained by seeds."""

_TITLES = {
    "map": "mAP",
    "macro_f1_present": "macro-F1 (present)",
    "macro_f1_all": "macro-F1 (all)",
    "macro_f1_caml": "macro-F1 (CAML)",
    "rare_f1": "rare F1",
    "rare_ap": "rare AP",
    "brier_skill": "Brier skill",
    "log_loss": "log-loss (nats)",
    "calibration_error": "calibration error",
}
_CUTS = {"natural": " at p = .5", "micro": " at its threshold"}
_WORDS = {
    "f1": "F1", "auc": "AUC", "ap": "AP", "map": "mAP", "p": "P", "r": "R", "ndcg": "nDCG", "psp": "PSP", "rp": "RP",
}  # fmt: skip


def metric_title(name: str) -> str:
    """A metric's name as the field prints it. An unknown name stays as it is.

    >>> [metric_title(name) for name in ("macro_auc", "ndcg@5/few", "micro_f1@natural", "micro_f1@sloped")]
    ['macro-AUC', 'nDCG@5, few labels', 'micro-F1 at p = .5', 'micro-F1, sloped threshold']
    """
    if "/" in name:
        base, _, group = name.partition("/")
        return f"{metric_title(base)}, {group} labels"
    base, _, rule = name.rpartition("@")
    if base and not rule.isdigit():
        return f"{metric_title(base)}{_CUTS.get(rule, f', {rule} threshold')}"
    if name in _TITLES:
        return _TITLES[name]
    if at_k := re.fullmatch(r"([a-z]+)@(\d+)", name):
        return f"{_WORDS.get(at_k[1], at_k[1])}@{at_k[2]}"
    if average := re.fullmatch(r"(micro|macro)_([a-z0-9]+)", name):
        return f"{average[1]}-{_WORDS.get(average[2], average[2])}"
    return name


def metric_titles(names: Iterable[str]) -> str:
    """Metrics as part of a sentence."""
    return ", ".join(map(metric_title, names))


def is_number(value: float | None) -> TypeGuard[float]:
    """False for None, NaN and infinities."""
    return value is not None and math.isfinite(value)


def fixed(value: float | Decimal | None, places: int, *, signed: bool = False, comma: str = "") -> str:
    """A number with a fixed number of decimals; never "-0.0". `comma`: between thousands.

    >>> fixed(57.04, 1), fixed(-0.02, 1, signed=True), fixed(1.26, 1, signed=True), fixed(52722, 0, comma=",")
    ('57.0', '0.0', '+1.3', '52,722')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{abs(value):{comma}.{places}f}"
    if not any(digit in text for digit in "123456789"):
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def percent(value: float | None, *, signed: bool = False) -> str:
    """A fraction x100 with one decimal, as in the paper.

    >>> percent(0.1468), percent(0.012, signed=True), percent(-0.0001, signed=True), percent(None)
    ('14.7', '+1.2', '0.0', '–')
    """
    return fixed(None if value is None else 100 * value, 1, signed=signed)


def significant(value: float | None) -> str:
    """Three significant digits, for numbers of unknown size.

    >>> significant(0.00123456), significant(0.2), significant(None)
    ('0.00123', '0.2', '–')
    """
    return f"{value:.3g}" if is_number(value) else MISSING


def interval(
    low: float | Decimal | None, high: float | Decimal | None, places: int = 1, *, scale: int = 100, comma: str = ""
) -> str:
    """Bounds x100, or on another scale; empty without them. `comma`: between thousands.

    >>> interval(-0.0001, 0.006), interval(0.123, 1.0, 2, scale=1), interval(None, 0.1), interval(math.nan, 0.1)
    ('[0.0, 0.6]', '[0.12, 1.00]', '', '')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{', '.join(fixed(scale * bound, places, comma=comma) for bound in (low, high))}]"


def interval_over(seeds: int, *, trained: bool = True) -> str:
    """What our interval of one number covers.

    Args:
        seeds: training runs; of a difference, those of the side that has more.
        trained: whether a side has a network, so that another seed gives another number.

    >>> interval_over(3), interval_over(1), interval_over(1, trained=False)
    ('seeds and documents', 'documents, one seed', 'documents')
    """
    return "seeds and documents" if seeds > 1 else ONE_SEED if trained else "documents"


def p_value(p: float | None) -> str:
    """Three decimals.

    >>> p_value(0.04321), p_value(0.0000001), p_value(None)
    ('0.043', '< 0.001', '–')
    """
    if not is_number(p):
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float | None) -> str:
    """A p-value after "p": `= 0.020` or `< 0.001`."""
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _in_unit(value: float | None, *forms: tuple[float, float, str]) -> str:
    """A number in the first unit whose upper end is above it. A form is (upper end, size of the unit, text)."""
    if not is_number(value):
        return MISSING
    size, form = next((size, form) for end, size, form in forms if value < end)
    return form.format(value / size)


def seconds(value: float | None) -> str:
    """A duration.

    >>> seconds(3.21), seconds(150), seconds(9000)
    ('3.2 s', '2.5 min', '2.5 h')
    """
    return _in_unit(value, (60, 1, "{:.1f} s"), (3600, 60, "{:.1f} min"), (math.inf, 3600, "{:.1f} h"))


def megabytes(value: float | None) -> str:
    """Memory.

    >>> megabytes(702.4), megabytes(15_300), megabytes(None)
    ('702 MB', '15.3 GB', '–')
    """
    return _in_unit(value, (1000, 1, "{:,.0f} MB"), (math.inf, 1000, "{:.1f} GB"))


def energy(joules: float | None) -> str:
    """Energy.

    >>> energy(900), energy(36_000), energy(7.2e6), energy(None)
    ('0.25 Wh', '10 Wh', '2 kWh', '–')
    """
    return _in_unit(joules, (3.6e6, 3600, "{:,.3g} Wh"), (math.inf, 3.6e6, "{:,.3g} kWh"))


def weights(values: Sequence[float]) -> str:
    """Numbers of weights: one number, or the smallest and the largest.

    >>> weights([356_673.0]), weights([1e6, 2.5e6, 1e6]), weights([])
    ('0.357 M', '1 to 2.5 M', '–')
    """
    if not values:
        return MISSING
    low, high = min(values) / 1e6, max(values) / 1e6
    return f"{high:,.3g} M" if low == high else f"{low:,.3g} to {high:,.3g} M"
