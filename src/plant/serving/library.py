"""Stage 1 and static planting as functions on lists of numbers, for label attention in somebody else's classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from plant.finetuning.kept_evidence import as_bias, by_token
from plant.ground.errors import InputError, nearest
from plant.ground.seeds import generator
from plant.ground.settings import Pretraining, Relevance
from plant.model.batches import Corpus
from plant.model.classifier import Known, LabelClassifier
from plant.model.fitting import TrainingRun
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import pretrain
from plant.relevance.choice import Training, chosen
from plant.relevance.contingency import label_documents
from plant.relevance.measures import MEASURES


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
    the weights that the attention's scores come from, and the weights of the encoder that require a gradient. The
    caller's random state stays, and so do the modes of the modules.

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
        InputError: an argument is out of range, or there is nothing to rank.
    """
    settings = recipe or Pretraining(epochs=5)
    if settings.lists != "documents" or len(tokens) < 2 or not 0 < validation < 1:
        raise InputError(
            "plant_attention", expected="two documents or more, a share for validation between 0 and 1, and a recipe "
            "with `lists: documents`",
            got=f"{len(tokens)}, {validation:g} and `lists: {settings.lists}`", fix="Correct them.",
        )  # fmt: skip
    order = generator(seed, "library", "split").permutation(len(tokens))
    last = len(order) - max(1, round(validation * len(order)))
    corpus = _corpus(tokens, labels, model.n_labels, order, last)
    relevance = relevance or Relevance(k=settings.k)
    top = _top_tokens(corpus, model.n_labels, settings.measure, relevance, settings.k)
    modes = [(module, module.training) for part in (model, encoder) for module in part.modules()]
    model.backbone = _HiddenStates(encoder)
    try:
        with torch.random.fork_rng(), TemporaryDirectory() as folder:
            return pretrain(model, corpus, top, settings, TrainingRun(seed, Path(folder), ""))
    finally:
        model.backbone = None
        for module, mode in modes:
            module.training = mode


def static_planting(
    tokens: Sequence[Sequence[int]],
    labels: Sequence[Sequence[int]],
    *,
    n_labels: int,
    strength: float = 1.0,
    place: Literal["weights", "scores"] = "weights",
    measure: str = "mig",
    relevance: Relevance | None = None,
) -> Callable[[Tensor, Tensor], Known]:
    """Static planting: the relevance of a document's tokens stays in the label attention (S of Eq. 7, choice C37).

    Relevance is counted once, on the training documents: the same ones give the same numbers again.

    Args:
        tokens, labels, n_labels: input ids and labels of each training document, and |L|.
        strength: lambda, above 0; a label's best token gets this much.
        place: `weights` adds after the softmax (1.0 was tried), `scores` before it (3.0; choice C26).
        measure: of relevance.
        relevance: which tokens may be chosen; None: the pipeline's, 1,000 for each label.

    Returns:
        A function of a batch, input ids (B, n) and mask (B, n) with padding at the end, for
        `LabelClassifier.logits(..., known=...)`, in training and in prediction. Ids that no training document has get
        nothing.

    Raises:
        InputError: an argument is out of range, or no token may be chosen.
    """
    if not (strength > 0 and place in ("weights", "scores")):
        raise InputError(
            "static_planting", expected="a strength above 0, and `weights` or `scores` as the place",
            got=f"{strength:g} and {place!r}", fix="Correct them.",
        )  # fmt: skip
    corpus = _corpus(tokens, labels, n_labels, np.arange(len(tokens)), len(tokens))
    relevance = relevance or Relevance()
    top = _top_tokens(corpus, n_labels, measure, relevance, relevance.k)
    if not top.sizes.any():
        raise InputError(
            "static_planting", expected="a token in enough documents for some label", got="none",
            fix="Lower `min_documents` or `label_min_documents` of `relevance`, or give more documents.",
        )  # fmt: skip
    static = by_token(replace(top, vocabulary=top.vocabulary + 1), strength)  # the last id stands for unseen ones

    def of_batch(input_ids: Tensor, mask: Tensor) -> Known:
        if (mask.bool()[:, 1:] & ~mask.bool()[:, :-1]).any():  # a batch on a GPU would add to other tokens
            raise InputError(
                "static_planting", expected="padding at the end", got="padding before a token",
                fix='Set `padding_side = "right"` of the tokenizer.',
            )  # fmt: skip
        known = input_ids.clamp(max=top.vocabulary)
        rows = [ids[seen].cpu().numpy() for ids, seen in zip(known, mask.bool(), strict=True)]
        added = as_bias(static, rows, input_ids.device)
        return Known(bias=added) if place == "scores" else Known(weights=added)

    return of_batch


class _HiddenStates(nn.Module):
    """A Hugging Face model as a backbone: (input_ids, mask) -> H (B, n, h)."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        states: Any = self.encoder(input_ids=input_ids, attention_mask=mask.long())
        return states.last_hidden_state.float()


def _corpus(
    tokens: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], n_labels: int, order: np.ndarray, last: int
) -> Corpus:
    """The documents in this order: `last` for training, the others for validation."""
    if len(tokens) != len(labels):
        raise InputError(
            "tokens and labels", expected="a list of labels for each document",
            got=f"{len(tokens)} documents and {len(labels)} lists of labels", fix="Correct them.",
        )  # fmt: skip
    sets = [sorted(set(map(int, some))) for some in labels]
    if any(some and not (some[0] >= 0 and some[-1] < n_labels) for some in sets):
        raise InputError("labels", expected=f"labels from 0 to {n_labels - 1}", got="others", fix="Number them anew.")
    splits = {"train": last, "val": len(order) - last, "test": 0}
    return Corpus.of([tokens[place] for place in order], [sets[place] for place in order], splits=splits)


def _top_tokens(corpus: Corpus, n_labels: int, measure: str, relevance: Relevance, k: int) -> TopTokens:
    """T_l of every label, from the training documents."""
    known = [name for name, entry in MEASURES.items() if not entry.described]  # here no label has a description
    if measure not in known:
        fix = nearest(measure, known)
        raise InputError("measure", expected=f"one of {', '.join(known)}", got=repr(measure), fix=fix)
    last = corpus.splits["train"][1]
    vocabulary = 1 + int(corpus.input_ids.max(initial=0))
    offsets, indptr = corpus.offsets[: last + 1], corpus.indptr[: last + 1]
    begins, documents = label_documents(indptr, corpus.indices[: indptr[-1]], n_labels)
    if MEASURES[measure].shuffled:  # as for the pipeline's table
        documents = generator(relevance.seed, "relevance", "shuffled").permutation(last)[documents]
    names, words = (tuple(map(str, range(size))) for size in (n_labels, vocabulary))
    training = Training(
        names, words, corpus.input_ids[: offsets[-1]], offsets, np.ones(vocabulary, bool), begins, documents,
        relevance.min_documents,
    )  # fmt: skip
    lengths, ids, values = np.zeros(n_labels + 1, np.int64), [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for piece in chosen(training, measure, relevance):
        lengths[piece.labels + 1] = piece.lengths
        ids.append(piece.token.astype(np.int32))
        values.append(piece.relevance)
    return TopTokens.from_csr(
        np.cumsum(lengths), np.concatenate(ids), np.concatenate(values), k=k, vocabulary=vocabulary
    )
