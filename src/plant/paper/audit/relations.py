"""Relations that numbers of one paper must satisfy, whatever was measured: sums, means, identities and bounds.

Each function takes the transcription and yields one `Check` a relation. All arithmetic is on printed numbers; a
relation holds if unrounded numbers exist that satisfy it and are printed like this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from scipy.stats import binomtest

from plant.paper.audit import identities
from plant.paper.audit.identities import Check
from plant.paper.values.transcription import AVERAGE, BEST, Claim, PaperCell, SamePlaces, Values, half_unit


def check_all(values: Values) -> tuple[Check, ...]:
    """Every relation of `RELATIONS`, in its order."""
    return tuple(check for function in RELATIONS.values() for check in function(values))


def gains(values: Values) -> Iterator[Check]:
    """Gain = with - without, or minus the best other row of the block; each of the three is rounded."""
    for cell in values.cells.values():
        reference = _reference(values, cell)
        if cell.gain is None or reference is None:
            continue
        expected = cell.value - reference.value
        holds = abs(cell.gain - expected) <= 2 * cell.half + reference.half
        yield Check("gain", cell.key, (cell.key, reference.key), f"{expected:+}", f"{cell.gain:+}", holds=holds)


def intervals(values: Values) -> Iterator[Check]:
    """An interval holds its own gain."""
    for cell in values.cells.values():
        if cell.gain is None or cell.low is None or cell.high is None:
            continue
        slack = cell.half + half_unit(cell.interval_decimals)
        holds = cell.low - slack <= cell.gain <= cell.high + slack
        yield Check("interval", cell.key, (cell.key,), f"in [{cell.low}, {cell.high}]", f"{cell.gain:+}", holds=holds)


def arrows(values: Values) -> Iterator[Check]:
    """An arrow stands only where the interval excludes 0 (section 3, appendix F), and points as the gain does."""
    for cell in values.cells.values():
        if not cell.arrow or cell.gain is None:
            continue
        points = (cell.gain > 0) == (cell.arrow == "up")
        if cell.low is None or cell.high is None:
            yield Check("arrow", cell.key, (cell.key,), cell.arrow, f"{cell.gain:+}", holds=points)
            continue
        expected = "no arrow" if cell.low <= 0 <= cell.high else "an arrow"
        holds = points and expected == "an arrow"
        printed = f"arrow {cell.arrow}, {cell.gain:+} [{cell.low}, {cell.high}]"
        yield Check("arrow", cell.key, (cell.key,), expected, printed, holds=holds)


def average_gains(values: Values) -> Iterator[Check]:
    """The row of average gains is the mean of its column's gains."""
    for cell in values.cells.values():
        if cell.system != AVERAGE:
            continue
        block = values.within(f"{cell.item}/{cell.dataset}").values()
        parts = [other for other in block if other.column == cell.column and other.gain is not None]
        mean = _mean([part.gain for part in parts if part.gain is not None])
        keys = (cell.key, *(part.key for part in parts))
        yield Check(
            "average", cell.key, keys, f"{mean:+}", f"{cell.value:+}", holds=abs(mean - cell.value) <= cell.half
        )


def repeated(values: Values) -> Iterator[Check]:
    """Places that describe one thing print one number."""
    for pair in values.same:
        for first, second in _common(values, pair):
            holds = abs(first.value - second.value) <= abs(first.half - second.half)
            holds &= (first.gain, first.low, first.high, first.arrow) == (
                second.gain, second.low, second.high, second.arrow,
            ) or not _same_row(first, second)  # fmt: skip
            yield Check(
                "repeated", f"{first.key}={second.key}", (first.key, second.key), _printed(first), _printed(second),
                holds=holds,
            )  # fmt: skip


def quoted_in_both_versions(values: Values) -> Iterator[Check]:
    """A quoted number does not change from one version of the paper to the next."""
    later = [cell for cell in values.cells.values() if cell.version == "llm" and cell.origin == "quoted"]
    for earlier in values.cells.values():
        if earlier.version != "awd" or earlier.origin != "quoted":
            continue
        for cell in later:
            if (cell.system, cell.dataset, cell.column) == (earlier.system, earlier.dataset, earlier.column):
                keys = (earlier.key, cell.key)
                holds = earlier.value == cell.value
                yield Check("versions", "=".join(keys), keys, str(earlier.value), str(cell.value), holds=holds)


def independent_systems(values: Values) -> Iterator[Check]:
    """Two different systems do not agree in every number."""
    for pair in values.independent:
        both = list(_common(values, pair))
        equal = sum(first.value == second.value for first, second in both)
        keys = tuple(cell.key for cells in both for cell in cells)
        yield Check(
            "independent", f"{pair.a}={pair.b}", keys, f"fewer than {len(both)} of {len(both)} equal", f"{equal} equal",
            holds=equal < len(both),
        )  # fmt: skip


def dropped_competitors(values: Values) -> Iterator[Check]:
    """A quoted system of the earlier version that the later one leaves out does not beat the best that is left."""
    for item, block in values.blocks():
        if item.version != "llm":
            continue
        quoted = [cell for cell in values.within(f"{item.item}/{block.dataset}").values() if cell.origin == "quoted"]
        kept = {cell.system for cell in quoted}
        for cell in values.cells.values():
            rivals = [other for other in quoted if other.column == cell.column]
            left_out = cell.version == "awd" and cell.origin == "quoted" and cell.system not in kept
            if not (left_out and rivals and cell.dataset == block.dataset):
                continue
            best = max(rivals, key=lambda other: other.value)
            yield Check(
                "dropped", f"{cell.key}>{best.key}", (cell.key, best.key), f"at most {best.value}", str(cell.value),
                holds=cell.value <= best.value,
            )  # fmt: skip


