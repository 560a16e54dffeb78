"""Sections `baselines`, `evaluation`, `statistics`, `paper`, `compute` and `experiments`: what is measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.ground.errors import nearest
from plant.ground.settings.base import (
    Count,
    Fraction,
    Frozen,
    Name,
    Objective,
    Once,
    Positive,
    Rate,
    Seed,
    Some,
    SomeOnce,
    refuse,
)


class Evaluation(Frozen):
    """Which scores are kept, and which metrics are computed from them."""

    at: Some[Positive] = (1, 3, 5, 8, 15)
    """Values of k in P@k, R@k, nDCG@k, PSP@k and RP@k (numbers of labels)."""
    top: Positive = 100
    """Number of top scores kept per document in scores.parquet. The scores of true labels are always kept."""
    dense_limit: Positive = 10_000
    """With up to this number of labels, all scores are kept (fp16), and AUC and AP are exact."""
    memory_gb: Rate = 4.0
    """Memory limit for all scores, in GB. If they need more, the job stops with an error."""
    tune_for: Objective = "macro_f1_present"
    """Metric that the global threshold maximises on the validation split (choice C12)."""
    rare_below: Positive = 10
    """Labels with at least one and fewer than this number of training documents are rare (choice C14)."""
    frequency_groups: Some[Positive] = (1, 11, 51, 101, 501)
    """Lower bounds of the label-frequency groups, in training documents."""
    propensity: tuple[float, float] = (0.55, 1.5)
    """Parameters A and B of the propensity-scored metrics (.6, 2.6 for Amazon; .5, .4 for Wikipedia)."""
    attention_documents: Count = 3
    """Number of test documents whose attention is shown. Credentialed text is not shown unless `show_credentialed` is
    true."""
    show_credentialed: bool = False
    """Show attention over credentialed text in figures and report. Never publish such a report."""

    @property
    def of_scores(self) -> dict[str, float | list[int]]:
        """The keys that scores depend on: another value of the others runs no network and no baseline again. `at` fits
        any `top`, and no score depends on it."""
        return {"top": self.top, "dense_limit": self.dense_limit, "memory_gb": self.memory_gb, "at": [1]}

    @model_validator(mode="after")
    def _goes_together(self) -> Evaluation:
        faults = []
        if self.top < max(self.at):
            faults.append(f"top: at least the largest of evaluation.at = {max(self.at)} must be kept")
        if list(self.frequency_groups) != sorted(set(self.frequency_groups)):
            faults.append("frequency_groups: lower ends must rise")
        refuse(faults)
        return self


class AttentionStudy(Frozen):
    """What `attention_mass_<experiment>` and `attention_against_people_<experiment>` measure."""

    at: Positive = 10
    """Value of k in the nDCG@k of marked tokens."""
    grades: Positive = 5
    """Number of grades: the relevant tokens of a document and a label are those with this many highest values of
    relevance."""
    documents: Positive = 500
    """Number of validation documents whose attention mass and entropy are measured (a random sample)."""
    hidden_documents: Count = 100
    """Number of test documents in which tokens are hidden: one by one (leave-one-out), and the most attended ones
    together (a random sample). It takes a forward pass for each token. 0: none."""
    seed: Seed = 0
    """Seed of the samples and of the random references."""


class Statistics(Frozen):
    """Intervals and tests."""

    resamples: Annotated[int, Field(gt=0, le=1_000_000)] = 1000
    """Number B of resamples of the paired bootstrap (appendix F; choice C11) and of the approximate randomisation
    test."""
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Confidence level of all intervals (appendix F: .95)."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Significance level of the Wilcoxon test behind the arrows (appendix F: .05)."""
    interval: Literal["half_sampling", "bootstrap"] = "half_sampling"
    """How our interval estimates the error over documents: from random halves of the documents, or from the bootstrap
    resamples (choice C11). With several seeds, the spread over seeds is added. The paper's percentile interval is
    always printed too."""
    metrics: SomeOnce[str] = ("macro_auc", "macro_f1_present", "rare_f1", "rare_ap", "map", "micro_f1", "p@5", "ndcg@5")
    """Metrics with intervals and tests, by their names in metrics.json. A name without `@` and a threshold rule is at
    the tuned threshold."""
    seed: Seed = 0
    """Seed of the resamples and of the randomisation test."""


