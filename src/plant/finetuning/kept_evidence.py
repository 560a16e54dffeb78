"""Ways to keep the evidence of counts in Stage 2: a static part of the attention (choice C26), a residual (C27).

Both are what counts over the training split say of a document. They come to the classifier with each batch
(`plant.model.classifier.Known`), in training, validation and prediction alike.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.ground.settings import Finetuning
from plant.kernels.attention import ScoreBias
from plant.model.assemble import TrainingData
from plant.model.batches import Corpus
from plant.model.classifier import Known, LabelClassifier
from plant.pretraining.lists import TopTokens, load_top_tokens

Static = Callable[[np.ndarray | None, np.ndarray], np.ndarray]
"""(label ids (m) or None for all, input ids of a document (n)) -> lambda r_lj f32 (m, n), 0 where the token is not in
T_l."""


@dataclass(frozen=True)
class ByToken:
    """T_l of all labels, ordered by token: what a document meets is found at the cost of the pairs that it meets.

    A copy of the relevance, 8 bytes a pair; for label sets that are scored whole.

    Attributes:
        starts: i64 (V + 1), where a token's labels begin.
        label: i32.
        value: f32, lambda times the relevance, above 0.
        n_labels: |L|.
    """

    starts: np.ndarray
    label: np.ndarray
    value: np.ndarray
    n_labels: int

    @classmethod
    def of(cls, top: TopTokens, strength: float) -> "ByToken":
        """Turn the lists of labels over. Pairs of relevance 0 are left out.

        Args:
            top: T_l of every label.
            strength: lambda, above 0.
        """
        entry = _ranges(top.starts, top.sizes)
        label = np.repeat(np.arange(len(top.sizes), dtype=np.int32), top.sizes)
        relevance = top.relevance[entry]
        informative = relevance > 0
        entry, label, relevance = entry[informative], label[informative], relevance[informative]
        token = top.token_id[entry]
        order = np.argsort(token, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(token, minlength=top.vocabulary))])
        return cls(starts, label[order], np.float32(strength) * relevance[order], len(top.sizes))

    def __call__(self, labels: np.ndarray | None, input_ids: np.ndarray) -> np.ndarray:
        """See `Static`. A label may be asked for several times."""
        tokens, where = np.unique(input_ids, return_inverse=True)
        sizes = self.starts[tokens + 1] - self.starts[tokens]
        entry, column = _ranges(self.starts[tokens], sizes), np.repeat(np.arange(len(tokens)), sizes)
        found = np.zeros((self.n_labels, len(tokens)), dtype=np.float32)
        found[self.label[entry], column] = self.value[entry]
        return np.take(found if labels is None else found[labels], where, axis=1)


@dataclass(frozen=True)
class KeptEvidence:
    """What counts say of any documents of a corpus; called for every batch (`Corpus.known`).

    Attributes:
        corpus: whose documents are asked for.
        static: what is added to the scores of every head, or None without a static part.
        log_odds: fp16 (N, |L| of the full list) memory map, or None without a residual.
        trained: ids, in the full list, of the labels of the classifier.
    """

    corpus: Corpus
    static: Static | None
    log_odds: np.ndarray | None
    trained: np.ndarray

    def __call__(self, batch: np.ndarray, device: torch.device) -> Known:
        """Of some documents."""
        evidence = None
        if self.log_odds is not None:
            rows = self.log_odds[batch][:, self.trained].astype(np.float32)
            evidence = torch.from_numpy(rows).to(device)
        return Known(None if self.static is None else self._bias(self.static, batch, device), evidence)

    def _bias(self, static: Static, batch: np.ndarray, device: torch.device) -> ScoreBias:
        def bias(row: int, labels: Tensor | None) -> Tensor:
            asked = None if labels is None else labels.cpu().numpy()
            return torch.from_numpy(static(asked, self.corpus.tokens(int(batch[row])))).to(device)

        return bias


def keep_evidence(
    data: TrainingData,
    classifier: LabelClassifier,
    settings: Finetuning,
    *,
    static: Path | None,
    residual: Path | None,
    whole: bool,
) -> TrainingData:
    """The data with the evidence that a recipe keeps; a residual gives the head its weight.

    Args:
        data: documents and label space.
        classifier: before its weights of Stage 2 are loaded.
        settings: `static_attention` and `residual`.
        static: `{measure}.safetensors` of the relevance room, where the recipe has a static part.
        residual: `{measure}.residual{k}x{folds}.safetensors` of the relevance room, where it has a residual.
        whole: whether all labels are scored; with a shortlist the relevance stays where it is, on disk.

    Raises:
        InputError: a file is needed and was not given, or is of another corpus.
    """
    if not settings.static_attention and settings.residual is None:
        return data
    added, log_odds, strength = None, None, settings.static_attention
    if strength:
        top = load_top_tokens(_needed(static, "static_attention", "--static"), data, k=None)
        added = ByToken.of(top, strength) if whole else _of_lists(top, strength)
    if settings.residual is not None:
        log_odds = load_log_odds(_needed(residual, "residual", "--residual"), data)
        classifier.head.weigh_evidence()
    known = KeptEvidence(data.corpus, added, log_odds, data.trained)
    return replace(data, corpus=replace(data.corpus, known=known))


def load_log_odds(source: Path, data: TrainingData) -> np.ndarray:
    """The log-odds of every document and label, fp16 (N, |L| of the full list).

    Raises:
        InputError: the file is of another corpus.
    """
    table = read_arrays(source)["log_odds"]
    shape = (len(data.corpus.offsets) - 1, len(data.names))
    if len(table) != shape[0] * shape[1]:
        raise InputError(
            str(source), expected=f"log-odds of {shape[0]} documents and {shape[1]} labels",
            got=f"{len(table)} numbers", fix="Delete it and run again.",
        )  # fmt: skip
    return table.reshape(shape)


def _needed(source: Path | None, key: str, option: str) -> Path:
    if source is None:
        raise InputError(
            f"finetunings: {key}", expected="a file of the relevance room", got="none", fix=f"Pass {option}."
        )
    return source


def _of_lists(top: TopTokens, strength: float) -> Static:
    """From the lists of the labels that are asked for: for a few labels of a large set."""

    def static(labels: np.ndarray | None, input_ids: np.ndarray) -> np.ndarray:
        asked = np.arange(len(top.sizes)) if labels is None else labels
        return np.float32(strength) * np.maximum(top.relevance_of(asked, input_ids), 0)

    return static


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, ... (sizes[0] numbers), starts[1], ...: one after the other."""
    begins = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return begins + np.arange(len(begins))
