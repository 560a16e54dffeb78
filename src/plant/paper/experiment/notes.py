"""The tables' footnotes: which procedure, which threshold, which macro-F1, how many seeds."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

import polars as pl

from plant.ground.settings import Experiment, Settings
from plant.paper.inputs import COMBINED
from plant.paper.systems import System, budget_notes
from plant.paper.wording import MINUS, OVER, metric_title

_CONVENTIONS = {
    "macro_f1_present": "macro-F1 (present): mean F1 over the labels that occur in the test split.",
    "macro_f1_all": "macro-F1 (all): mean F1 over all labels; absent ones count 0 (the paper's appendix E).",
    "macro_f1_caml": "macro-F1 (CAML): harmonic mean of macro precision and macro recall over all labels.",
}
PROBABILITY_NOTES = (
    (
        "Brier skill: the share of the squared error of saying 0 everywhere that the probabilities take away; negative "
        "is worse than that."
    ),
    (
        "Calibration error (15 bins) and log-loss are means over the pairs of a document and a label that have a "
        "score. Most pairs are negative, so both are small numbers: compare them down the column."
    ),
    (
        "A dash stands for scores that are no log-odds. Stage 3 with the channel network alone calibrates a network "
        "(choice C25)."
    ),
)


def ablation_notes(
    results: pl.DataFrame,
    metrics: pl.DataFrame,
    *,
    systems: tuple[System, ...],
    settings: Settings,
    experiment: Experiment,
    lower_bounds: Sequence[str],
    combined_weight: float | None,
) -> tuple[str, ...]:
    """What the reader of the ablation table has to know, only what its columns call for."""
    columns = settings.paper.metrics
    measured = results.get_column("metric").unique().to_list()
    bounded = [metric_title(metric) for metric in columns if any(fnmatch(metric, bound) for bound in lower_bounds)]
    without = [metric_title(metric) for metric in columns if metric not in measured]
    notes = [
        _procedure(systems[-1], settings),
        _seeds(metrics, systems),
        _combined(combined_weight, systems),
        *budget_notes(settings, experiment, systems, systems[-1].name),
        _aggregate(results, columns),
        _threshold(metrics, settings) if any("f1" in metric for metric in columns) else "",
        *(text for metric, text in _CONVENTIONS.items() if metric in columns),
        f"Rare labels have 1 to {settings.evaluation.rare_below - 1} training documents."
        if any(metric.startswith("rare_") for metric in columns) else "",
        f"Lower bounds, as only the top {settings.evaluation.top} scores of each document were kept: "
        f"{', '.join(bounded)}." if bounded else "",
        f"No interval was asked for: {', '.join(without)}." if without else "",
    ]  # fmt: skip
    return tuple(note for note in notes if note)


def interval_notes(*, reference: System, settings: Settings, seeds: int) -> tuple[str, ...]:
    """Ours and the paper's procedure, side by side.

    Args:
        reference: that differences are to.
        settings: section `statistics` is read.
        seeds: training runs of a system with a network.
    """
    statistics = settings.statistics
    return (
        (
            f"Differences are to {reference.title}. Ours: difference of the seed means, "
            f"{100 * statistics.confidence:g}% interval {OVER[seeds > 1]} that is right for label-macro metrics too "
            "(choice C11), and a two-sided approximate randomisation test that swaps whole documents "
            f"({statistics.resamples} times). Arrow: the interval excludes 0 and p < {statistics.alpha:g}."
        ),
        (
            "Paper's: mean and percentile interval of the resampled differences over test documents alone, Wilcoxon "
            "signed-rank test and arrow (appendix F). p marked * comes from the resamples of an aggregate metric and "
            "is anti-conservative (choice C19)."
        ),
        "p-values are not corrected for the number of comparisons.",
    )


def _procedure(reference: System, settings: Settings) -> str:
    statistics = settings.statistics
    return (
        f"(gain, [low, high]) is the paper's procedure (appendix F): mean and {100 * statistics.confidence:g}% "
        f"percentile interval of B = {statistics.resamples} paired bootstrap differences to {reference.title}, over "
        f"test documents alone. An arrow stands only where the Wilcoxon test (p < {statistics.alpha:g}) and the "
        "interval (excludes 0) agree; both are decided on unrounded numbers. Bold: best in the column."
    )


def _seeds(metrics: pl.DataFrame, systems: tuple[System, ...]) -> str:
    networks = [system.name for system in systems if system.kind != "no network"]
    seeds = metrics.filter(pl.col("system").is_in(networks)).get_column("seed").n_unique()
    if not seeds:
        return "No system with a network ran: each has one fit."
    return f"Values are means over {seeds} training seed{'s' if seeds > 1 else ''}."


def _combined(weight: float | None, systems: tuple[System, ...]) -> str:
    """Why the sum of two baselines has the row of one of them; empty where both count."""
    if weight not in (0, 1):
        return ""
    titles = {system.name: system.title for system in systems}
    kept, lost = ("tfidf_linear", "mig_log_odds") if weight == 1 else ("mig_log_odds", "tfidf_linear")
    return (
        f"{titles[COMBINED]} is {titles[kept]} alone here and repeats its row: the weight of {titles[lost]} that was "
        "best on the validation split is 0."
    )


def _aggregate(results: pl.DataFrame, columns: tuple[str, ...]) -> str:
    """Which Wilcoxon tests ran over resamples; empty if none did."""
    marked = results.filter(pl.col("anti_conservative")).get_column("metric").unique().to_list()
    titles = [metric_title(metric) for metric in columns if metric in marked]
    if not titles:
        return ""
    return (
        f"For {', '.join(titles)} the Wilcoxon test runs over bootstrap resamples, as the paper has it. Resamples are "
        "not independent observations, so this test is anti-conservative: it finds almost any difference significant "
        "(choice C19)."
    )


def _threshold(metrics: pl.DataFrame, settings: Settings) -> str:
    values = metrics.filter(metric="threshold").get_column("value").drop_nulls().to_list()
    spread = f" ({min(values):.2f} to {max(values):.2f} on the score scale)".replace("-", MINUS) if values else ""
    return (
        "F1 is taken at one global threshold a run, tuned on the validation split for "
        f"{metric_title(settings.evaluation.tune_for)}{spread} (choice C12)."
    )
