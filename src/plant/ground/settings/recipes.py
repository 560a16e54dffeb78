"""Sections `relevance`, `pretrainings`, `finetunings`, `evidences` and `variants`: how a system is trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.ground.settings.base import (
    NO_PRETRAINING,
    Count,
    Frozen,
    LearningRate,
    Name,
    Once,
    Positive,
    Rate,
    Seed,
    Size,
    refuse,
)


class Relevance(Frozen):
    """The relevance tables: which tokens are kept for a label. They are counted on the train split only."""

    k: Positive = 1000
    """Number of tokens kept per label. The paper tests 500, 1000 and 2000 (section 2)."""
    sign: Literal["both", "positive"] = "both"
    """positive: keep only tokens that are more frequent with the label than without it (choice C02)."""
    min_documents: Positive = 1
    """Tokens in fewer training documents are left out."""
    seed: Seed = 0
    """Seed of the measures `random` and `shuffled`."""
    rows_in_memory: Positive = 250_000
    """Number of rows that are in memory at one time; a label is never divided. It sets the row groups of the file and
    does not change its rows."""


class Optimisation(Frozen):
    """AdamW with a cosine schedule (appendix A)."""

    epochs: Positive = 10
    """Largest number of epochs. With `patience`, training may stop earlier (appendix A; choice C16)."""
    patience: Positive | None = 2
    """Training stops after this number of epochs without a better validation value. None: all epochs run, and the best
    one is kept (choice C16)."""
    batch_size: Positive = 8
    """Number of documents per step on one device (appendix A)."""
    accumulation: Positive = 4
    """Number of steps whose gradients are added before an update (appendix A)."""
    learning_rate: LearningRate = 2e-5
    """Learning rate of the backbone or its adapter (appendix A)."""
    head_learning_rate: LearningRate = 2e-5
    """Learning rate of label embeddings, attention and head (choice C08: at 2e-5 the head of a small model hardly
    learns)."""
    weight_decay: Annotated[float, Field(ge=0, le=100)] = 0.01
    """Weight decay of AdamW (appendix A)."""
    clip: Rate = 1.0
    """Gradients with a larger L2 norm are scaled down to it (appendix A)."""
    initialisation: Literal["random", "descriptions"] = "random"
    """Initial label embeddings E, if no earlier stage trained them: random (choice C10), or the mean hidden state of
    the label's description (choice C22)."""


class Pretraining(Optimisation):
    """A Stage 1 recipe: the label attention learns to rank the tokens of a document (Eq. 2)."""

    measure: Name = "mig"
    """Relevance measure that Stage 1 learns to rank by. mig: mutual information gain (appendix B.1). smoothed_mig: the
    same with half a document added to every cell. pmi and chi2: other measures of the same table. term_frequency:
    ablation 6. random, shuffled and constant: controls. description: the words of the label's description (choice
    C28)."""
    objective: Name = "pairwise"
    """Loss of Stage 1, a module of src/plant/pretraining/losses/. pairwise: Eq. 2. mse: ablation 7. approx_ndcg: the
    loss in the authors' public code (choice C23)."""
    loss_options: dict[Name, float] = Field(default_factory=dict)
    """Parameters of a loss that have no key of their own here, by name."""
    temperature: Rate = 0.1
    """Temperature of the smooth ranks in approx_ndcg (choice C23)."""
    k: Positive = 1000
    """T_l: the k most relevant tokens of a label. Stage 1 ranks those that are in the document (choice C03)."""
    ndcg_k: Positive | None = None
    """Number of ranks that nDCG counts. None: k (choice C07)."""
    sigma: Rate = 1.0
    """Slope of the logistic function in the pairwise loss (choice C01)."""
    scores: Literal["logits", "probabilities"] = "logits"
    """The score s_lj: the attention before or after the softmax over tokens, averaged over heads (choice C01)."""
    scale: Literal["trained", "fitted"] = "trained"
    """Scale of the scores when Stage 1 ends. trained: as it is. fitted: all scores are multiplied by one number, for
    which the attention is closest to the relevance on the training split (choice C39)."""
    gain: Literal["exponential", "linear"] = "exponential"
    """Gain of a token with relevance r in nDCG: 2^r - 1 or r (choice C04)."""
    negatives: Count | None = 8
    """Number of sampled negative labels per document, beside its positive labels. None: all labels (choice C05)."""
    reweight: bool = False
    """Weight the sampled negatives so that the loss is an unbiased estimate of Eq. 2 over all labels (choice C05)."""
    label_min_documents: Positive = 1
    """Labels with fewer training documents are left out of Stage 1. It tests the claim that planting on common labels
    helps rare ones."""
    lists: Literal["documents", "vocabulary"] = "documents"
    """What is ranked. documents: the tokens of a document, by the label attention (Eq. 2). vocabulary: all words,
    by the ranking model of the earlier version (its A.2); Stage 2 then needs `differentiable_attention`."""
    outside: Count = 1000
    """With `lists: vocabulary`, largest number of words outside T_l in a label's list; their relevance is 0 (choice
    C35)."""
    l2r_size: Size = 100
    """With `lists: vocabulary`, size of the embeddings of labels and words in the ranking model (choice C35)."""
    l2r_hidden: Size = 100
    """With `lists: vocabulary`, width of the ranking model's first layer (choice C35)."""
    reduction: Literal["mean", "sum"] = "mean"
    """How the losses of the label lists in a batch are combined (choice C06)."""
    keep_epochs: bool = False
    """Keep the weights of every epoch, so that variants can start Stage 2 from one of them (choice C24)."""

    @model_validator(mode="after")
    def _has_negatives_to_weight(self) -> Pretraining:
        if self.reweight and self.negatives == 0:
            raise ValueError("reweight: needs negatives, got 0")
        if self.scale == "fitted" and (self.keep_epochs or self.lists == "vocabulary"):
            raise ValueError("scale: fitted is for lists of documents, without keep_epochs")
        if self.lists == "vocabulary":
            refuse(f"{key}: lists of the vocabulary do not read it; leave it out" for key in self._of_documents())
        return self

    def _of_documents(self) -> Iterator[str]:
        """Keys that are set and that only `lists: documents` reads."""
        keys = ("objective", "scores", "reweight", "label_min_documents", "reduction", "keep_epochs")
        return (key for key in keys if getattr(self, key) != type(self).model_fields[key].default)