Item = Literal[
    "table_2", "table_3", "table_4", "table_5", "table_6", "table_7", "table_8", "table_9", "table_10", "table_11",
    "table_12", "figure_2", "figure_3", "figure_4", "figure_5",
    "awd_table_2", "awd_table_3", "awd_table_4", "awd_table_5", "awd_table_6", "awd_table_7", "awd_table_8",
    "awd_table_9", "awd_table_10", "awd_table_11", "awd_appendix_11", "awd_figure_2", "awd_figure_3",
    "awd_figure_4", "awd_figure_5",
]  # fmt: skip


class Paper(Frozen):
    """Tables, figures and the report."""

    metrics: SomeOnce[str] = ("macro_auc", "micro_f1", "macro_f1_present", "rare_f1", "rare_ap", "map", "p@5", "ndcg@5")
    """Columns of the ablation table. A metric that is not in statistics.metrics has no interval."""
    items: tuple[Item, ...] = ()
    """Tables and figures of the paper, and with `awd_` those of its earlier version, that are compared with our
    results, cell by cell, with a verdict. Datasets, backbones and variants are matched by their names in
    src/plant/paper/values/values.yaml."""
    main_backbone: Name | None = None
    """Backbone of the rows that name no backbone (Table 5; footnote 4 says Mistral-7B)."""
    headline: SomeOnce[str] = ("macro_f1_present", "rare_ap")
    """Metrics that answer "does it help?" at the top of the report. The first one decides the answer."""


class Experiment(Frozen):
    """What is run and compared: one dataset, one backbone, several systems."""

    dataset: Name
    """Name of the dataset."""
    backbone: Name
    """Name of the backbone."""
    variants: Once[Name]
    """Names of the systems with a network."""
    baselines: Once[Name] = ()
    """Systems without a network, by their names in src/plant/baselines/. They read the backbone `words`."""
    reference: Name
    """Every system is compared with this variant or baseline (Table 6)."""
    seeds: Once[Seed] = (0, 1, 2)
    """Seeds of the training runs, one run of each variant per seed."""
    on_request: bool = False
    """True: not part of the target `all`. The target `experiment_<name>` runs it."""
    report: bool = True
    """Make intervals, tests, tables, figures and a report. False: scores and metrics only (for example, points of a
    sweep that a figure of the paper reads)."""

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of all that is compared."""
        return (*self.variants, *self.baselines)

    @model_validator(mode="after")
    def _can_be_compared(self) -> Experiment:
        faults = []
        if not self.systems:
            faults.append("no variants and no baselines")
        elif self.reference not in self.systems:
            faults.append(f"reference: unknown name {self.reference!r}. {nearest(self.reference, self.systems)}")
        if self.variants and not self.seeds:
            faults.append("seeds: at least one is needed")
        refuse(faults)
        return self


class Cell(Frozen):
    """One row of a study: the difference between two systems of one experiment, or of two experiments with the same
    test split."""

    experiment: Name
    """Name of the experiment. Its seeds and test documents are compared."""
    system: Name
    """Variant or baseline of the experiment."""
    against: Name
    """The other variant or baseline. The difference is `system` minus `against`."""
    against_experiment: Name | None = None
    """Experiment of `against`, if it is another one (another backbone, other training documents). Both must use the
    same dataset, or subsets of the same dataset. None: the same experiment."""
    group: str = ""
    """Rows with the same group are printed together. The effects of factors are estimated within a group."""
    levels: dict[str, str | float] = Field(default_factory=dict)
    """Level of each factor in this row."""
    title: str | None = None
    """Title of the row in tables and figures. None: its levels."""

    @model_validator(mode="after")
    def _has_two_sides(self) -> Cell:
        if self.sides[0] == self.sides[1]:
            raise ValueError(f"{self.system!r} is compared with itself")
        return self

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Experiment and name of the two systems."""
        return (self.experiment, self.system), (self.against_experiment or self.experiment, self.against)

    @property
    def opponent(self) -> str:
        """Name of `against` in the contrasts of the experiment: with its experiment, if that is another one."""
        elsewhere = self.against_experiment not in {None, self.experiment}
        return f"{self.against_experiment}:{self.against}" if elsewhere else self.against


