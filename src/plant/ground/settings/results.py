"""Sections `baselines`, `evaluation`, `statistics`, `paper`, `compute` and `experiments`: what is measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.ground.settings.base import Count, Fraction, Frozen, Name, Positive, Rate, Seed, Some


class Evaluation(Frozen):
    at: Some[Positive] = (1, 3, 5, 8, 15)
    """k of P@k, R@k, nDCG@k, PSP@k, RP@k."""
    top: Positive = 100
    """Scores kept a document in scores.parquet (beside every true label)."""
    dense_limit: Positive = 10_000
    """Up to this many labels all scores are kept (fp16) and AUC and AP are exact."""
    memory_gb: Rate = 4.0
    """Dense scores that need more than this are refused with an error."""
    tune_for: Literal["macro_f1_present", "micro_f1"] = "macro_f1_present"
    """What the global threshold maximises on the validation split (choice C12)."""
    rare_below: Positive = 10
    """A label with fewer training documents than this (and at least one) is rare (choice C14)."""
    frequency_groups: Some[Positive] = (1, 11, 51, 101, 501)
    """Lower ends of the label-frequency groups, by training documents."""
    propensity: tuple[float, float] = (0.55, 1.5)
    """A and B of the propensity-scored metrics (.6, 2.6 for Amazon; .5, .4 for Wikipedia)."""
    attention_documents: Count = 3
    """Documents whose attention is shown (never for credentialed data unless `show_credentialed`)."""
    show_credentialed: bool = False
    """Show attention over credentialed text in figures and report. Never publish such a report."""


class Statistics(Frozen):
    resamples: Positive = 1000
    """B of the paired bootstrap (appendix F; choice C11) and of the approximate randomisation."""
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Level of all intervals (appendix F: .95)."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Level of the Wilcoxon test behind the arrows (appendix F: .05)."""
    interval: Literal["half_sampling", "bootstrap"] = "half_sampling"
    """Where the error over documents of our own interval comes from: random halves of the documents, or the bootstrap
    resamples (choice C11). With several seeds their spread is added. The paper's percentile interval stands beside
    it."""
    metrics: Some[str] = ("macro_auc", "macro_f1_present", "rare_f1", "rare_ap", "map", "micro_f1", "p@5", "ndcg@5")
    """Metrics that get intervals and tests, by their names in metrics.json (at the tuned threshold)."""
    seed: Seed = 0
    """Of resamples and swaps."""


Item = Literal[
    "table_2", "table_3", "table_4", "table_5", "table_6", "table_7", "table_8", "table_9", "table_10", "table_11",
    "table_12", "figure_2", "figure_3", "figure_4", "figure_5",
]  # fmt: skip


class Paper(Frozen):
    metrics: Some[str] = ("macro_auc", "micro_f1", "macro_f1_present", "rare_f1", "rare_ap", "map", "p@5", "ndcg@5")
    """Columns of the ablation table. Those that are not in statistics.metrics have no interval."""
    items: tuple[Item, ...] = ()
    """Tables and figures of the paper that are made beside ours, cell by cell with a verdict. Datasets, backbones and
    variants are matched by name with src/plant/paper/values/values.yaml."""
    main_backbone: Name | None = None
    """Backbone of rows that name none (Table 5; footnote 4 says Mistral-7B)."""
    headline: Some[str] = ("macro_f1_present", "rare_ap")
    """Metrics that answer "does it help?" on top of the report; the first one decides the sentence."""


class Experiment(Frozen):
    """What is run and compared."""

    dataset: Name
    """Name of a dataset."""
    backbone: Name
    """Name of a backbone."""
    variants: tuple[Name, ...]
    """Names of the systems with a network."""
    baselines: tuple[Name, ...] = ()
    """Systems without a network, by the names in src/plant/baselines/; they read the backbone `words`."""
    reference: Name
    """Every row is compared with this variant (Table 6)."""
    seeds: tuple[Seed, ...] = (0, 1, 2)
    """One training run each."""
    on_request: bool = False
    """Planned and sized, but no part of `all`: its own target `experiment_<name>` runs it."""
    report: bool = True
    """Make intervals, tests, tables, figures and a report of this experiment. False: scores and metrics only, for
    points of a sweep that the paper's figures read."""