class Finetuning(Optimisation):
    """A Stage 2 recipe: the classifier is trained (Eq. 3)."""

    loss: Name = "focal"
    """Loss of Stage 2, a module of src/plant/finetuning/losses/. focal: Eq. 3. asymmetric: the loss named in a summary
    of the paper. approx_ndcg: over labels, the loss in the authors' code (choice C23)."""
    loss_options: dict[Name, float] = Field(default_factory=dict)
    """Parameters of a loss that have no key of their own here, by name."""
    gamma: Annotated[float, Field(ge=0)] = 2.0
    """Focusing parameter of the focal loss (Eq. 3). With gamma 0, epsilon 0 and hard_negatives none it is the BCE
    loss."""
    epsilon: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    """Label smoothing of the focal loss: targets are 1 - epsilon and epsilon (appendix A; choice C17)."""
    hard_negatives: Positive | None = 1000
    """Number m of negative labels in the loss: those with the highest predicted probability (section 2; choice C13).
    None: all negatives."""
    gamma_positive: Annotated[float, Field(ge=0)] = 0.0
    """Focusing parameter of positive labels in the asymmetric loss."""
    gamma_negative: Annotated[float, Field(ge=0)] = 4.0
    """Focusing parameter of negative labels in the asymmetric loss."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """In the asymmetric loss, a negative label with a lower probability than this costs nothing."""
    temperature: Rate = 0.1
    """Temperature of the smooth ranks in approx_ndcg (choice C23)."""
    shortlist: Annotated[int, Field(gt=0, le=100_000)] | None = None
    """Train and predict on this number of candidate labels per document, and in training on its positives too.
    Candidates are the labels with the largest sum of relevance over the document's tokens. None: all labels."""
    shortlist_above: Count = 50_000
    """`shortlist` is used only with more labels than this."""
    attention_rate: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """Factor on the learning rate of the planted parts (E, W_Q, W_K). 1: trained as usual. 0: frozen. Reviewers of the
    paper asked for it."""
    attention_from_epoch: Positive = 1
    """First epoch in which the planted parts are trained. 2: the first pass trains what uses the attention, while the
    attention is held still (choice C39)."""
    backbone_from_epoch: Positive = 1
    """First epoch in which the backbone is trained (gradual unfreezing, choice C15)."""
    static_attention: Annotated[float, Field(ge=0)] = 0.0
    """Weight lambda: lambda times the relevance of the token is added to the attention scores of every head before the
    softmax, in training and in prediction (choice C26). 0: learned attention only."""
    static_place: Literal["scores", "weights"] = "scores"
    """Where the static attention is added. scores: before the softmax. weights: to the weights after it, as S in
    Eq. 7 of the earlier version (choice C37)."""
    differentiable_attention: Annotated[float, Field(ge=0)] = 0.0
    """Factor of P, the attention of the ranking model that Stage 1 trained with `lists: vocabulary`. It is added to the
    weights after the softmax (earlier version, Eqs. 6 and 7). `attention_rate` is then the rate of the ranking model
    (its 1/2 and 1/3). 0: none."""
    inattention: Positive | None = None
    """Threshold k of P (earlier version, A.5), with `differentiable_attention`. None: no threshold."""
    losers: Literal["zero", "minus_infinity"] = "minus_infinity"
    """What becomes of scores below the threshold of `inattention` before the softmax (choice C34). zero: as printed."""
    segment: Positive | None = None
    """Number of tokens of a segment: label attention looks at one segment at a time, and a state adds them up (earlier
    version, section 3.2; it uses 72). None: the whole document at once."""
    decoder_state: Literal["sum", "tanh"] = "tanh"
    """How the state of `segment` goes on: D + V, or tanh(D + V) (choice C36)."""
    unfreezing: Literal["together", "gradual"] = "together"
    """gradual: the backbone's layers begin to train one after the other, the last layer in `backbone_from_epoch`, the
    one below it an epoch later (earlier version, section 3.2)."""
    static_measure: Name = "mig"
    """Relevance measure of the static attention. random, shuffled and constant are controls (choice C26)."""
    residual: Positive | None = None
    """Number of tokens per label, the most informative ones, whose log-odds are added to its logit with one trained
    weight (choice C27). None: nothing is added."""
    residual_folds: Positive = 5
    """Number of folds. The log-odds for a training document are counted without the documents of its fold. 1: counted
    on all training documents, a control that shows the optimism (choice C27)."""

    @model_validator(mode="after")
    def _has_what_its_keys_change(self) -> Finetuning:
        if self.inattention is not None and not self.differentiable_attention:
            raise ValueError("inattention: needs differentiable_attention, whose scores it cuts")
        if self.losers != "minus_infinity" and self.inattention is None:
            raise ValueError("losers: needs inattention, whose threshold makes them")
        if self.static_measure != "mig" and not self.static_attention:
            raise ValueError("static_measure: needs static_attention, whose relevance it names")
        return self


