"""Stage 1 as one function on lists of numbers, for the label attention in somebody else's classifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from plant.ground.errors import InputError
from plant.ground.seeds import generator
from plant.ground.settings import Pretraining, Relevance
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import pretrain
from plant.relevance.choice import Training, chosen
from plant.relevance.contingency import label_documents


def plant_attention(
    model: LabelClassifier,
    tokens: Sequence[Sequence[int]],
    labels: Sequence[Sequence[int]],
    *,
    encoder: nn.Module,
    recipe: Pretraining | None = None,
    relevance: Relevance | None = None,
    validation: float = 0.1,
    seed: int = 0,
) -> list[dict[str, float]]:
    """Stage 1 (Eq. 2): train a label attention to rank each document's tokens by relevance to each label.

    Relevance is counted on the training documents (`recipe.measure`, mutual information by default). What is trained:
    the weights that the attention's scores come from, and the weights of the encoder that require a gradient. The rest
    of the model keeps its weights. The caller's random state is left as it was.

    Args:
        model: a label attention with its head and no backbone; trained in place.
        tokens: input ids of each document, with special tokens and cut as the encoder wants them.
        labels: numbers of each document's labels, below `model.n_labels`.
        encoder: a Hugging Face base model, called with `input_ids` and `attention_mask`.
        recipe: of Stage 1; None: that of the paper, with 5 epochs.
        relevance: which tokens may be chosen; None: the pipeline's, as many as `recipe.k`.
        validation: share of the documents that the best epoch is chosen on, between 0 and 1.
        seed: of the split, of the order and of sampled labels.

    Returns:
        A row for each epoch: `epoch`, `loss`, `ndcg_val` and others; the model has the weights of the best one.

    Raises:
        InputError: documents and labels do not belong together, or there is nothing to rank.
    """
    settings = recipe or Pretraining(epochs=5)
    top_settings = relevance or Relevance(k=settings.k)
    corpus = _corpus(model, tokens, labels, validation, seed)
    top = _top_tokens(corpus, model.n_labels, settings, top_settings)
    model.backbone = _HiddenStates(encoder)
    try:
        with torch.random.fork_rng(), TemporaryDirectory() as folder:
            return pretrain(model, corpus, top, settings, seed=seed, checkpoint=Path(folder), digest="")
    finally:
        model.backbone = None


class _HiddenStates(nn.Module):
    """A Hugging Face model as a backbone: (input_ids, mask) -> H (B, n, h)."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        states: Any = self.encoder(input_ids=input_ids, attention_mask=mask.long())
        return states.last_hidden_state.float()


def _corpus(
    model: LabelClassifier, tokens: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], share: float, seed: int
) -> Corpus:
    """The documents in a random order: training ones first, then those for validation."""
    if len(tokens) != len(labels) or not 0 < share < 1:
        raise InputError(
            "plant_attention", expected="labels for every document, and a share for validation between 0 and 1",
            got=f"{len(tokens)} documents, {len(labels)} lists of labels and {share:g}", fix="Correct them.",
        )  # fmt: skip
    sets = [sorted(set(map(int, some))) for some in labels]
    if any(some and not (some[0] >= 0 and some[-1] < model.n_labels) for some in sets):
        raise InputError(
            "plant_attention", expected=f"labels from 0 to {model.n_labels - 1}", got="others", fix="Number them anew."
        )
    order = generator(seed, "library", "split").permutation(len(tokens))
    none = [np.zeros(0, np.int32)]
    rows = none + [np.asarray(tokens[place], np.int32) for place in order]
    own = none + [np.asarray(sets[place], np.int32) for place in order]
    ends, edges = (np.cumsum([len(row) for row in some]).astype(np.int64) for some in (rows, own))
    first = len(order) - max(1, round(share * len(order)))
    splits = {"train": (0, first), "val": (first, len(order)), "test": (len(order), len(order))}
    return Corpus(np.concatenate(rows), ends, edges, np.concatenate(own), splits)


def _top_tokens(corpus: Corpus, n_labels: int, settings: Pretraining, relevance: Relevance) -> TopTokens:
    """T_l of every label, from the training documents."""
    last = corpus.splits["train"][1]
    vocabulary = 1 + int(corpus.input_ids.max(initial=0))
    offsets, indptr = corpus.offsets[: last + 1], corpus.indptr[: last + 1]
    begins, documents = label_documents(indptr, corpus.indices[: indptr[-1]], n_labels)
    names, words = (tuple(map(str, range(size))) for size in (n_labels, vocabulary))
    counted = np.ones(vocabulary, bool)
    training = Training(
        names, words, corpus.input_ids[: offsets[-1]], offsets, counted, begins, documents, relevance.min_documents
    )
    pieces = list(chosen(training, settings.measure, relevance))
    lengths = np.zeros(n_labels, np.int64)
    for piece in pieces:
        lengths[piece.labels] = piece.lengths
    token = np.concatenate([np.zeros(0, np.int32), *(piece.token.astype(np.int32) for piece in pieces)])
    values = np.concatenate([np.zeros(0, np.float32), *(piece.relevance for piece in pieces)])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return TopTokens.from_csr(ends, token, values, k=settings.k, vocabulary=vocabulary)
