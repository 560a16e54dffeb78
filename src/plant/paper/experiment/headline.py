"""The report's first sentence: does planting help, and how sure are we? The numbers decide which sentence it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plant.paper.experiment.data import ExperimentData, ResultRow
from plant.paper.systems import System, unequal_parts
from plant.paper.wording import OVER, OVER_DOCUMENTS, interval, metric_title, p_equals, percent

Outcome = Literal["higher", "lower", "undecided"]

_NETWORK: dict[Outcome | None, str] = {
    "higher": "Yes, planting helps the network",
    "lower": "No, planting hurts the network",
    "undecided": "Undecided: these data are too few to show whether planting helps the network",
    None: "Planting was not compared with a random initialisation",
}
_NO_INTERVAL = "Planting has no paired interval against a random initialisation"
_BASELINE: dict[Outcome, str] = {
    "higher": "it beats the best baseline without a network",
    "lower": "the best baseline without a network is better",
    "undecided": "against the best baseline without a network it is undecided",
}
SYNTHETIC_WARNING = (
    "This corpus is synthetic and favours the method: its codes announce themselves by indicator words, which is what "
    "relevance by token presence looks for. It shows that the pipeline works, not that planting works on real text."
)


@dataclass(frozen=True)
class PairedDifference:
    """`first` minus `second` on one metric, with our interval, in fractions."""

    metric: str
    first: System
    second: System
    first_value: float
    second_value: float
    difference: float
    low: float
    high: float
    p: float | None
    outcome: Outcome
    """higher or lower only if our interval excludes 0 and the randomisation test agrees."""

    def sentence(self) -> str:
        p = f"; randomisation p {p_equals(self.p)}" if self.p is not None else ""
        return (
            f"{metric_title(self.metric)}: {self.first.title} {percent(self.first_value)}, {self.second.title} "
            f"{percent(self.second_value)}; difference {percent(self.difference, signed=True)} "
            f"{interval(self.low, self.high)}{p}."
        )


def compare(
    rows: Mapping[tuple[str, str], ResultRow], first: System, second: System, metric: str
) -> PairedDifference | None:
    """`first` minus `second`. None if neither is the reference: then there is no paired interval.

    Args:
        rows: (system, metric) -> its results, with the difference to the reference.
    """
    ours, theirs = rows.get((first.name, metric)), rows.get((second.name, metric))
    if ours is None or theirs is None:
        return None
    for row, reference, sign in ((ours, second, 1), (theirs, first, -1)):
        if row["reference"] == reference.name and row["diff_low"] is not None and row["diff_high"] is not None:
            low, high = sorted((sign * row["diff_low"], sign * row["diff_high"]))
            return PairedDifference(
                metric, first, second, ours["value"], theirs["value"], sign * row["difference"], low, high,
                p=row["randomization_p"],
                outcome="undecided" if not row["our_arrow"] else "higher" if low > 0 else "lower",
            )  # fmt: skip
    return None


def best_of(data: ExperimentData, systems: Sequence[System], metric: str) -> list[System]:
    """The system with the highest test value on `metric`, and those with the same value."""
    rows = {system: data.rows.get((system.name, metric), {}) for system in systems}
    values = {system: row["value"] for system, row in rows.items() if row.get("value") is not None}
    return [system for system, value in values.items() if value == max(values.values())]


def leading(data: ExperimentData) -> frozenset[str]:
    """Names of the systems that keep their colour in a figure with many systems.

    They are the reference, the planted system, its controls, and the best network and baseline by the first metric of
    `paper.headline`.
    """
    roles = data.roles
    systems = [data.reference, roles.planted, roles.control, *(each for each in data.systems if each.kind == "control")]
    networks = [system for system in data.systems if system not in roles.baselines]
    for group in (roles.baselines, networks):
        systems += best_of(data, group, data.settings.paper.headline[0])[:1]
    return frozenset(system.name for system in systems if system is not None)


def write_headline(data: ExperimentData) -> dict[str, Any]:
    """The top of the report, in sentences.

    Returns:
        `answer` to the paper's question, by the first metric of `paper.headline`; the `best` system in each metric;
        `details`, one for each comparison and metric; `certainty`, what the intervals cover; and a `warning`, which is
        empty unless the corpus is synthetic.
    """
    planted, metrics = data.roles.planted, data.settings.paper.headline
    comparisons = [_comparisons(data, planted, metric) for metric in metrics] if planted else []
    details = [each.sentence() for of_metric in comparisons for each in dict.fromkeys(of_metric) if each]
    control, baseline, _ = comparisons[0] if comparisons else (None, None, None)
    return {
        "answer": _answer(data, control, baseline) if planted else "No planted system ran: there is nothing to judge.",
        "best": _best(data),
        "details": details or (["No interval between these systems was computed."] if planted else []),
        "certainty": _certainty(data),
        "warning": SYNTHETIC_WARNING if data.settings.is_stand_in(data.experiment.dataset) else "",
    }


def _comparisons(data: ExperimentData, planted: System, metric: str) -> list[PairedDifference | None]:
    """`planted` against its control, the best baseline, and the best of all; None where there is no interval."""
    best = [next(iter(best_of(data, group, metric)), None) for group in (data.roles.baselines, data.systems)]
    return [compare(data.rows, planted, rival, metric) if rival else None for rival in (data.roles.control, *best)]


def _best(data: ExperimentData) -> str:
    """The best systems, metric by metric. Equal ones are all named."""
    parts = []
    for metric in data.settings.paper.headline:
        if best := best_of(data, data.systems, metric):
            titles = " and ".join(system.title for system in best)
            parts.append(f"{titles} in {metric_title(metric)} ({percent(data.rows[best[0].name, metric]['value'])})")
    return f"Best of {len(data.systems)} systems: {', '.join(parts)}." if parts else ""


def _answer(data: ExperimentData, control: PairedDifference | None, baseline: PairedDifference | None) -> str:
    ran = control is None and data.roles.control is not None  # neither is the reference, or there is no error
    answer = _NO_INTERVAL if ran else _NETWORK[control.outcome if control else None]
    if baseline is not None:
        same = control is not None and (control.outcome == "higher") == (baseline.outcome == "higher")
        answer += f", {'and' if same else 'but'} {_BASELINE[baseline.outcome]}"
    elif data.roles.baselines:
        answer += ", and there is no paired interval against the baselines without a network"
    decided_by = control or baseline
    seeds = ", one seed" if len(data.experiment.seeds) == 1 else ""
    return answer + (f" (by {metric_title(decided_by.metric)}{seeds})." if decided_by else ".")


def _certainty(data: ExperimentData) -> str:
    settings, roles, seeds = data.settings, data.roles, len(data.experiment.seeds)
    level, alpha = f"{100 * settings.statistics.confidence:g}%", f"p < {settings.statistics.alpha:g}"
    mean = f"{OVER[seeds > 1]}, for the mean of {seeds} training seed{'s' if seeds > 1 else ''}"
    parts = [
        f"{level} intervals {mean if data.experiment.variants else OVER_DOCUMENTS}.",
        f"Decided where the interval excludes 0 and the randomisation test over documents has {alpha}.",
        "The best system and the best baseline are chosen on the same test documents, which favours them.",
    ]
    if roles.planted and roles.control:
        parts.append(
            f"{roles.control.title} has the loss and the budget of {roles.planted.title}: "
            f"{roles.planted.total_epochs} epochs in all, without early stopping."
            if roles.equal_compute
            else f"Not an equal-compute comparison: {'; '.join(unequal_parts(roles.planted, roles.control))}."
        )
    return " ".join(parts)