class Cell(Frozen):
    """One row of a study: the difference between two systems, of one experiment or of two on the same test split."""

    experiment: Name
    """Whose seeds and test documents are compared."""
    system: Name
    """Of the experiment."""
    against: Name
    """The difference is `system` minus `against`."""
    against_experiment: Name | None = None
    """Of `against`, where it is another one (another backbone, other training documents): on the same dataset or one
    cut from the same. The seeds of `experiment` are compared. None: the same experiment."""
    group: str = ""
    """Rows of one group stand together; the effects of factors are estimated within a group."""
    levels: dict[str, str | float] = Field(default_factory=dict)
    """Factor -> its level in this row."""
    title: str | None = None
    """How tables and figures print the row. None: its levels."""

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Experiment and name of the two systems."""
        return (self.experiment, self.system), (self.against_experiment or self.experiment, self.against)

    @property
    def opponent(self) -> str:
        """How the contrasts of the experiment name `against`: with its experiment where that is another one."""
        elsewhere = self.against_experiment not in {None, self.experiment}
        return f"{self.against_experiment}:{self.against}" if elsewhere else self.against


class Study(Frozen):
    """A designed experiment: one question, asked in many settings with equal compute on both sides."""

    question: str
    """What the rows answer together."""
    metrics: Some[str] = ("macro_f1_present", "rare_ap", "map", "p@5")
    """Of statistics.metrics; the first one decides. P-values are corrected over all rows within a metric (Holm)."""
    cells: Some[Cell]
    """Rows of the table and the figure."""


class BaselineSettings(Frozen):
    """Choices for the baselines; each list is tried on validation."""

    svm_c: Some[Rate] = (1.0, 10.0)
    """C of the linear SVM."""
    choice_labels: Positive = 1000
    """C is chosen on at most this many labels (drawn by the seed); the others are fitted once."""
    ngrams: Positive = 2
    """Longest word n-gram."""
    character_ngrams: tuple[Positive, Positive] = (4, 6)
    """Shortest and longest n-gram of characters within a word (choice C30)."""
    min_documents: Positive = 2
    """N-grams in fewer training documents are dropped (1 costs P@5 3 points on CodiEsp)."""
    max_features: Positive = 200_000
    """Most frequent n-grams kept."""
    max_negatives: Positive | None = 5000
    """Negative documents a label that the linear model is fitted on. None: all."""
    log_odds_k: Some[Positive] = (1, 2, 3, 5, 10, 20, 50)
    """MIG words a label's score is summed over (its category's for category_log_odds)."""
    smoothing: Rate = 0.5
    """Added to each of the four counts of a log-odds."""
    mention_slack: Some[Count] = (0, 2, 5, 10, 20, 50)
    """Words that may stand between those of a mention."""
    weights: Some[Fraction] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """Weights of the linear score in the z-scored sum."""
    reasons: Positive = 32
    """Weights of largest magnitude that are kept a label of the linear model, to be shown as reasons (choice C25)."""

    @model_validator(mode="after")
    def _rises(self) -> BaselineSettings:
        shortest, longest = self.character_ngrams
        if shortest > longest:
            raise ValueError(f"character_ngrams: the shortest comes first, got {shortest} and {longest}")
        return self


class Hardware(Frozen):
    """The GPU that the plan of the grid counts with (target `plan`)."""

    name: str = "H100 SXM"
    """As the plan prints it."""
    tflops: Rate = 989.0
    """Peak of dense bf16 products, in TFLOP/s."""
    memory_gb: Rate = 80.0
    """Of one GPU."""
    utilisation: Annotated[float, Field(gt=0, le=1)] = 0.3
    """Share of the peak that training reaches."""
    job_hours: Rate = 24.0
    """After which a job is cut off: `max_runtime` of the GPU partition in slurm/partitions.yaml."""


class Compute(Frozen):
    threads: Annotated[int, Field(gt=0, le=1024)] = 1
    """CPU threads of a training job; fixed, so that results do not depend on --cores."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: cuda where there is one."""
    deterministic: bool = False
    """Same seed, same bits on a GPU too, at some cost (docs/nothing-lost.md). On a CPU it changes nothing."""