class Evidence(Frozen):
    """A Stage 3 recipe: a weighted sum of the network's logit and of word scores, fitted on the validation split
    (choice C25)."""

    channels: Once[Name] = ("network", "log_odds", "linear", "prior")
    """Scores that are summed: `network` (its logit), `prior` (the log-odds of the label in the train split), and the
    scores of baselines, by the names of their channels in src/plant/baselines/: `log_odds`, `linear`, `characters` and
    `categories` (choice C30), `descriptions` and `mentions` (choice C29)."""
    slopes: bool = False
    """True: the weight of a channel is a linear function of log(1 + training documents of the label) and never
    negative. This doubles the number of fitted parameters."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Number of folds. The score of a validation document comes from a fit without its fold. All documents of a group
    (patient) are in one fold."""
    ridge: Annotated[float, Field(ge=0)] = 1.0
    """Ridge penalty: half of it times the squared weights of the standardised channels is added to the summed log-loss.
    It keeps the weights finite if the validation split can be separated without error."""

    @model_validator(mode="after")
    def _reads_more_than_the_prior(self) -> Evidence:
        if not set(self.channels) - {"prior"}:
            raise ValueError("at least one channel other than prior is needed")
        return self


class Variant(Frozen):
    """A system with a network: its recipes, under the name that the tables use."""

    pretraining: Name = NO_PRETRAINING
    """Name of the Stage 1 recipe. `none`: random initialisation."""
    finetuning: Name
    """Name of the Stage 2 recipe."""
    pretraining_epoch: Positive | None = None
    """Start Stage 2 from the weights after this epoch of Stage 1 (needs `keep_epochs`). None: the best epoch (choice
    C24)."""
    evidence: Name | None = None
    """Name of the Stage 3 recipe. None: the scores of the network (choice C25)."""
    average_with: Name | None = None
    """Another backbone: the probabilities are averaged with those of the same recipes on it (earlier version, A.11: a
    forward and a backward AWD-LSTM). None: the scores of one network."""
    title: str | None = None
    """Title in tables and figures. None: the name."""

    @property
    def is_planted(self) -> bool:
        """Whether the variant has a Stage 1."""
        return self.pretraining != NO_PRETRAINING

    @property
    def initial(self) -> str:
        """What Stage 2 starts from: `none`, a Stage 1 recipe, or one of its epochs."""
        return self.pretraining + ("" if self.pretraining_epoch is None else f"@{self.pretraining_epoch}")

    @property
    def network(self) -> str:
        """Folder name of the network. Variants with the same first two stages share it.

        >>> Variant(pretraining="plant", finetuning="bce", pretraining_epoch=3, evidence="all").network
        'plant@3+bce'
        """
        return f"{self.initial}+{self.finetuning}"
