"""Sections `relevance`, `pretrainings`, `finetunings`, `evidences` and `variants`: how a system is trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.ground.settings.base import (
    CHANNEL_BASELINES,
    NO_PRETRAINING,
    Channel,
    Count,
    Frozen,
    LearningRate,
    Name,
    Positive,
    Rate,
    Seed,
)


class Relevance(Frozen):
    """What is kept of every relevance table. From the training split only."""

    k: Positive = 1000
    """Tokens kept a label. The paper tests 500, 1000, 2000 (section 2)."""
    sign: Literal["both", "positive"] = "both"
    """positive: only tokens that are more frequent with the label (choice C02)."""
    min_documents: Positive = 1
    """Tokens in fewer training documents never count."""
    seed: Seed = 0
    """For the measures `random` and `shuffled`."""
    rows_in_memory: Positive = 250_000
    """Rows of the table that are in memory at a time, to the end of a label, whatever the table's length. They are a
    row group of the file; the rows themselves do not depend on it."""


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
    learning_rate: LearningRate = 2e-5
    """Of the backbone or its adapter (appendix A)."""
    head_learning_rate: LearningRate = 2e-5
    """Of label embeddings, attention and head (choice C08: at 2e-5 a small model's head hardly moves)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    """Of AdamW (appendix A)."""
    clip: Rate = 1.0
    """Largest gradient norm (appendix A)."""
    initialisation: Literal["random", "descriptions"] = "random"
    """Where E starts, if no earlier stage trained it: random (choice C10), or the backbone's mean hidden state over the
    label's description (choice C22)."""


class Pretraining(Optimisation):
    """A Stage 1 recipe (Eq. 2)."""

    measure: Name = "mig"
    """Relevance that Stage 1 ranks by: mig is appendix B.1, term_frequency ablation 6; smoothed_mig counts
    half a document more in every cell; pmi and chi2 are common; random and shuffled are controls; description takes the
    words of the label's description (choice C28)."""
    objective: Literal["pairwise", "mse", "approx_ndcg"] = "pairwise"
    """pairwise: Eq. 2; mse: ablation 7; approx_ndcg: what the authors' public code optimises (choice C23)."""
    temperature: Rate = 0.1
    """Of the smooth ranks of approx_ndcg (choice C23)."""
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
    reweight: bool = False
    """Sampled negatives count for those that were not drawn, so that the loss is unbiased for Eq. 2 over all labels
    (choice C05)."""
    label_min_documents: Positive = 1
    """Labels on fewer training documents stay out of Stage 1 (the claim that planting on common labels helps rare
    ones)."""
    reduction: Literal["mean", "sum"] = "mean"
    """Over the label lists of a batch (choice C06)."""
    keep_epochs: bool = False
    """Keep the weights of every epoch, for variants that start Stage 2 from one of them (choice C24)."""


class Finetuning(Optimisation):
    """A Stage 2 recipe (Eq. 3)."""

    loss: Literal["focal", "asymmetric", "approx_ndcg"] = "focal"
    """focal: Eq. 3; asymmetric: what a summary of the paper says; approx_ndcg over labels: what the authors' code
    optimises (choice C23)."""
    gamma: Annotated[float, Field(ge=0)] = 2.0
    """Focusing (Eq. 3); 0 with epsilon 0 and no mining is BCE."""
    epsilon: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    """Label smoothing of the focal loss: targets are 1 - epsilon and epsilon (appendix A; choice C17)."""
    hard_negatives: Positive | None = 1000
    """m, the negatives of highest predicted probability in the loss (section 2; choice C13). None: all labels."""
    gamma_positive: Annotated[float, Field(ge=0)] = 0.0
    """Focusing of positives in the asymmetric loss."""
    gamma_negative: Annotated[float, Field(ge=0)] = 4.0
    """Focusing of negatives in the asymmetric loss."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Negatives of a lower probability than this cost nothing in the asymmetric loss."""
    temperature: Rate = 0.1
    """Of the smooth ranks of approx_ndcg (choice C23)."""
    shortlist: Annotated[int, Field(gt=0, le=100_000)] | None = None
    """Train and predict on a document's positives and this many candidate labels, those of largest relevance summed
    over its tokens. None: all labels."""
    shortlist_above: Count = 50_000
    """Label sets of up to this size are trained and predicted whole, whatever `shortlist` says."""
    attention_rate: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """Multiplies the learning rate of the planted parts (E, W_Q, W_K): 1 free, 0 frozen (reviewers' question)."""
    backbone_from_epoch: Positive = 1
    """Gradual unfreezing: the backbone trains from this epoch on (choice C15)."""
    static_attention: Annotated[float, Field(ge=0)] = 0.0
    """lambda: the scores of every head get lambda times the relevance of the token to the label before the softmax, in
    training and prediction (choice C26). 0: only what is learned."""
    static_measure: Name = "mig"
    """Relevance of the static part; random and shuffled are controls (choice C26)."""
    residual: Positive | None = None
    """Log-odds of a label's this many most informative tokens are added to its logit, with one trained weight (choice
    C27). None: no residual."""
    residual_folds: Positive = 5
    """The log-odds of a training document are counted without its own fold, one of this many; 1 counts them on all
    training documents: the control that shows the optimism (choice C27)."""


class Evidence(Frozen):
    """A Stage 3 recipe: the network's logit and the evidence of words, weighed on validation (choice C25)."""

    channels: tuple[Channel, ...] = ("network", "log_odds", "linear", "prior")
    """What is added up: the network's logit, the scores of mig_log_odds and of tfidf_linear, of the same on characters
    and on categories (choice C30), of descriptions and of mentions where the dataset has some (choice C29), and the
    log-odds of the label in the training split (prior)."""
    slopes: bool = False
    """The weight of each channel goes linearly with log(1 + training documents of the label), from one value at the
    rarest label to another at the most frequent one; it is never negative in between. Doubles the scalars."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Validation scores come from a fit without the document's fold; a patient's documents are in one fold."""
    ridge: Annotated[float, Field(ge=0)] = 1.0
    """Half of this times the squares of the weights of standardised channels is added to the sum of log-losses over
    pairs. Keeps weights finite where validation can be told apart without error."""

    @model_validator(mode="after")
    def _is_evidence(self) -> Evidence:
        if len(set(self.channels)) < len(self.channels):
            raise ValueError(f"each channel may be named once, got {list(self.channels)}")
        if not set(self.channels) - {"prior"}:
            raise ValueError("at least one channel other than prior is needed")
        return self

    @property
    def reads(self) -> tuple[str, ...]:
        """The baselines whose scores it adds, in the order of its channels."""
        return tuple(CHANNEL_BASELINES[channel] for channel in self.channels if channel in CHANNEL_BASELINES)


class Variant(Frozen):
    """Recipes under the name that the tables use."""

    pretraining: Name = NO_PRETRAINING
    """Stage 1 recipe; `none` is random initialisation."""
    finetuning: Name
    """Stage 2 recipe."""
    pretraining_epoch: Positive | None = None
    """Start from Stage 1 as it stood after this epoch (needs `keep_epochs`). None: its best epoch (choice C24)."""
    evidence: Name | None = None
    """Stage 3 recipe. None: the network's scores as they are (choice C25)."""
    title: str | None = None
    """How tables and figures print it. None: the name."""

    @property
    def is_planted(self) -> bool:
        """Whether it has Stage 1."""
        return self.pretraining != NO_PRETRAINING

    @property
    def initial(self) -> str:
        """What Stage 2 starts from: `none`, a Stage 1 recipe, or one of its epochs."""
        return self.pretraining + ("" if self.pretraining_epoch is None else f"@{self.pretraining_epoch}")

    @property
    def network(self) -> str:
        """Folder name of the network: two variants of the same first two stages share it.

        >>> Variant(pretraining="plant", finetuning="bce", pretraining_epoch=3, evidence="all").network
        'plant@3+bce'
        """
        return f"{self.initial}+{self.finetuning}"
