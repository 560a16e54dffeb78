"""The report's first sentence: does planting help, and how sure are we? Written by the numbers, either way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from plant.ground.settings import Experiment, Mimic3, Settings
from plant.paper.systems import Roles, System, find_roles, list_systems, total_epochs
from plant.paper.wording import OVER, interval, metric_title, p_equals, percent

Outcome = Literal["higher", "lower", "undecided"]

_NETWORK: dict[Outcome | None, str] = {
    "higher": "Yes, planting helps the network",
    "lower": "No, planting hurts the network",
    "undecided": "Undecided: planting makes no difference to the network that these data could show",
    None: "Planting was not compared with a random initialisation",
}
_BAR: dict[Outcome, str] = {
    "higher": "it beats the best baseline without a network",
    "lower": "the best baseline without a network is better",
    "undecided": "against the best baseline without a network it is undecided",
}
SYNTHETIC_WARNING = (
    "This corpus is synthetic and favours the method: its codes announce themselves by indicator words, which is what "
    "relevance by token presence looks for. It shows that the pipeline works, not that planting works on real text."
)


@dataclass(frozen=True)
class Comparison:
    """`first` minus `second` on one metric, with our interval."""

    metric: str
    first: System
    second: System
    first_value: float
    second_value: float
    difference: float
    low: float
    high: float
    p: float | None
    verdict: Outcome
    """higher or lower only if our interval excludes 0 and the randomisation test agrees."""

    def sentence(self) -> str:
        """One line with both values, the difference, the interval and the p-value."""
        p = f"; randomisation p {p_equals(self.p)}" if self.p is not None else ""
        return (
            f"{metric_title(self.metric)}: {self.first.title} {percent(self.first_value)}, {self.second.title} "
            f"{percent(self.second_value)}; difference {percent(self.difference, signed=True)} "
            f"{interval(self.low, self.high)}{p}."
        )


@dataclass(frozen=True)
class Headline:
    """What stands on top of the report."""

    answer: str
    """One sentence; decided by the first metric of `paper.headline`."""
    best: str
    """One sentence: the best system in each metric of `paper.headline`, with its value."""
    details: tuple[str, ...]
    """One sentence a comparison and metric."""
    certainty: str
    """What the intervals cover and what they do not."""
    warning: str
    """Non-empty for a synthetic corpus."""


def compare(results: pl.DataFrame, first: System, second: System, metric: str) -> Comparison | None:
    """`first` minus `second`; None unless one of them is the reference, as only then a paired interval exists.

    Args:
        results: as `read_results` returns it: differences are system minus reference.
    """
    rows = {row["system"]: row for row in results.filter(metric=metric).iter_rows(named=True)}
    if first.name not in rows or second.name not in rows:
        return None
    if rows[first.name]["reference"] == second.name:
        row, sign = rows[first.name], 1
    elif rows[second.name]["reference"] == first.name:
        row, sign = rows[second.name], -1
    else:
        return None
    if row["diff_low"] is None or row["diff_high"] is None:
        return None
    low, high = sorted((sign * row["diff_low"], sign * row["diff_high"]))
    verdict: Outcome = "undecided"
    if row["our_arrow"]:
        verdict = "higher" if low > 0 else "lower"
    return Comparison(
        metric, first, second, rows[first.name]["value"], rows[second.name]["value"],
        sign * row["difference"], low, high, row["randomization_p"], verdict,
    )  # fmt: skip


def best_of(results: pl.DataFrame, systems: Sequence[System], metric: str) -> tuple[System, ...]:
    """The system of highest test value on `metric`, and those that have the same value; empty without values."""
    values = dict(results.filter(metric=metric).drop_nulls("value").select("system", "value").iter_rows())
    known = [system for system in systems if system.name in values]
    highest = max((values[system.name] for system in known), default=None)
    return tuple(system for system in known if values[system.name] == highest)


def leading(results: pl.DataFrame, *, settings: Settings, experiment: Experiment) -> frozenset[str]:
    """Names of the systems that a figure of many shows in colour, by the first metric of `paper.headline`.

    They are the reference, the planted system, its controls, the best network and the best baseline.
    """
    roles, systems = find_roles(settings, experiment), list_systems(settings, experiment)
    named = [systems[-1], roles.planted, roles.control, *(system for system in systems if system.kind == "control")]
    for metric in settings.paper.headline[:1]:
        for group in (roles.baselines, [system for system in systems if system not in roles.baselines]):
            named += best_of(results, group, metric)[:1]
    return frozenset(system.name for system in named if system is not None)


def write_headline(results: pl.DataFrame, *, settings: Settings, experiment: Experiment) -> Headline:
    """Answer from the intervals of the planted system against its random control and the best baseline.

    Args:
        results: as `read_results` returns it.
    """
    roles = find_roles(settings, experiment)
    warning = SYNTHETIC_WARNING if is_synthetic(settings, experiment) else ""
    certainty = _certainty(settings, experiment, roles)
    systems = list_systems(settings, experiment)
    best = _best(results, systems, settings.paper.headline)
    if roles.planted is None:
        return Headline("No planted system ran: there is nothing to judge.", best, (), certainty, warning)
    compared = [_compared(results, roles.planted, roles, systems, metric) for metric in settings.paper.headline]
    details = tuple(one.sentence() for three in compared for one in dict.fromkeys(three) if one)
    network, bar, _ = compared[0] if compared else (None, None, None)
    answer = _answer(network, bar, has_baselines=bool(roles.baselines), one_seed=len(experiment.seeds) == 1)
    return Headline(answer, best, details or ("No interval between these systems was computed.",), certainty, warning)


def is_synthetic(settings: Settings, experiment: Experiment) -> bool:
    """True for the generated corpus."""
    dataset = settings.datasets[experiment.dataset]
    return isinstance(dataset, Mimic3) and dataset.generate is not None


def _compared(
    results: pl.DataFrame, planted: System, roles: Roles, systems: Sequence[System], metric: str
) -> tuple[Comparison | None, ...]:
    """`planted` against its control, the best baseline and the best of all; None where there is no interval."""
    best = [next(iter(best_of(results, group, metric)), None) for group in (roles.baselines, systems)]
    return tuple(compare(results, planted, rival, metric) if rival else None for rival in (roles.control, *best))


def _best(results: pl.DataFrame, systems: Sequence[System], metrics: Sequence[str]) -> str:
    """The systems that are best, named metric by metric; equal ones are all named."""
    values = {(system, metric): value for system, metric, value in results.select("system", "metric", "value").rows()}
    leaders = [(metric, best_of(results, systems, metric)) for metric in metrics]
    parts = [
        f"{' and '.join(system.title for system in best)} in {metric_title(metric)} "
        f"({percent(values[best[0].name, metric])})"
        for metric, best in leaders if best
    ]  # fmt: skip
    return f"Best of {len(systems)} systems: {', '.join(parts)}." if parts else ""


def _answer(network: Comparison | None, bar: Comparison | None, *, has_baselines: bool, one_seed: bool) -> str:
    first = _NETWORK[network.verdict if network else None]
    if bar is not None:
        same = network is not None and (network.verdict == "higher") == (bar.verdict == "higher")
        second = f", {'and' if same else 'but'} {_BAR[bar.verdict]}"
    else:
        second = ", and there is no paired interval against the baselines without a network" if has_baselines else ""
    decided_by = network or bar
    seeds = ", one seed" if one_seed else ""
    return f"{first}{second}" + (f" (by {metric_title(decided_by.metric)}{seeds})." if decided_by else ".")


def _certainty(settings: Settings, experiment: Experiment, roles: Roles) -> str:
    level = f"{100 * settings.statistics.confidence:g}%"
    seeds = len(experiment.seeds)
    parts = [
        (f"{level} intervals {OVER[seeds > 1]}, for the mean of {seeds} training seed{'s' if seeds > 1 else ''}."),
        (
            "Decided where the interval excludes 0 and the randomisation test over documents has "
            f"p < {settings.statistics.alpha:g}."
        ),
        "The best system and the best baseline are chosen on the same test documents, which favours them.",
    ]
    if roles.planted and roles.control:
        ours, theirs = (total_epochs(settings, experiment, system.name) for system in (roles.planted, roles.control))
        parts.append(
            f"{roles.control.title} has the same loss and the same budget of {ours} epochs as both stages together; "
            "no early stopping."
            if roles.equal_compute
            else f"Not an equal-compute comparison: {roles.planted.title} has {ours} epochs in all, "
            f"{roles.control.title} {theirs}, or their "
            "losses differ, or early stopping may end one of them sooner."
        )
    return " ".join(parts)
