"""What Stage 2 keeps beside what it learns: static attention (C26, C37), a residual (C27), and the earlier version's
attention of the ranking model with its segments (C34, C36).

Static attention and residual come from token counts of the training split. All of them come to the classifier
with each batch (`plant.model.classifier.Known`), in training, validation and prediction.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.ground.settings import Finetuning
from plant.model.assemble import TrainingData
from plant.model.classifier import Known, LabelClassifier
from plant.model.l2r import inattention
from plant.model.label_attention import ScoreBias
from plant.pretraining.lists import TopTokens, load_top_tokens

Static = Callable[[np.ndarray | None, np.ndarray], np.ndarray]
"""(label ids (m) or None for all, input ids of a document (n)) -> lambda r_lj f32 (m, n), 0 where the token is not in
T_l."""


def keep_evidence(
    data: TrainingData,
    classifier: LabelClassifier,
    settings: Finetuning,
    *,
    static: Path | None,
    residual: Path | None,
    whole: bool,
) -> TrainingData:
    """The data with the evidence that a recipe keeps; with a residual, the head gets one trained weight for it.

    Args:
        data: documents and label space.
        classifier: before its weights of Stage 2 are loaded; it learns to read segments.
        settings: `static_attention`, `differentiable_attention`, `segment` and `residual`.
        static: `{measure}.safetensors` of the relevance room, where the recipe has a static part.
        residual: `{measure}.residual{k}x{folds}.safetensors` of the relevance room, where it has a residual.
        whole: whether all labels are scored. With a shortlist, relevance is read from disk batch by batch.

    Raises:
        InputError: a file is of another corpus.
    """
    classifier.segment, classifier.state = settings.segment, settings.decoder_state
    if not settings.static_attention and not settings.differentiable_attention and settings.residual is None:
        return data
    static_part, log_odds, strength = None, None, settings.static_attention
    if strength:
        assert static is not None
        top = load_top_tokens(static, data, k=None)
        static_part = by_token(top, strength) if whole else by_label(top, strength)
    if settings.residual is not None:
        assert residual is not None
        log_odds = load_log_odds(residual, data)
        classifier.head.weigh_evidence()

    def known(batch: np.ndarray, device: torch.device) -> Known:
        """Static attention and residual of some documents; called for every batch (`Corpus.known`)."""
        tokens = [data.corpus.tokens(int(document)) for document in batch]
        bias, weights, evidence = None, None, None
        if static_part is not None:
            bias = as_bias(static_part, tokens, device)
        if settings.static_place == "weights":
            bias, weights = None, bias
        if settings.differentiable_attention:
            weights = _added(weights, _differentiable(classifier, settings, tokens, device))
        if log_odds is not None:
            evidence = torch.from_numpy(log_odds[batch][:, data.trained].astype(np.float32)).to(device)
        return Known(bias, weights, evidence)

    return replace(data, corpus=replace(data.corpus, known=known))


def _differentiable(
    classifier: LabelClassifier, settings: Finetuning, documents: Sequence[np.ndarray], device: torch.device
) -> ScoreBias:
    """P of Eq. 6, times its factor; the ranking model comes with the weights, which are loaded after the recipe."""

    def weights(row: int, labels: Tensor | None) -> Tensor:
        words = torch.from_numpy(documents[row].astype(np.int64)).to(device)
        scores = classifier.attention.l2r.scores(labels, words)  # (m, n)
        return settings.differentiable_attention * inattention(scores, settings.inattention, settings.losers)

    return weights


def _added(first: ScoreBias | None, second: ScoreBias) -> ScoreBias:
    return second if first is None else lambda row, labels: first(row, labels) + second(row, labels)


def as_bias(static: Static, documents: Sequence[np.ndarray], device: torch.device) -> ScoreBias:
    """The relevance of the tokens of a batch's documents, for the label attention."""

    def bias(row: int, labels: Tensor | None) -> Tensor:
        asked = None if labels is None else labels.cpu().numpy()
        return torch.from_numpy(static(asked, documents[row])).to(device)  # (m, n')

    return bias


def by_token(top: TopTokens, strength: float) -> Static:
    """For label sets that are scored whole: T_l of all labels as a matrix with its columns at hand.

    A document then costs the pairs of label and token that it meets, not all pairs. The matrix takes 8 bytes a pair;
    pairs of relevance 0 are left out.
    """
    begins = np.repeat(top.starts - (np.cumsum(top.sizes) - top.sizes), top.sizes)
    entry = begins + np.arange(len(begins))  # of the pairs, label by label
    label = np.repeat(np.arange(len(top.sizes)), top.sizes)
    informative = top.relevance[entry] > 0
    entry, label = entry[informative], label[informative]
    values = np.float32(strength) * top.relevance[entry]
    matrix = sparse.csc_array((values, (label, top.token_id[entry])), shape=(len(top.sizes), top.vocabulary))

    def static(labels: np.ndarray | None, input_ids: np.ndarray) -> np.ndarray:
        tokens, where = np.unique(input_ids, return_inverse=True)
        met = matrix[:, tokens].toarray()  # (|L|, distinct tokens)
        return np.take(met if labels is None else met[labels], where, axis=1)

    return static


def by_label(top: TopTokens, strength: float) -> Static:
    """For a few labels of a large set: the lists of the labels that are asked for."""

    def static(labels: np.ndarray | None, input_ids: np.ndarray) -> np.ndarray:
        asked = np.arange(len(top.sizes)) if labels is None else labels
        return np.float32(strength) * np.maximum(top.relevance_of(asked, input_ids), 0)

    return static


def load_log_odds(source: Path, data: TrainingData) -> np.ndarray:
    """The log-odds of every document and label, fp16 (N, |L| of the full list)."""
    table = read_arrays(source)["log_odds"]
    shape = (len(data.corpus.offsets) - 1, len(data.names))
    if len(table) != shape[0] * shape[1]:
        raise InputError(
            str(source), expected=f"log-odds of {shape[0]} documents and {shape[1]} labels",
            got=f"{len(table)} numbers", fix="Delete it and run again.",
        )  # fmt: skip
    return table.reshape(shape)
