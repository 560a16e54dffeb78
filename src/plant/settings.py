"""The config as typed, frozen objects: the one source of truth of every key, default and range.

`config/schema.yaml` is generated from these classes (`make schema`), and a test holds the two together.
Units and sources are in each field's description; "choice C.." points into docs/choices/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from plant.errors import InputError, nearest

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0)]

MEASURES = ("mig", "term_frequency", "pmi", "chi2", "random", "shuffled")
Measure = Literal["mig", "term_frequency", "pmi", "chi2", "random", "shuffled"]
BASELINES = ("tfidf_linear", "mig_log_odds", "combined")
Baseline = Literal["tfidf_linear", "mig_log_odds", "combined"]
NO_PRETRAINING = "none"


class Frozen(BaseModel):
    """Base of all settings: immutable, and a key that is not declared is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


# --- corpus -------------------------------------------------------------------------------------


class Split(Frozen):
    """How documents are dealt to train, val and test when the source has no split of its own."""

    train: Fraction = 0.7
    """Fraction of documents."""
    val: Fraction = 0.1
    """Fraction of documents; held out of train where a source publishes no validation split (choice C18)."""
    test: Fraction = 0.2
    """Fraction of documents."""
    seed: int = 0
    """Of the seeded split and of `train_size`."""
    ids: dict[Literal["train", "val", "test"], str] | None = None
    """Published id lists, one path a split (a file with one document id a line). Replaces the fractions."""
    table: str | None = None
    """A published feather or parquet file with the columns `_id` and `split`. Replaces the fractions."""

    @model_validator(mode="after")
    def _adds_up(self) -> Split:
        total = self.train + self.val + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + val + test must be 1, got {total:g}")
        if self.ids is not None and self.table is not None:
            raise ValueError("give either `ids` or `table`, not both")
        return self


class Cleaning(Frozen):
    """Text cleaning; part of a result: it moves the micro-F1 of a published model from 58.9 to 59.8."""

    style: Literal["edin", "caml", "raw"] = "raw"
    """edin: lower case, non-alphanumerics to spaces, free-standing numbers dropped; caml: word tokens, lower
    case, purely numeric tokens dropped (what the paper describes, appendix C); raw: as it is."""
    max_words: Positive | None = None
    """Words kept from the start of a document (edin 4000, caml 2500)."""


class LabelSpace(Frozen):
    """Which labels are kept."""

    min_count: Positive = 1
    """Labels on fewer documents (over all splits, before the split) are dropped. Edin's MIMIC-IV uses 10."""
    keep: str | None = None
    """A file with one label a line: the others are dropped."""


class Generate(Frozen):
    """The synthetic MIMIC-III that stands in for raw files. Its indicator words favour relevance by presence."""

    admissions: Positive = 1500
    """Admissions in all; some patients have several."""
    codes: Positive = 150
    """Different ICD-9 codes, Zipfian in use."""
    words: Positive = 3000
    """Size of the background vocabulary (Zipfian)."""
    words_per_note: Positive = 90
    """Mean length of a discharge summary."""
    codes_per_admission: Annotated[float, Field(gt=0)] = 6.0
    """Mean number of codes of an admission."""
    indicator_rate: Fraction = 0.8
    """Probability that a code on an admission shows one of its indicator words in the text."""
    distractor_rate: Fraction = 0.3
    """Probability that a note mentions, negated, the indicator of a code that it does not have."""
    seed: int = 0
    """Of everything that is generated."""


class _Dataset(Frozen):
    cleaning: Cleaning = Cleaning()
    """Text cleaning, before tokens are made."""
    split: Split = Split()
    """How documents are dealt, where the source does not say."""
    labels: LabelSpace = LabelSpace()
    """Which labels are kept."""
    train_size: Positive | None = None
    """Keep this many training documents (drawn by the split's seed). None: all."""
    credentialed: bool = False
    """True: outputs are readable by the owner only, and no view of the text is made unless asked for."""


