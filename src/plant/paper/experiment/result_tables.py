"""The tables of an experiment's results.

Two procedures are kept apart. "Paper's": mean gain and percentile interval over B paired bootstrap resamples, arrows by
Wilcoxon (appendix F). "Ours": the interval and the approximate randomisation test of the room statistics (choices C11
and C19).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json
from plant.paper.contents import ReportTable
from plant.paper.experiment.data import FIT, ExperimentData
from plant.paper.render import Table, TableCell, breaks, row_of
from plant.paper.systems import System, budget_notes
from plant.paper.wording import (
    MINUS,
    MISSING,
    OVER,
    OVER_DOCUMENTS,
    interval,
    is_number,
    metric_title,
    p_value,
    percent,
    significant,
)

_SHARES = ("brier_skill", "micro_f1@natural", "micro_f1@micro")


def ablation_table(data: ExperimentData) -> Table:
    """The form of Table 6: each system against the reference (last row), in the paper's notation."""
    metrics, systems = data.settings.paper.metrics, data.systems
    best = {metric: max(data.means.get((system.name, metric), -math.inf) for system in systems) for metric in metrics}

    def cell(system: System, metric: str) -> TableCell:
        value, row = data.means.get((system.name, metric)), data.rows.get((system.name, metric))
        bold = value is not None and value == best[metric]
        if system is data.reference or row is None or not is_number(row["paper_gain"]):
            return TableCell(percent(value), bold=bold)
        gain = f"({percent(row['paper_gain'], signed=True)}, {interval(row['paper_low'], row['paper_high'])})"
        return TableCell(percent(value), row["paper_arrow"], gain, bold)

    *rows, (last, *numbers) = _by_system(data, metrics, cell)
    return Table(
        columns=("System", *map(metric_title, metrics)),
        rows=(*rows, row_of(f"{last.main} (reference)", *numbers)),
        data=_long(data),
        values=_notes(data),
        rules=breaks([(system is data.reference, system.kind == "no network") for system in systems]),
        stacked=True,
    )


ABLATION = ReportTable(
    name="ablation",
    function="ablation_table",
    section="results",
    place=1,
    heading="All systems",
    caption="each system against the reference in the form of the paper's Table 6",
    title="Ablation in the form of the paper's Table 6 (test split, ×100)",
    notes="""
{% set metrics = data.settings.paper.metrics %}
(gain, [low, high]) is the paper's procedure (appendix F): mean and {{ level }} percentile interval of
B = {{ statistics.resamples }} paired bootstrap differences to {{ data.reference.title }}, over test documents alone.
An arrow stands only where the Wilcoxon test ({{ alpha }}) and the interval (excludes 0) agree; both are decided on
unrounded numbers. Bold: best in the column.

{% if seeds %}
Values are means over {{ seeds }} training seed{{ "s" if seeds > 1 }}.
{% else %}
No system with a network ran: each has one fit.
{% endif %}

{% if weight in (0, 1) %}
{% set kept, lost = ("tfidf_linear", "mig_log_odds") if weight == 1 else ("mig_log_odds", "tfidf_linear") %}
{{ titles.combined }} is {{ titles[kept] }} alone here and repeats its row: the weight of {{ titles[lost] }} that was
best on the validation split is 0.
{% endif %}

{% for note in budgets %}
{{ note }}

{% endfor %}
{% if over_resamples %}
For {{ metric_titles(over_resamples) }} the Wilcoxon test runs over bootstrap resamples, as the paper has it. Resamples
are not independent observations, so this test is anti-conservative: it finds almost any difference significant (choice
C19).
{% endif %}

{% if "f1" in metrics | join(" ") %}
F1 is taken at one global threshold a run, tuned on the validation split for
{{ metric_titles([data.settings.evaluation.tune_for]) }}
{%- if thresholds %} ({{ ("%.2f to %.2f" | format(thresholds | min, thresholds | max)).replace("-", minus) }} on the
score scale)
{%- endif %} (choice C12).
{% endif %}

{% if "macro_f1_present" in metrics %}
macro-F1 (present): mean F1 over the labels that occur in the test split.
{% endif %}

{% if "macro_f1_all" in metrics %}
macro-F1 (all): mean F1 over all labels; absent ones count 0 (the paper's appendix E).
{% endif %}

{% if "macro_f1_caml" in metrics %}
macro-F1 (CAML): harmonic mean of macro precision and macro recall over all labels.
{% endif %}

{% if "rare_" in metrics | join(" ") %}
Rare labels have 1 to {{ data.settings.evaluation.rare_below - 1 }} training documents.
{% endif %}

{% if lower_bounds %}
Lower bounds, as only the top {{ data.settings.evaluation.top }} scores of each document were kept:
{{ metric_titles(lower_bounds) }}.
{% endif %}

{% if without_interval %}
No interval was asked for: {{ metric_titles(without_interval) }}.
{% endif %}
""",
)


