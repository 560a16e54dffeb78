"""Relations between the numbers of a paper that hold whatever was measured: sums, means, repetitions, claims.

Each relation is a function from the transcription to a list of results: (place, keys of its cells, what the other cells
give, what is printed, whether the two agree). The first line of its docstring stands on the audit's page. A relation
holds if there are unrounded numbers that satisfy it and are printed as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from scipy.stats import binomtest

from plant.paper.audit import identities
from plant.paper.audit.identities import Result, keys
from plant.paper.values.transcription import AVERAGE, BEST, PaperCell, PaperValues, Rule, SamePlaces, half_unit


@dataclass(frozen=True)
class Check:
    """One relation at one place, and whether the printed numbers satisfy it."""

    relation: str
    """Name of the relation in `RELATIONS`."""
    place: str
    cells: tuple[str, ...]
    expected: str
    printed: str
    holds: bool

    @property
    def key(self) -> str:
        """Unique."""
        return f"{self.relation}:{self.place}"


def check_all(values: PaperValues) -> tuple[Check, ...]:
    """Every relation of `RELATIONS` at every place, in that order."""
    return tuple(Check(name, *result) for name, relation in RELATIONS.items() for result in relation(values))


def gains(values: PaperValues) -> Iterator[Result]:
    """Gain = with - without, or minus the best other row of the block; each of the three is rounded."""
    for cell in values.cells.values():
        if cell.gain is None or cell.against is None:
            continue
        others = [other for other in _column(values, cell) if other.row != cell.row]
        best = cell.against == BEST
        reference = max(others, key=_value) if best else next(c for c in others if c.row == cell.against)
        expected = cell.value - reference.value
        holds = abs(cell.gain - expected) <= 2 * cell.half + reference.half
        yield cell.key, keys(cell, reference), f"{expected:+}", f"{cell.gain:+}", holds


def intervals(values: PaperValues) -> Iterator[Result]:
    """An interval holds its own gain."""
    for cell in values.cells.values():
        if cell.gain is not None and cell.low is not None and cell.high is not None:
            slack = cell.half + half_unit(cell.interval_decimals)
            holds = cell.low - slack <= cell.gain <= cell.high + slack
            yield cell.key, (cell.key,), f"in [{cell.low}, {cell.high}]", f"{cell.gain:+}", holds


def arrows(values: PaperValues) -> Iterator[Result]:
    """An arrow stands only where the interval excludes 0 (section 3, appendix F), and points as the gain does."""
    for cell in values.cells.values():
        if not cell.arrow or cell.gain is None:
            continue
        points = (cell.gain > 0) == (cell.arrow == "up")
        if cell.low is None or cell.high is None:
            yield cell.key, (cell.key,), cell.arrow, f"{cell.gain:+}", points
            continue
        excludes = not cell.low <= 0 <= cell.high
        printed = f"arrow {cell.arrow}, {cell.gain:+} [{cell.low}, {cell.high}]"
        yield cell.key, (cell.key,), "an arrow" if excludes else "no arrow", printed, points and excludes


def average_gains(values: PaperValues) -> Iterator[Result]:
    """The row of average gains is the mean of its column's gains."""
    for cell in values.cells.values():
        if cell.system == AVERAGE:
            parts = [other for other in _column(values, cell) if other.gain is not None]
            mean = _mean([part.gain for part in parts if part.gain is not None])
            yield cell.key, keys(cell, *parts), f"{mean:+}", f"{cell.value:+}", abs(mean - cell.value) <= cell.half


def repeated(values: PaperValues) -> Iterator[Result]:
    """Places that describe one thing print one number."""
    for pair in values.same:
        for both in _common(values, pair):
            first, second = both
            holds = abs(first.value - second.value) <= abs(first.half - second.half)
            if (first.row, first.against) == (second.row, second.against):
                gains_of = [(cell.gain, cell.low, cell.high, cell.arrow) for cell in both]
                holds &= gains_of[0] == gains_of[1]
            yield "=".join(keys(*both)), keys(*both), _printed(first), _printed(second), holds


def quoted_in_both_versions(values: PaperValues) -> Iterator[Result]:
    """A quoted number does not change from one version of the paper to the next."""
    quoted = [cell for cell in values.cells.values() if cell.origin == "quoted"]
    for earlier in quoted:
        for cell in quoted:
            same = (cell.system, cell.dataset, cell.column) == (earlier.system, earlier.dataset, earlier.column)
            if same and (earlier.version, cell.version) == ("awd", "llm"):
                both = keys(earlier, cell)
                yield "=".join(both), both, str(earlier.value), str(cell.value), earlier.value == cell.value