class Table(_Dataset):
    """Your own data: parquet, CSV or JSON lines."""

    source: Literal["table"]
    """Form of the raw files."""
    path: str | None = None
    """One file, with `split_column` or with the split section above."""
    files: dict[Literal["train", "val", "test"], str] | None = None
    """One file a split. A split that is missing is held out of train by the split section's fractions."""
    id_column: str = "id"
    """Column of the document id."""
    text_column: str = "text"
    """Column of the text."""
    labels_column: str = "labels"
    """Column of the labels: a list, or one string."""
    split_column: str | None = None
    """Column that names the split of a document."""
    group_column: str | None = None
    """Documents of one group (a patient) stay in one split. None: each document is its own group."""
    label_separator: str = ";"
    """Used where labels are one string."""

    @model_validator(mode="after")
    def _one_way(self) -> Table:
        if (self.path is None) == (self.files is None):
            raise ValueError("give either `path` or `files`")
        return self


class Mimic3(_Dataset):
    """MIMIC-III v1.4: the folder with NOTEEVENTS, DIAGNOSES_ICD and PROCEDURES_ICD (.csv or .csv.gz)."""

    source: Literal["mimic3"]
    path: str | None = None
    """Folder of the raw files."""
    generate: Generate | None = None
    """Make a synthetic folder in the same raw schema instead of reading `path`."""
    code_types: Literal["diagnoses", "procedures", "both"] = "both"
    """Which code tables give the labels."""
    credentialed: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> Mimic3:
        if (self.path is None) == (self.generate is None):
            raise ValueError("give either `path` or `generate`")
        return self


class Mimic4(_Dataset):
    """MIMIC-IV: the folder that holds note/discharge.csv.gz and hosp/{diagnoses,procedures}_icd.csv.gz."""

    source: Literal["mimic4"]
    path: str
    """Folder of the raw files."""
    icd_version: Literal[9, 10] = 10
    """Codes of this ICD version only."""
    code_types: Literal["diagnoses", "procedures", "both"] = "both"
    """Which code tables give the labels."""
    credentialed: bool = True


class CodiEsp(_Dataset):
    """CodiEsp (CLEF eHealth 2020), the published zip or its folder; it has its own split."""

    source: Literal["codiesp"]
    path: str
    """The zip or its folder."""
    language: Literal["en", "es"] = "en"
    """Of the texts: Spanish, or the published machine translation."""
    code_types: Literal["D", "P", "both"] = "D"
    """Diagnoses, procedures or both."""


class Eurlex57k(_Dataset):
    """EURLEX57K: the folder (or tar) with train/, dev/ and test/ JSON files; it has its own split."""

    source: Literal["eurlex57k"]
    path: str
    """The folder or tar."""


class Xmc(_Dataset):
    """The extreme-classification formats. No validation split is published: val is held out of train."""

    source: Literal["xmc"]
    path: str
    """A folder."""
    format: Literal["pecos", "attentionxml", "xmc_json", "libmultilabel"]
    """Of the files in the folder."""


Dataset = Annotated[Table | Mimic3 | Mimic4 | CodiEsp | Eurlex57k | Xmc, Field(discriminator="source")]


# --- model --------------------------------------------------------------------------------------


class Lora(Frozen):
    """Paper, appendix A: rank 16, alpha 32, dropout .05 on query, key, value and output projections."""

    rank: Positive = 16
    """r of the low-rank update (appendix A)."""
    alpha: Rate = 32.0
    """Scaling factor of the update (appendix A)."""
    dropout: Fraction = 0.05
    """On the update's input (appendix A)."""
    targets: tuple[str, ...] | None = None
    """Module names. None: the list known for the model type (appendix A: query, key, value, output); matching
    nothing is an error."""