def _notes(data: ExperimentData) -> dict[str, Any]:
    """What the notes of the ablation table print: seeds, budgets, thresholds, and what its columns call for."""
    metrics = data.settings.paper.metrics
    networks = [system.name for system in data.systems if system.kind != "no network"]
    combined = data.inputs.evaluations.get("combined")  # its weight, from validation, can make it equal to one part
    bounds = {bound for _, _, record in data.records for bound in record["exactness"]["lower_bounds"]}
    marked, measured = set(data.results.filter("anti_conservative")["metric"]), set(data.results["metric"])
    return {
        "seeds": data.metrics.filter(pl.col("system").is_in(networks))["seed"].n_unique(),
        "weight": float(read_json(Path(combined[0]) / "choices.json")["weight"]) if combined else None,
        "titles": {system.name: system.title for system in data.systems},
        "budgets": budget_notes(data.systems, data.reference),
        "over_resamples": [metric for metric in metrics if metric in marked],
        "thresholds": data.metrics.filter(metric="threshold")["value"].drop_nulls().to_list(),
        "minus": MINUS,
        "lower_bounds": [metric for metric in metrics if any(fnmatch(metric, bound) for bound in bounds)],
        "without_interval": [metric for metric in metrics if metric not in measured],
    }


def interval_table(data: ExperimentData) -> Table:
    """Our interval and randomisation test beside the paper's gain, interval and Wilcoxon test."""
    shown = [metric for metric in data.settings.paper.metrics if (data.reference.name, metric) in data.rows]
    several = bool((data.results["n_seeds"] > 1).any())
    ours = ("system", "metric", "value", "seed_sd", "n_seeds", "low", "high", "reference", "difference",
            "diff_low", "diff_high", "randomization_p", "resamples")  # fmt: skip
    return Table(
        columns=(
            "Metric", "System", "Value, interval (ours)", "Difference, interval (ours)", "p randomisation (ours)",
            "Gain, interval (paper's)", "p Wilcoxon (paper's)",
        ),
        rows=tuple(_interval_row(data, metric, system) for metric in shown for system in data.systems),
        data=_long(data).select(ours),
        values={"over": OVER[several] if data.experiment.variants else OVER_DOCUMENTS},
        rules=breaks([metric for metric in shown for _ in data.systems]),
        text_columns=2,
    )  # fmt: skip


INTERVALS = ReportTable(
    name="intervals",
    function="interval_table",
    section="results",
    place=3,
    heading="Intervals and tests",
    caption="our intervals and randomisation test beside the paper's procedure",
    title="Our {{ level }} intervals and randomisation test beside the paper's procedure (test split, ×100)",
    notes="""
Differences are to {{ data.reference.title }}. Ours: difference of the seed means, {{ level }} interval {{ over }} that
is right for label-macro metrics too (choice C11), and a two-sided approximate randomisation test that swaps whole
documents ({{ statistics.resamples }} times). Arrow: the interval excludes 0 and {{ alpha }}.

Paper's: mean and percentile interval of the resampled differences over test documents alone, Wilcoxon signed-rank test
and arrow (appendix F). p marked * comes from the resamples of an aggregate metric and is anti-conservative (choice
C19).

p-values are not corrected for the number of comparisons.
""",
    folded=True,
)


def _interval_row(data: ExperimentData, metric: str, system: System) -> tuple[TableCell, ...]:
    row = data.rows[system.name, metric]
    value = TableCell(percent(row["value"]), detail=interval(row["low"], row["high"]))
    if system is data.reference:
        return row_of(metric_title(metric), system.title, value, *[MISSING] * 4)
    ours = interval(row["diff_low"], row["diff_high"])
    papers = interval(row["paper_low"], row["paper_high"])
    return row_of(
        metric_title(metric),
        system.title,
        value,
        TableCell(percent(row["difference"], signed=True), row["our_arrow"], ours),
        p_value(row["randomization_p"]),
        TableCell(percent(row["paper_gain"], signed=True), row["paper_arrow"], papers),
        p_value(row["wilcoxon_p"]) + ("*" if row["anti_conservative"] else ""),
    )