def independent_systems(values: PaperValues) -> Iterator[Result]:
    """Two different systems do not agree in every number."""
    for pair in values.independent:
        both = list(_common(values, pair))
        equal, n = sum(first.value == second.value for first, second in both), len(both)
        cells = keys(*(cell for cells in both for cell in cells))
        yield f"{pair.a}={pair.b}", cells, f"fewer than {n} of {n} equal", f"{equal} equal", equal < n


def dropped_competitors(values: PaperValues) -> Iterator[Result]:
    """A quoted system of the earlier version that the later one leaves out does not beat the best that is left."""
    earlier = [cell for cell in values.cells.values() if cell.version == "awd" and cell.origin == "quoted"]
    for item, block in values.blocks():
        if item.version != "llm":
            continue
        quoted = [cell for cell in values.within(f"{item.item}/{block.dataset}").values() if cell.origin == "quoted"]
        kept = {cell.system for cell in quoted}
        for cell in earlier:
            rivals = [other for other in quoted if other.column == cell.column]
            if rivals and cell.dataset == block.dataset and cell.system not in kept:
                best = max(rivals, key=_value)
                both = keys(cell, best)
                yield ">".join(both), both, f"at most {best.value}", str(cell.value), cell.value <= best.value


def bold_is_best(values: PaperValues) -> Iterator[Result]:
    """A number in bold is the highest of its column."""
    for cell in values.cells.values():
        if cell.version == "llm" and cell.bold and cell.system != AVERAGE:
            best = max(_column(values, cell), key=_value)
            yield cell.key, keys(cell, best), str(best.value), str(cell.value), cell.value == best.value


CLAIM_RULES: Mapping[Rule, Callable[[list[Decimal]], Decimal]] = {
    "difference": lambda numbers: numbers[0] - numbers[1],
    "mean_difference": lambda numbers: _mean([a - b for a, b in zip(numbers[::2], numbers[1::2], strict=True)]),
    "ratio": lambda numbers: numbers[0] / numbers[1],
    "mean": lambda numbers: _mean(numbers),
    "least": min,
    "greatest": max,
    "equal": max,
}
"""What the numbers of a claim's cells give together."""


def claims(values: PaperValues) -> Iterator[Result]:
    """What the text says follows from the cells that it speaks of."""
    for claim in values.claims:
        expected = CLAIM_RULES[claim.rule]([values.number(address) for address in claim.of])
        slack = half_unit(claim.decimals) if claim.tolerance is None else claim.tolerance
        holds = expected >= claim.says if claim.at_least else abs(expected - claim.says) <= slack
        says = f"{'at least ' if claim.at_least else ''}{claim.says} ({claim.where})"
        yield claim.id, claim.of, f"{float(expected):.5g}", says, holds


ADDED_TO_FEW = ("Tr-EHR", "CoRelation", "PLM-CA", "GKI-ICD")
"""Systems of Table 11 that the earlier version's tables of rare labels do not have."""
LEAST_CHANCE = 0.001
"""A count of last digits that is less likely than this is reported."""
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
"""Groups of measured values with one decimal, and which cells belong to them."""


def last_digits(values: PaperValues) -> Iterator[Result]:
    """The last digit is 0 or 5 in a fifth of a group's values (one-sided exact binomial test, p of .001 or more)."""
    for name, belongs in DIGITS.items():
        cells = [cell for cell in values.cells.values() if belongs(cell)]
        round_ones, n = sum(cell.value.as_tuple().digits[-1] in {0, 5} for cell in cells), len(cells)
        chance = binomtest(round_ones, n, 0.2, alternative="greater").pvalue
        printed = f"{round_ones} of {n} (p = {chance:.2g})"
        yield name, keys(*cells), f"{n / 5:.1f} of {n}", printed, chance >= LEAST_CHANCE


RELATIONS: Mapping[str, Callable[[PaperValues], Iterator[Result]]] = {
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
"""Name of a relation -> the function that checks it at every place where it applies."""


def _column(values: PaperValues, cell: PaperCell) -> list[PaperCell]:
    """All cells of the same block and column, the cell itself among them."""
    block = values.within(f"{cell.item}/{cell.dataset}").values()
    return [other for other in block if other.column == cell.column]


def _value(cell: PaperCell) -> Decimal:
    return cell.value


def _mean(numbers: list[Decimal]) -> Decimal:
    return sum(numbers, Decimal(0)) / len(numbers)


def _common(values: PaperValues, pair: SamePlaces) -> Iterator[tuple[PaperCell, PaperCell]]:
    first, second = values.within(pair.a), values.within(pair.b)
    return ((cell, second[name]) for name, cell in first.items() if name in second)


def _printed(cell: PaperCell) -> str:
    """Value, gain and interval, as the paper prints them."""
    gain = "" if cell.gain is None else f" ({cell.gain:+})"
    return f"{cell.value}{gain}" + ("" if cell.low is None else f" [{cell.low}, {cell.high}]")