class _Tokens(Frozen):
    max_tokens: Positive = 4096
    """Tokens of a document that are read; what lies beyond is cut, counted and reported."""
    chunk_tokens: Positive = 512
    """Longer documents pass through the backbone in pieces of this many tokens and come out as ONE sequence of
    hidden states (choice C09); pieces never become documents."""


class _Heads(Frozen):
    attention_heads: Positive = 8
    """Heads of the label attention (appendix A)."""
    pool_size: Positive = 128
    """p of the adaptive average pooling (appendix A)."""
    mask_padding: bool = True
    """False reproduces the field's fault: scores depend on the batch's padding."""


class Pretrained(_Tokens, _Heads):
    """A Hugging Face model by hub id or local folder."""

    kind: Literal["pretrained"]
    """Form of the backbone."""
    path: str
    """Hub id or folder."""
    revision: str | None = None
    """Branch, tag or commit of a hub id. None: its newest."""
    adapter: Literal["frozen", "lora", "full"] = "lora"
    """What of the backbone is trained: nothing, LoRA matrices, or all of it."""
    lora: Lora = Lora()
    """Used where adapter is lora."""
    quantization: Literal["none", "nf4"] = "none"
    """nf4: 4-bit NormalFloat with double quantisation (appendix A). Runs on CPU too."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Autocast type of the forward pass; states and losses stay fp32."""
    gradient_checkpointing: bool = False
    """Activations are computed again in the backward pass: less memory, more time (appendix A: on)."""
    cache_features: bool = False
    """Only with a frozen adapter: hidden states are computed once and kept on disk as fp16."""
    bidirectional: bool = False
    """Turn a causal model's mask off (measured variant, not in the paper)."""
    trust_remote_code: bool = False
    """Let transformers run code from the hub."""

    @model_validator(mode="after")
    def _frozen_cache(self) -> Pretrained:
        if self.cache_features and self.adapter != "frozen":
            raise ValueError("cache_features needs adapter: frozen (features of a trained backbone change)")
        if self.quantization == "nf4" and self.adapter == "full":
            raise ValueError("quantization: nf4 cannot be trained in full; use adapter: lora or frozen")
        return self


class Random(_Tokens, _Heads):
    """A small, randomly initialised transformer with a tokenizer trained on the training split."""

    kind: Literal["random"]
    architecture: Literal["llama", "mistral", "phi3", "deepseek_v3", "bert"] = "llama"
    """Which transformer is built."""
    adapter: Literal["frozen", "lora", "full"] = "full"
    lora: Lora = Lora()
    quantization: Literal["none", "nf4"] = "none"
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    gradient_checkpointing: bool = False
    cache_features: bool = False
    bidirectional: bool = False
    hidden_size: Positive = 64
    """h of the backbone."""
    layers: Positive = 2
    """Of the backbone."""
    heads: Positive = 4
    """Self-attention heads of the backbone."""
    vocabulary: Positive = 4000
    """Size of the byte-level BPE vocabulary."""
    seed: int = 0
    """Of the weights."""

    @model_validator(mode="after")
    def _divides(self) -> Random:
        if self.hidden_size % self.heads or self.hidden_size % self.attention_heads:
            raise ValueError("hidden_size must be a multiple of heads and of attention_heads")
        return self


class Words(_Tokens):
    """No network: lower-cased words as tokens, for the baselines without a network."""

    kind: Literal["words"]
    min_documents: Positive = 1
    """Words in fewer training documents are dropped."""
    vocabulary: Positive | None = None
    """Keep the most frequent words. None: all."""


Backbone = Annotated[Pretrained | Random | Words, Field(discriminator="kind")]


# --- relevance, pretraining, finetuning -----------------------------------------------------------


class Relevance(Frozen):
    """What is kept of every relevance table. From the training split only."""

    k: Positive = 1000
    """Tokens kept a label. The paper tests 500, 1000, 2000 (section 2)."""
    sign: Literal["both", "positive"] = "both"
    """positive: only tokens that are more frequent with the label (choice C02)."""
    min_documents: Positive = 1
    """Tokens in fewer training documents never count."""
    seed: int = 0
    """For the measures `random` and `shuffled`."""