def seed_table(data: ExperimentData) -> Table:
    """Mean and standard deviation (n - 1) over training seeds. One seed has no deviation."""
    metrics = data.settings.paper.metrics
    spreads = data.metrics.group_by("system", "metric").agg(pl.col("value").std()).drop_nulls("value")
    spread_of = {(system, metric): spread for system, metric, spread in spreads.iter_rows()}
    seeds = data.metrics.group_by("system").agg(pl.col("seed").n_unique())
    seeds_of = dict(seeds.iter_rows())

    def cell(system: System, metric: str) -> TableCell:
        if metric == "seeds":
            return TableCell(str(seeds_of[system.name]))
        spread = spread_of.get((system.name, metric))
        detail = "" if spread is None else f"± {percent(spread)}"
        return TableCell(percent(data.means.get((system.name, metric))), detail=detail)

    return Table(
        columns=("System", "Seeds", *map(metric_title, metrics)),
        rows=_by_system(data, ("seeds", *metrics), cell),
        data=data.metrics,
    )


SEEDS = ReportTable(
    name="seeds",
    function="seed_table",
    section="results",
    place=4,
    heading="Spread over training seeds",
    caption="spread over training seeds",
    title="Spread over training seeds (test split, ×100, mean ± standard deviation)",
    notes="""
The spread over seeds is training noise. Our intervals hold it beside the sampling noise of the test documents; the
paper's hold the latter alone. Systems without a network have one fit and no spread.
""",
    folded=True,
)


def probability_table(data: ExperimentData) -> Table:
    """How well the scores serve as probabilities: Brier skill, F1 at p = .5, calibration (choice C17).

    Scores without a natural threshold have none of these numbers.
    """
    columns = dict.fromkeys(_SHARES, percent) | dict.fromkeys(FIT, significant)
    return Table(
        columns=("System", *map(metric_title, columns)),
        rows=_by_system(data, columns, lambda system, metric: columns[metric](data.means.get((system.name, metric)))),
        data=data.metrics.filter(pl.col("metric").is_in(list(columns))),
        values={"cut": any(record["exactness"]["lower_bounds"] for _, _, record in data.records)},
    )


PROBABILITIES = ReportTable(
    name="probabilities",
    function="probability_table",
    section="results",
    place=5,
    heading="Scores as probabilities",
    caption="how well the scores serve as probabilities",
    title="The scores as probabilities (test split, means over seeds; skill and F1 ×100)",
    notes="""
Brier skill: the share of the squared error of saying 0 everywhere that the probabilities take away; negative is worse
than that.

Calibration error (15 bins) and log-loss are means over the pairs of a document and a label that have a score. Most
pairs are negative, so both are small numbers: compare them down the column.

Micro-F1 "at its threshold" is at the threshold that is best for micro-F1 on the validation split; the ablation table
has the one that is best for {{ metric_titles([data.settings.evaluation.tune_for]) }}.

A dash stands for scores without a scale of their own. Distances of a linear model (TF-IDF) are no log-odds, but are
read as if they were.

{% if cut %}
Only the top {{ data.settings.evaluation.top }} scores of each document were kept: Brier skill takes the other
probabilities for 0, and can be too high or too low.
{% endif %}

Stage 3 with the channel network alone calibrates a network (choice C25).
""",
    folded=True,
)


def _by_system(
    data: ExperimentData, columns: Collection[str], cell: Callable[[System, str], TableCell | str]
) -> tuple[tuple[TableCell, ...], ...]:
    """A row for each system: its title, and a cell for each column."""
    return tuple(row_of(system.title, *(cell(system, column) for column in columns)) for system in data.systems)


def _long(data: ExperimentData) -> pl.DataFrame:
    """All columns of the results in table order, with titles and kinds."""
    rows = [(system.name, system.title, system.kind) for system in data.systems]
    systems = pl.DataFrame(rows, schema=["system", "title", "kind"], orient="row")
    joined = systems.join(data.results, on="system", maintain_order="left_right")
    return joined.select(*data.results.columns, "title", "kind")