def bold_is_best(values: Values) -> Iterator[Check]:
    """A number in bold is the highest of its column."""
    for cell in values.cells.values():
        if cell.version != "llm" or not cell.bold or cell.system == AVERAGE:
            continue
        block = values.within(f"{cell.item}/{cell.dataset}").values()
        best = max((other for other in block if other.column == cell.column), key=lambda other: other.value)
        yield Check(
            "bold", cell.key, (cell.key, best.key), str(best.value), str(cell.value), holds=cell.value == best.value
        )


def claims(values: Values) -> Iterator[Check]:
    """What the text says follows from the cells that it speaks of."""
    for claim in values.claims:
        expected = _claimed(claim, [values.number(address) for address in claim.of])
        slack = half_unit(claim.decimals) if claim.tolerance is None else claim.tolerance
        holds = expected >= claim.says if claim.at_least else abs(expected - claim.says) <= slack
        says = f"{'at least ' if claim.at_least else ''}{claim.says} ({claim.where})"
        yield Check("claim", claim.id, claim.of, f"{float(expected):.5g}", says, holds)


ADDED_TO_FEW = ("Tr-EHR", "CoRelation", "PLM-CA", "GKI-ICD")
"""Systems of Table 11 that the earlier version's tables of rare labels do not have."""
LEAST_CHANCE = 0.001
"""Below it a count of last digits is reported."""
DIGITS: Mapping[str, Callable[[PaperCell], bool]] = {
    "ablations of Table 12": lambda cell: cell.item == "T12" and cell.gain is not None,
    "four rows added to Table 11": lambda cell: cell.item == "T11" and cell.row in ADDED_TO_FEW,
    "other quoted rows of Table 11": lambda cell: (
        cell.item == "T11" and cell.origin == "quoted" and cell.row not in ADDED_TO_FEW
    ),
    "backbones alone in Table 9": lambda cell: cell.item == "T9" and cell.system == "single_stage",
    "backbones with PLANT in Table 9": lambda cell: cell.item == "T9" and cell.system == "plant",
    "quoted rows of Table 10": lambda cell: cell.item == "T10" and cell.origin == "quoted",
    "Table 2 of the earlier version": lambda cell: cell.item == "awd-T2",
}
"""Groups of measured values, all with one decimal: which cells belong to one."""


def last_digits(values: Values) -> Iterator[Check]:
    """The last digit is 0 or 5 in a fifth of a group's values (one-sided exact binomial test, p of .001 or more)."""
    for name, belongs in DIGITS.items():
        cells = [cell for cell in values.cells.values() if belongs(cell)]
        round_ones = sum(cell.value.as_tuple().digits[-1] in {0, 5} for cell in cells)
        chance = binomtest(round_ones, len(cells), 0.2, alternative="greater").pvalue
        printed = f"{round_ones} of {len(cells)} (p = {chance:.2g})"
        keys = tuple(cell.key for cell in cells)
        expected = f"{len(cells) / 5:.1f} of {len(cells)}"
        yield Check("last-digit", name, keys, expected, printed, holds=chance >= LEAST_CHANCE)


RELATIONS: Mapping[str, Callable[[Values], Iterator[Check]]] = {
    "gain": gains,
    "interval": intervals,
    "arrow": arrows,
    "average": average_gains,
    "claim": claims,
    "repeated": repeated,
    "versions": quoted_in_both_versions,
    "independent": independent_systems,
    "dropped": dropped_competitors,
    "micro-f1": identities.micro_f1_from_parts,
    "macro-f1": identities.macro_f1_from_parts,
    "hits": identities.hits_by_depth,
    "depth": identities.precision_by_depth,
    "labels": identities.enough_labels,
    "bold": bold_is_best,
    "split": identities.splits,
    "words": identities.words_per_document,
    "per-label": identities.documents_per_label,
    "last-digit": last_digits,
}
"""Kind of relation -> function that checks it wherever it applies."""


def _reference(values: Values, cell: PaperCell) -> PaperCell | None:
    """The cell that a gain is measured from."""
    if cell.against is None:
        return None
    if cell.against != BEST:
        return values.cells[f"{cell.item}/{cell.dataset}/{cell.against}/{cell.column}"]
    block = values.within(f"{cell.item}/{cell.dataset}").values()
    return max((c for c in block if c.column == cell.column and c.row != cell.row), key=lambda c: c.value)


def _mean(numbers: list[Decimal]) -> Decimal:
    return sum(numbers, Decimal(0)) / len(numbers)


def _common(values: Values, pair: SamePlaces) -> Iterator[tuple[PaperCell, PaperCell]]:
    first, second = values.within(pair.a), values.within(pair.b)
    return ((cell, second[name]) for name, cell in first.items() if name in second)


def _same_row(first: PaperCell, second: PaperCell) -> bool:
    return first.row == second.row and first.against == second.against


def _printed(cell: PaperCell) -> str:
    """Value, gain and interval, as the paper prints them."""
    gain = "" if cell.gain is None else f" ({cell.gain:+})"
    return f"{cell.value}{gain}" + ("" if cell.low is None else f" [{cell.low}, {cell.high}]")


def _claimed(claim: Claim, numbers: list[Decimal]) -> Decimal:
    """What a claim's cells amount to."""
    if claim.rule == "difference":
        return numbers[0] - numbers[1]
    if claim.rule == "mean_difference":
        return _mean([first - second for first, second in zip(numbers[::2], numbers[1::2], strict=True)])
    if claim.rule == "ratio":
        return numbers[0] / numbers[1]
    if claim.rule == "mean":
        return _mean(numbers)
    return {"least": min, "greatest": max, "equal": max}[claim.rule](numbers)