class Optimisation(Frozen):
    """AdamW with a cosine schedule (appendix A)."""

    epochs: Positive = 10
    """At most; with the default patience training may stop earlier (appendix A; choice C16)."""
    patience: Positive | None = 2
    """Epochs without a better validation value before stopping. None: all epochs run, the best
    is kept (choice C16)."""
    batch_size: Positive = 8
    """Documents a step on one device (appendix A)."""
    accumulation: Positive = 4
    """Steps whose gradients are added before an update (appendix A)."""
    learning_rate: Rate = 2e-5
    """Of the backbone or its adapter (appendix A)."""
    head_learning_rate: Rate = 2e-5
    """Of label embeddings, attention and head (choice C08: at 2e-5 a small model's head hardly moves)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    """Of AdamW (appendix A)."""
    clip: Rate = 1.0
    """Largest gradient norm (appendix A)."""


class Pretraining(Optimisation):
    """A Stage 1 recipe (Eq. 2)."""

    measure: Measure = "mig"
    """Relevance that Stage 1 ranks by: mig is appendix B.1, term_frequency ablation 6; random and shuffled are
    controls."""
    objective: Literal["pairwise", "mse"] = "pairwise"
    """pairwise: Eq. 2; mse: ablation 7."""
    k: Positive = 1000
    """T_l: the k most relevant tokens of a label, met with the document (choice C03)."""
    ndcg_k: Positive | None = None
    """Truncation of nDCG. None: k (choice C07)."""
    sigma: Rate = 1.0
    """Slope of the pairwise logistic (choice C01)."""
    scores: Literal["logits", "probabilities"] = "logits"
    """s_lj before or after the softmax over tokens, averaged over heads (choice C01)."""
    gain: Literal["exponential", "linear"] = "exponential"
    """2^r - 1 or r (choice C04)."""
    negatives: Count | None = 8
    """Labels absent from the document that enter Stage 1 beside its positives. None: all labels (choice C05)."""
    reduction: Literal["mean", "sum"] = "mean"
    """Over the label lists of a batch (choice C06)."""


class Finetuning(Optimisation):
    """A Stage 2 recipe (Eq. 3)."""

    gamma: Annotated[float, Field(ge=0)] = 2.0
    """Focusing (Eq. 3); 0 with epsilon 0 and no mining is BCE."""
    epsilon: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    """Label smoothing: targets are 1 - epsilon and epsilon (appendix A; choice C17)."""
    hard_negatives: Positive | None = 1000
    """m, the negatives of highest predicted probability in the loss (section 2; choice C13). None: all labels."""
    attention_rate: Annotated[float, Field(ge=0)] = 1.0
    """Multiplies the learning rate of the planted parts (E, W_Q, W_K): 1 free, 0 frozen (reviewers' question)."""
    backbone_from_epoch: Positive = 1
    """Gradual unfreezing: the backbone trains from this epoch on (choice C15)."""


class Variant(Frozen):
    """A pair of recipes under the name that the tables use."""

    pretraining: Name = NO_PRETRAINING
    """Stage 1 recipe; `none` is random initialisation."""
    finetuning: Name
    """Stage 2 recipe."""
    title: str | None = None
    """How tables and figures print it. None: the name."""


# --- evaluation, statistics, paper ---------------------------------------------------------------


class Evaluation(Frozen):
    at: tuple[Positive, ...] = (1, 3, 5, 8, 15)
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
    frequency_groups: tuple[Positive, ...] = (1, 11, 51, 101, 501)
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
    """Where the standard error of our own interval (value +- z * error) comes from: random halves of the documents,
    or the bootstrap resamples (choice C11). The paper's percentile interval always stands beside it."""
    metrics: tuple[str, ...] = (
        "macro_auc", "macro_f1_present", "rare_f1", "rare_ap", "map", "micro_f1", "p@5", "ndcg@5",
    )
    """Metrics that get intervals and tests, by their names in metrics.json (at the tuned threshold)."""
    seed: int = 0
    """Of resamples and swaps."""


class Paper(Frozen):
    metrics: tuple[str, ...] = (
        "macro_auc", "micro_f1", "macro_f1_present", "rare_f1", "rare_ap", "map", "p@5", "ndcg@5",
    )
    """Columns of the ablation table. Those that are not in statistics.metrics have no interval."""
    headline: tuple[str, ...] = ("macro_f1_present", "rare_ap")
    """Metrics that answer "does it help?" on top of the report; the first one decides the sentence."""


class Experiment(Frozen):
    """What is run and compared."""

    dataset: Name
    """Name of a dataset."""
    backbone: Name
    """Name of a backbone."""
    variants: tuple[Name, ...]
    """Names of the systems with a network."""
    baselines: tuple[Baseline, ...] = ()
    """Systems without a network; they read the backbone `words`."""
    reference: Name
    """Every row is compared with this variant (Table 6)."""
    seeds: tuple[Count, ...] = (0, 1, 2)
    """One training run each."""


class BaselineSettings(Frozen):
    """Choices for the baselines; each list is tried on validation."""

    svm_c: tuple[Rate, ...] = (1.0, 10.0)
    """C of the linear SVM."""
    choice_labels: Positive = 1000
    """C is chosen on at most this many labels (drawn by the seed); the others are fitted once."""
    ngrams: Positive = 2
    """Longest word n-gram."""
    min_documents: Positive = 2
    """N-grams in fewer training documents are dropped (1 costs P@5 3 points on CodiEsp)."""
    max_features: Positive = 200_000
    """Most frequent n-grams kept."""
    max_negatives: Positive | None = 5000
    """Negative documents a label that the linear model is fitted on. None: all."""
    log_odds_k: tuple[Positive, ...] = (1, 2, 3, 5, 10, 20)
    """MIG words a label's score is summed over."""
    smoothing: Rate = 0.5
    """Added to each of the four counts of a log-odds."""
    weights: tuple[Fraction, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """Weights of the linear score in the z-scored sum."""


class Compute(Frozen):
    threads: Positive = 1
    """CPU threads of a training job; fixed, so that results do not depend on --cores."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: cuda where there is one."""


class Settings(Frozen):
    """The whole config."""

    results: str = "results"
    """Folder of all outputs."""
    datasets: dict[Name, Dataset]
    backbones: dict[Name, Backbone]
    relevance: Relevance = Relevance()
    pretrainings: dict[Name, Pretraining] = {}
    finetunings: dict[Name, Finetuning]
    variants: dict[Name, Variant]
    baselines: BaselineSettings = BaselineSettings()
    evaluation: Evaluation = Evaluation()
    statistics: Statistics = Statistics()
    paper: Paper = Paper()
    compute: Compute = Compute()
    experiments: dict[Name, Experiment]


def load(config: Mapping[str, Any], *, where: str = "config") -> Settings:
    """Check a config and return it as settings.

    Raises:
        InputError: one error that lists every fault: unknown keys (with the nearest known one), values
            out of range, and names that no section declares.
    """
    try:
        settings = Settings.model_validate(dict(config))
    except ValidationError as error:
        faults = [_describe(fault) for fault in error.errors()]
    else:
        faults = list(_dangling(settings))
        if not faults:
            return settings
    raise InputError(
        where, expected="a config that config/README.md describes",
        got=f"{len(faults)} fault(s):\n  " + "\n  ".join(faults) + "\n",
        fix="Correct these keys and run again.",
    )


def _describe(fault: Mapping[str, Any]) -> str:
    path = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{path}: unknown key. {nearest(str(fault['loc'][-1]), _known_keys(fault['loc']))}"
    if fault["type"] == "missing":
        return f"{path}: missing"
    got = fault.get("input")
    return f"{path}: {fault['msg']}" + (f" (got {got!r})" if not isinstance(got, Mapping) else "")


def _known_keys(location: tuple[Any, ...]) -> list[str]:
    """Field names of the model that holds the last part of an error's location."""
    schema = Settings.model_json_schema()
    node: Any = schema
    for part in location[:-1]:
        node = _child(schema, node, str(part))
    return sorted(_resolve(schema, node).get("properties", {}))


def _child(schema: dict[str, Any], node: dict[str, Any], part: str) -> dict[str, Any]:
    node = _resolve(schema, node)
    if part in node.get("properties", {}):
        return node["properties"][part]
    mapping = node.get("discriminator", {}).get("mapping", {})
    if part in mapping:
        return {"$ref": mapping[part]}
    inner = node.get("additionalProperties", node.get("items", {}))
    return inner if isinstance(inner, dict) else next(iter(node.get("patternProperties", {}).values()), {})


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    if not node.get("properties") and "patternProperties" in node:
        return {"additionalProperties": next(iter(node["patternProperties"].values()))}
    options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
    return _resolve(schema, options[0]) if len(options) == 1 else node


def _dangling(settings: Settings) -> Iterator[str]:
    """Names that are used but not declared, and combinations that cannot work."""

    def check(path: str, name: str, known: Mapping[str, Any], extra: tuple[str, ...] = ()) -> Iterator[str]:
        if name not in known and name not in extra:
            yield f"{path}: unknown name {name!r}. {nearest(name, [*known, *extra])}"

    if NO_PRETRAINING in settings.pretrainings:
        yield f"pretrainings.{NO_PRETRAINING}: this name is reserved for random initialisation"
    for name, variant in settings.variants.items():
        yield from check(f"variants.{name}.pretraining", variant.pretraining, settings.pretrainings, (NO_PRETRAINING,))
        yield from check(f"variants.{name}.finetuning", variant.finetuning, settings.finetunings)
        if name in BASELINES:
            yield f"variants.{name}: this name belongs to a baseline"
    for name, pretraining in settings.pretrainings.items():
        if pretraining.k > settings.relevance.k:
            yield f"pretrainings.{name}.k: {pretraining.k} is more than relevance.k = {settings.relevance.k}"
    for name, experiment in settings.experiments.items():
        path = f"experiments.{name}"
        yield from check(f"{path}.dataset", experiment.dataset, settings.datasets)
        yield from check(f"{path}.backbone", experiment.backbone, settings.backbones)
        for variant in experiment.variants:
            yield from check(f"{path}.variants", variant, settings.variants)
        systems = dict.fromkeys([*experiment.variants, *experiment.baselines])
        yield from check(f"{path}.reference", experiment.reference, systems)
        if isinstance(settings.backbones.get(experiment.backbone), Words) and experiment.variants:
            yield f"{path}.backbone: {experiment.backbone!r} has no network; variants need one"
        if experiment.baselines and "words" not in settings.backbones:
            yield f"{path}.baselines: they need a backbone named 'words' of kind: words"
        if "combined" in experiment.baselines and not {"tfidf_linear", "mig_log_odds"} <= set(experiment.baselines):
            yield f"{path}.baselines: 'combined' needs 'tfidf_linear' and 'mig_log_odds' beside it"
        if not experiment.variants and not experiment.baselines:
            yield f"{path}: no variants and no baselines"


def parse_dataset(section: Mapping[str, Any]) -> Dataset:
    """One entry of `datasets`, as a rule hands it to its script."""
    return TypeAdapter(Dataset).validate_python(dict(section))


def parse_backbone(section: Mapping[str, Any]) -> Backbone:
    """One entry of `backbones`, as a rule hands it to its script."""
    return TypeAdapter(Backbone).validate_python(dict(section))
