"""The tables and figures of an experiment: one entry each, in the order of its report.

To add one, write the function that makes it, and an entry here. The files that the workflow declares, the report with
its contents, the notes below a table and the captions follow from the entry.

Nothing here imports polars or matplotlib, because the Snakefile reads this list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Section = Literal["results", "rare", "stages", "attention", "corpus", "costs", "choices", "provenance"]
SECTIONS: dict[Section, str] = {
    "results": "Results",
    "rare": "Rare labels",
    "stages": "The two stages",
    "attention": "Attention",
    "corpus": "Corpus",
    "costs": "Costs",
    "choices": "Method choices",
    "provenance": "Provenance",
}
"""Sections of the report, with their titles."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A table or a figure of an experiment."""

    name: str
    """Name of its files."""
    function: str
    """`module:function` below plant.paper. The function gets the ExperimentData and returns a Table or a Figure."""
    section: Section
    heading: str
    """Its name in the contents of the report."""
    caption: str
    """What it shows. The report of Snakemake prints it beside the file, and our report below a figure."""

    @property
    def module(self) -> str:
        return f"{__package__}.{self.function.partition(':')[0]}"

    def load(self) -> Callable[..., Any]:
        """The function; imports its module."""
        return getattr(import_module(self.module), self.function.partition(":")[2])


@dataclass(frozen=True, kw_only=True)
class ReportTable(Part):
    """A table, written as .csv (long, full precision), .md and .tex.

    `title` and `notes` are Jinja templates. They can use `data` (ExperimentData), `statistics` (the section of the
    config), `level` (of the intervals), `alpha` (of the tests), and the `values` of the Table.
    """

    title: str
    notes: str = ""
    """A paragraph is a note. A note that its conditions leave empty is left out."""
    folded: bool = False
    """Whether the report shows it only when its heading is clicked."""


@dataclass(frozen=True, kw_only=True)
class ReportFigure(Part):
    """A figure, written as .pdf and .png. One with nothing to show says why."""

    alt: str
    """For readers who cannot see it."""
    wide: bool = False
    """Whether it keeps its width on a narrow screen, where it can be scrolled."""


ABLATION_NOTES = """
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
"""

CONTENTS: tuple[Part, ...] = (
    ReportTable(
        name="ablation",
        function="experiment.tables:ablation_table",
        section="results",
        heading="All systems",
        caption="each system against the reference in the form of the paper's Table 6",
        title="Ablation in the form of the paper's Table 6 (test split, ×100)",
        notes=ABLATION_NOTES,
    ),
    ReportFigure(
        name="differences",
        function="figures.differences:interval_figure",
        section="results",
        heading="Difference to the reference",
        caption="Each mark is a system minus the reference, with our interval (over training seeds and test documents; "
        "with one seed over documents alone). Filled marks: the interval excludes 0 and the randomisation test agrees.",
        alt="Forest plot, one panel a metric; the same numbers are in the table of intervals.",
        wide=True,
    ),
    ReportTable(
        name="intervals",
        function="experiment.tables:interval_table",
        section="results",
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
    ),
    ReportTable(
        name="seeds",
        function="experiment.tables:seed_table",
        section="results",
        heading="Spread over training seeds",
        caption="spread over training seeds",
        title="Spread over training seeds (test split, ×100, mean ± standard deviation)",
        notes="""
The spread over seeds is training noise. Our intervals hold it beside the sampling noise of the test documents; the
paper's hold the latter alone. Systems without a network have one fit and no spread.
""",
        folded=True,
    ),
    ReportTable(
        name="probabilities",
        function="experiment.tables:probability_table",
        section="results",
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

A dash stands for scores that are no log-odds. Stage 3 with the channel network alone calibrates a network (choice C25).
""",
        folded=True,
    ),
    ReportFigure(
        name="rare_label_f1",
        function="figures.labels:rare_label_figure",
        section="rare",
        heading="F1 of rare labels",
        caption="Distribution of F1 over the rare labels (the form of the paper's Fig. 2b): density, quartiles, mean "
        "(diamond) and the share of labels above 70.",
        alt="Violin plots of per-label F1, one a system, with mean and share above 70 printed beside each.",
    ),
    ReportFigure(
        name="frequency_groups",
        function="figures.labels:frequency_figure",
        section="rare",
        heading="F1 by label frequency",
        caption="Mean F1 of the labels in each group of training frequency, averaged over seeds.",
        alt="Line chart of mean F1 by label-frequency group, one line a system.",
    ),
    ReportFigure(
        name="ndcg_and_macro_f1",
        function="figures.training:stage_figure",
        section="stages",
        heading="Stage 1 against Stage 2",
        caption="One point a seed (the form of the paper's Fig. 3, left). nDCG@k is taken against the recipe's own "
        "relevance: it says how well that relevance was learnt, not whether it was worth learning.",
        alt="Scatter plot of nDCG@k after Stage 1 against test macro-F1 after Stage 2.",
    ),
    ReportFigure(
        name="training_curves",
        function="figures.training:curves_figure",
        section="stages",
        heading="Training",
        caption="Thin lines are seeds, thick lines their mean. Stage 1 above, Stage 2 below. nDCG@k is blind to the "
        "scale of the scores, so the attention mass on the top k tokens stands beside it.",
        alt="Line charts of loss and validation quality by epoch for both stages.",
        wide=True,
    ),
    ReportFigure(
        name="learning_over_time",
        function="figures.training:seconds_figure",
        section="stages",
        heading="Learning over time",
        caption="Thin lines are seeds, thick lines their mean. The seconds of Stage 1 come first. Epochs of a run are "
        "taken as equally long.",
        alt="Line chart of validation quality against CPU seconds, one line a system.",
    ),
    ReportTable(
        name="budgets",
        function="experiment.budgets:budget_table",
        section="stages",
        heading="Equal budgets",
        caption="macro-F1 on validation within the passes and the CPU time of the reference",
        title="Macro-F1 on validation at equal budgets (×100, means over seeds)",
        notes="""
The reference ({{ data.reference.title }}) spent its budget until its own best epoch, seed by seed. A dash: no epoch of
the system ends within that budget, or the reference has no network.

Passes are epochs over the training documents; those of Stage 1 count. CPU time is that of the training jobs, divided
evenly over their epochs. Validation chose the epoch, so these values are a little too high for every system.
""",
    ),
    ReportTable(
        name="corpus",
        function="experiment.context_tables:corpus_table",
        section="corpus",
        heading="Corpus",
        caption="the corpus in numbers",
        title="Corpus",
        notes="""
Median with first and third quartile in parentheses. Labels that occur in test or val but not in train are kept and
cannot be predicted (choice C14).
""",
    ),
    ReportTable(
        name="cost",
        function="experiment.context_tables:cost_table",
        section="costs",
        heading="Costs",
        caption="time, memory, trained weights and energy of every stage",
        title="Cost of every stage",
        notes="""
Epochs run are those that training really ran; the best one on validation is kept (choice C16).

Wall time is that of the job, without the start of Python. Peak memory is the largest of the runs.

Energy is that of device and host together, of the parts that a run tells.
""",
    ),
)


def report_tables() -> dict[str, ReportTable]:
    """Name -> table."""
    return {part.name: part for part in CONTENTS if isinstance(part, ReportTable)}


def report_figures() -> dict[str, ReportFigure]:
    """Name -> figure."""
    return {part.name: part for part in CONTENTS if isinstance(part, ReportFigure)}
