"""The label classifier: backbone states in, one logit for each label out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from plant.model.label_attention import ScoreBias, Sizes
from plant.model.registry import ATTENTIONS

LabelVectors = tuple[Tensor, ...]
"""What logits take from the labels, |L| rows each: the queries, then what the head takes. No document changes it."""


@dataclass(frozen=True)
class Known:
    """What counts over the train split say of a batch (`plant.finetuning.kept_evidence`).

    Attributes:
        bias: is added to the scores of label attention (choice C26).
        weights: is added to the attention after the softmax, S and P of the earlier version (choice C37). Its result
            carries a gradient.
        evidence: log-odds that are added to the logits with one trained weight, (B, |L|) (choice C27).
    """

    bias: ScoreBias | None = None
    weights: ScoreBias | None = None
    evidence: Tensor | None = None


NOTHING = Known()


@dataclass(frozen=True)
class Documents:
    """A padded batch of documents as the classifier reads it."""

    mask: Tensor  # (B, n), True at tokens
    input_ids: Tensor | None = None  # (B, n); None where features are cached
    features: Tensor | None = None  # (B, n, h), cached hidden states
    known: Known = NOTHING


@dataclass(frozen=True)
class _Group:
    """Documents that the labels attend to at once, b of them: one on a CPU, the whole batch on a GPU."""

    hidden: Tensor  # H (b, n, h)
    mask: Tensor | None  # (b, n); None where all states are attended to
    queries: Tensor  # of the labels asked for, (b, m, d)
    of_labels: tuple[Tensor, ...]  # what the head takes from these labels, (b, m, ...) each
    bias: Tensor | None  # is added to the scores, (b, m, n)
    weights: Tensor | None  # is added to the attention after the softmax, (b, m, n)

    def part(self, rows: Tensor, tokens: slice) -> "_Group":
        """Some tokens of some documents."""
        return replace(
            self, hidden=self.hidden[rows, tokens], mask=None if self.mask is None else self.mask[rows, tokens],
            queries=self.queries[rows], of_labels=tuple(x[rows] for x in self.of_labels),
            bias=None if self.bias is None else self.bias[rows, :, tokens],
            weights=None if self.weights is None else self.weights[rows, :, tokens],
        )  # fmt: skip


class LabelClassifier(nn.Module):
    """Backbone, label attention and head (section 2).

    Args:
        backbone: maps (input_ids, mask) to H; None where every batch brings cached features.
        n_labels, hidden_size: |L| of the labels that have training documents, and h.
        attention: name of a label attention, see `plant.model.registry`.
        heads, pool_size, projection: as in `plant.model.label_attention.Sizes`.
        mask_padding: False lets label attention see padding (a documented fault of the field, to compare).

    Attributes:
        segment: tokens of a segment, where documents are read in segments (`_logits_of_segments`); else None.
        state: phi of the segments, `sum` or `tanh`.
    """

    attention: Any  # plant.model.label_attention.Attention
    head: Any  # plant.model.label_attention.EvidenceHead

    def __init__(
        self,
        backbone: nn.Module | None,
        *,
        n_labels: int,
        hidden_size: int,
        attention: str = "multi_head",
        heads: int = 1,
        pool_size: int = 1,
        projection: int | None = None,
        mask_padding: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        sizes = Sizes(n_labels, hidden_size, heads=heads, pool=pool_size, projection=projection)
        self.attention, self.head = ATTENTIONS.load(attention)(sizes)
        self.mask_padding = mask_padding
        self.segment: int | None = None
        self.state = "sum"

    @property
    def n_labels(self) -> int:
        return self.attention.embeddings.shape[0]

    @property
    def needs_loss_scaling(self) -> bool:
        """True where gradients pass through fp16 on a GPU: small ones would round to zero."""
        if self.backbone is None or self.attention.embeddings.device.type != "cuda":
            return False
        return getattr(self.backbone, "precision", "fp32") == "fp16"

    def hidden_states(self, documents: Documents) -> Tensor:
        """H (B, n, h)."""
        if documents.features is not None:
            return documents.features
        assert self.backbone is not None
        return self.backbone(documents.input_ids, documents.mask)

    def logits(
        self,
        hidden: Tensor,
        mask: Tensor,
        labels: Tensor | None = None,
        *,
        vectors: LabelVectors | None = None,
        known: Known = NOTHING,
    ) -> Tensor:
        """Logits of the labels asked for.

        A CPU takes the documents one by one, each without its padding. A GPU takes the padded batch at once.

        Args:
            hidden, mask: H (B, n, h) and (B, n).
            labels: ids (B, m), or None for all.
            vectors: `label_vectors()` of the present weights, where it serves many batches.
            known: of the same documents; a bias belongs to masks that are True at the first tokens of a row.

        Returns:
            (B, m) or (B, |L|).
        """
        vectors = self.label_vectors() if vectors is None else vectors
        groups = self._groups(hidden, mask, labels, vectors, known)
        logits = torch.cat([
            self.head(self._attended(group), *group.of_labels) if self.segment is None
            else self._logits_of_segments(group, self.segment) for group in groups
        ])  # fmt: skip
        if known.evidence is None:
            return logits
        return self.head.with_evidence(logits, known.evidence if labels is None else known.evidence.gather(1, labels))

    def label_vectors(self) -> LabelVectors:
        """What `logits` take from the labels; constant as long as the weights are."""
        return self.attention.queries(), *self.head.label_vectors(self.attention)

    def _groups(
        self, hidden: Tensor, mask: Tensor, labels: Tensor | None, vectors: LabelVectors, known: Known
    ) -> Iterator[_Group]:
        alone = one_by_one(hidden.device)
        size = 1 if alone else max(1, len(hidden))
        masked = self.mask_padding or self.segment is not None  # segments never see padding
        of_labels = (_split(x, labels, len(hidden), size) for x in vectors)
        parts = zip(_parts(hidden, size), _parts(mask, size), *of_labels, strict=True)
        for position, (states, allowed, queries, *of_head) in enumerate(parts):
            # (b, n, h); a document alone keeps its own tokens only, and then needs no mask
            seen = states.index_select(1, allowed.any(0).nonzero()[:, 0]) if masked and alone else states
            first = position * size
            asked = None if labels is None else labels[first : first + size]
            bias, weights = (
                None if added is None else self.dense_bias(seen, asked, added, first)
                for added in (known.bias, known.weights)
            )
            yield _Group(seen, allowed if masked and not alone else None, queries, tuple(of_head), bias, weights)

    def _attended(self, group: _Group) -> Tensor:
        """What the labels attend to, (b, m, h); the weights add to the attention's own (Eq. 7)."""
        attended = self.attention.attend(group.queries, group.hidden, group.mask, group.bias)
        return attended if group.weights is None else attended + group.weights @ self.attention.values(group.hidden)

    def _logits_of_segments(self, group: _Group, size: int) -> Tensor:
        """Logits (b, m) of documents that are read in segments (earlier version, section 3.2; choice C36).

            V_t = (attention inside segment t) . H_t * W    D_t = phi(D_{t-1}, V_t)    logit = 1 . D_last + b

        phi is D + V (`sum`) or tanh(D + V) (`tanh`).
        """
        weight, bias = group.of_labels  # (b, m, h), (b, m)
        states = group.hidden.new_zeros(weight.shape)  # D (b, m, h)
        for start in range(0, group.hidden.shape[1], size):
            tokens = slice(start, start + size)
            # documents that have tokens here; the others keep their state
            has = group.hidden.new_ones(len(states)) if group.mask is None else group.mask[:, tokens].any(1)
            rows = has.nonzero()[:, 0]  # (r)
            part = group.part(rows, tokens)
            new = states[rows] + self.head.products(self._attended(part), part.of_labels[0])  # D + V_t, (r, m, h)
            states = states.index_copy(0, rows, new if self.state == "sum" else new.tanh())
        return self.head.summed(states, bias)

    def dense_bias(self, hidden: Tensor, labels: Tensor | None, bias: ScoreBias, first: int = 0) -> Tensor:
        """The bias of some documents of a batch, (b, m, n), 0 at padding; `first` is the place of the first of them."""
        asked = self.n_labels if labels is None else labels.shape[1]
        added = hidden.new_zeros(len(hidden), asked, hidden.shape[1])
        for row in range(len(added)):
            part = bias(first + row, None if labels is None else labels[row])
            added[row, :, : part.shape[1]] = part
        return added

    @torch.no_grad()
    def attention_weights(
        self, hidden: Tensor, mask: Tensor, labels: Tensor, known: Known = NOTHING, row: int = 0
    ) -> Tensor:
        """The attention of labels (1, m) to the tokens of one document as the head uses it: (m, n), rows sum to 1.

        It is S of Eq. 1 with static attention in its scores, the mean over heads. What Eq. 7 adds after the softmax is
        added, and the row is scaled to sum to 1. With `segment` the softmax is over each segment, and all segments
        weigh the same. `known` is that of the batch in which the document has the place `row`.
        """
        bias = None if known.bias is None else self.dense_bias(hidden, labels, known.bias, row)
        parts = []
        for start in range(0, hidden.shape[1], self.segment or hidden.shape[1]):
            part = slice(start, start + (self.segment or hidden.shape[1]))
            own = None if bias is None else bias[:, :, part]
            parts.append(self.attention.token_probabilities(hidden[:, part], labels, mask[:, part], own))
        if len(parts) == 1 and known.weights is None:
            return parts[0][0]
        weights = torch.cat(parts, dim=-1)
        if known.weights is not None:
            weights = weights + self.dense_bias(hidden, labels, known.weights, row)
        return (weights / weights.sum(-1, keepdim=True))[0]

    @torch.no_grad()
    def predict(
        self, documents: Documents, labels: Tensor | None = None, *, vectors: LabelVectors | None = None
    ) -> Tensor:
        """`logits` of documents, without gradient."""
        hidden = self.hidden_states(documents)
        return self.logits(hidden, documents.mask, labels, vectors=vectors, known=documents.known)


def one_by_one(device: torch.device) -> bool:
    """Whether documents are attended to one by one, without padding: on a CPU, where padding costs time.

    Not while a graph is made of the model (`plant.serving.onnx`): its batch and lengths are free.
    """
    return device.type == "cpu" and not torch.compiler.is_exporting()


def _parts(x: Tensor, size: int) -> Sequence[Tensor]:
    """Rows of a batch, `size` at a time. A whole batch is not cut: no graph of ONNX can cut one whose size is free."""
    return [x] if size >= len(x) else x.split(size)


def _split(x: Tensor, labels: Tensor | None, documents: int, size: int) -> Sequence[Tensor]:
    """Rows of the labels that each group of documents asks for: (|L|, ...) -> (size, m, ...) for each group.

    The rows are gathered once for the batch, so that the backward pass adds to all labels (|L|, ...) once.
    """
    if labels is not None:
        return x[labels].split(size)
    return [x.expand(min(size, documents), *x.shape)] * max(1, -(-documents // size))