class Study(Frozen):
    """A designed experiment: one question, answered by the differences between pairs of systems."""

    question: str
    """The question that the rows answer together."""
    metrics: SomeOnce[str] = ("macro_f1_present", "rare_ap", "map", "p@5")
    """Metrics, all from statistics.metrics. The first one decides. P-values are corrected over all rows and metrics
    (Holm)."""
    cells: Some[Cell]
    """Rows of the table and of the figure."""
    axis: str | None = None
    """A factor whose levels are numbers: the figure shows the differences against it, one line for each group. None:
    the figure has one row for each cell."""
    control: str | None = None
    """With `axis`: the group that is drawn as a grey band, such as random relevance."""

    @model_validator(mode="after")
    def _has_its_axis(self) -> Study:
        faults = []
        if self.control is not None and (self.axis is None or self.control not in {cell.group for cell in self.cells}):
            faults.append(f"control: expected a group of the cells, and `axis`, got {self.control!r}")
        if self.axis is not None and not all(isinstance(cell.levels.get(self.axis), float) for cell in self.cells):
            faults.append(f"axis: expected a number as level {self.axis!r} of every cell")
        refuse(faults)
        return self


class BaselineSettings(Frozen):
    """Settings of the baselines. Of each list, the value that is best on the validation split is used."""

    svm_c: Some[Rate] = (1.0, 10.0)
    """Values of C of the linear SVM."""
    choice_labels: Positive = 1000
    """C is chosen on at most this number of labels (a random sample). The other labels are fitted once."""
    ngrams: Positive = 2
    """Number of words in the longest n-gram."""
    character_ngrams: tuple[Positive, Positive] = (4, 6)
    """Number of characters in the shortest and the longest n-gram within a word (choice C30)."""
    min_documents: Positive = 2
    """N-grams in fewer training documents are dropped (with 1, P@5 on CodiEsp is 3 points lower)."""
    max_features: Positive = 200_000
    """Number of n-grams kept, the most frequent ones."""
    max_negatives: Positive | None = 5000
    """Number of negative documents per label in the fit of the linear model. None: all."""
    log_odds_k: Some[Positive] = (1, 2, 3, 5, 10, 20, 50)
    """Numbers of words whose log-odds are summed: those with the largest mutual information with the label (for
    category_log_odds: with its category)."""
    smoothing: Rate = 0.5
    """Number of documents added to each of the four counts of a log-odds."""
    mention_slack: Some[Count] = (0, 2, 5, 10, 20, 50)
    """Numbers of other words that may stand between the words of a mention."""
    weights: Some[Fraction] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """Weights of the linear score in the sum of z-scores (`combined`)."""
    reasons: Positive = 32
    """Number of weights of the linear model kept per label, the largest ones, to be shown as reasons (choice C25)."""


class Hardware(Frozen):
    """The GPU that the plan assumes (target `plan`)."""

    name: str = "H100 SXM"
    """Name of the GPU in the plan."""
    tflops: Rate = 989.0
    """Peak speed of dense bf16 matrix products, in TFLOP/s."""
    utilisation: Annotated[float, Field(gt=0, le=1)] = 0.3
    """Fraction of the peak speed that training reaches."""
    job_hours: Rate = 24.0
    """Time limit of a job, in hours: `max_runtime` of the GPU partition in slurm/partitions.yaml."""


class Compute(Frozen):
    """Threads and device of training jobs."""

    threads: Annotated[int, Field(gt=0, le=1024)] = 1
    """Number of CPU threads of a training job. It is fixed, so that results do not depend on --cores."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: cuda if there is a GPU, else cpu."""
    deterministic: bool = False
    """True: the same seed gives the same bits on a GPU too, at some cost (docs/explanation/nothing-lost.md). On a CPU
    this is always so."""
