"""The label classifier: backbone states in, one logit for each label out."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from plant.kernels.attention import ScoreBias, label_logits, rounded
from plant.model.attentions.interface import LabelVectors, Sizes
from plant.model.registry import build_attention

FEW = 2**20  # multiply-adds for the scores of one head and document; below, PyTorch's attention is faster


@dataclass(frozen=True)
class Known:
    """What counts over the train split say of a batch (`plant.finetuning.kept_evidence`).

    Attributes:
        bias: what is added to the scores of label attention (choice C26), or None.
        weights: what is added to the attention after the softmax, S and P of the earlier version (choice C37), or None.
            It is asked as a bias is; its result carries a gradient.
        evidence: log-odds that are added to the logits with one trained weight, (B, |L|) (choice C27), or None.
    """

    bias: ScoreBias | None = None
    weights: ScoreBias | None = None
    evidence: Tensor | None = None


NOTHING = Known()


@dataclass(frozen=True)
class Stateful:
    """How a document is read in segments (earlier version, section 3.2; choice C36).

        V_t = (attention inside segment t) . H_t * W    D_t = phi(D_{t-1}, V_t)    logit = 1 . D_last + b

    Attributes:
        segment: tokens of a segment.
        state: phi. `sum`: D + V. `tanh`: tanh(D + V).
    """

    segment: int
    state: str


@dataclass(frozen=True)
class Documents:
    """A padded batch of documents as the classifier reads it.

    Attributes:
        mask: (B, n), True at tokens.
        input_ids: (B, n), or None where features are cached.
        features: (B, n, h) cached hidden states, or None.
        known: what counts say of them.
    """

    mask: Tensor
    input_ids: Tensor | None = None
    features: Tensor | None = None
    known: Known = NOTHING


class LabelClassifier(nn.Module):
    """Backbone, label attention and head (section 2).

    Args:
        backbone: maps (input_ids, mask) to H; None where every batch brings cached features.
        n_labels: |L| of the labels that have training documents.
        hidden_size: h.
        attention: name of a label attention, see `plant.model.registry`.
        heads: G of the attention `multi_head`.
        pool_size: p of the attention `multi_head`.
        projection: d of attentions that project the states; None: h.
        mask_padding: False lets label attention see padding (a documented fault of the field, to compare).

    Raises:
        InputError: the attention does not fit these sizes.
    """

    attention: Any  # plant.model.attentions.interface.Attention
    head: Any  # plant.model.attentions.interface.EvidenceHead

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
        self.attention, self.head = build_attention(attention, sizes)
        self.mask_padding = mask_padding
        self.stateful: Stateful | None = None

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
        if self.backbone is None or documents.input_ids is None:
            raise ValueError("hidden_states: a batch without features needs a backbone and input ids")
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
        """Logits of the labels asked for: by `attended_logits`, or on a CPU by its fast equal `logits_by_hand`.

        Args:
            hidden: H (B, n, h).
            mask: (B, n).
            labels: ids (B, m), or None for all.
            vectors: `label_vectors()` of the present weights, where it serves many batches.
            known: of the same documents; a bias belongs to masks that are True at the first tokens of a row.

        Returns:
            (B, m) or (B, |L|).
        """
        asked = self.n_labels if labels is None else labels.shape[1]
        few = asked * hidden.shape[1] * hidden.shape[2] < FEW * self.attention.heads
        plain = few or hidden.device.type != "cpu" or known.weights is not None or self.stateful is not None
        vectors = None if plain else vectors or self.label_vectors()
        if vectors is None:
            logits = self.attended_logits(hidden, mask, labels, bias=known.bias, weights=known.weights)
        else:
            logits = self.logits_by_hand(hidden, mask, labels, vectors=vectors, bias=known.bias)
        if known.evidence is None:
            return logits
        return self.head.with_evidence(logits, known.evidence if labels is None else known.evidence.gather(1, labels))

    def attended_logits(
        self,
        hidden: Tensor,
        mask: Tensor,
        labels: Tensor | None = None,
        *,
        bias: ScoreBias | None = None,
        weights: ScoreBias | None = None,
    ) -> Tensor:
        """`logits` by PyTorch's attention. Bias and weights are made dense for the whole batch, (B, m, n)."""
        allowed = mask if self.mask_padding else None
        added = None if bias is None else self.dense_bias(hidden, labels, bias)
        more = None if weights is None else self.dense_bias(hidden, labels, weights)
        if self.stateful is None:
            return self.head(self._attended(hidden, labels, allowed, added, more), self.attention, labels)
        return self._logits_of_states(self.stateful, hidden, mask, labels, added, more)

    def _attended(
        self, hidden: Tensor, labels: Tensor | None, mask: Tensor | None, bias: Tensor | None, weights: Tensor | None
    ) -> Tensor:
        """What the labels attend to, (B, m, h); the weights (B, m, n) add to the attention's own (Eq. 7)."""
        attended = self.attention.attend(hidden, labels, mask, bias)
        return attended if weights is None else attended + weights @ self.attention.values(hidden)

    def _logits_of_states(
        self,
        how: Stateful,
        hidden: Tensor,
        mask: Tensor,
        labels: Tensor | None,
        bias: Tensor | None,
        weights: Tensor | None,
    ) -> Tensor:
        """Logits (B, m) from the states D of the segments."""
        asked = self.n_labels if labels is None else labels.shape[1]
        states = hidden.new_zeros(len(hidden), asked, hidden.shape[2])  # D (B, m, h)
        for start in range(0, hidden.shape[1], how.segment):
            part = slice(start, start + how.segment)
            rows = mask[:, part].any(1).nonzero()[:, 0]  # documents that have tokens here; the others keep their state
            attended = self._attended(
                hidden[rows, part], None if labels is None else labels[rows], mask[rows, part],
                None if bias is None else bias[rows, :, part], None if weights is None else weights[rows, :, part],
            )  # fmt: skip
            products = self.head.products(attended, None if labels is None else labels[rows])  # V_t
            new = states[rows] + products
            states = states.index_copy(0, rows, new if how.state == "sum" else new.tanh())
        return self.head.summed(states, labels)

    def dense_bias(self, hidden: Tensor, labels: Tensor | None, bias: ScoreBias) -> Tensor:
        """The bias of all documents of a batch, (B, m, n), 0 at padding."""
        asked = self.n_labels if labels is None else labels.shape[1]
        added = hidden.new_zeros(len(hidden), asked, hidden.shape[1])
        for row in range(len(added)):
            part = bias(row, None if labels is None else labels[row])
            added[row, :, : part.shape[1]] = part
        return added

    def logits_by_hand(
        self,
        hidden: Tensor,
        mask: Tensor,
        labels: Tensor | None = None,
        *,
        vectors: LabelVectors | None = None,
        bias: ScoreBias | None = None,
    ) -> Tensor:
        """`logits` by `plant.kernels.attention`, for a CPU. Differentiable once. The head must be linear."""
        vectors = vectors or self.label_vectors()
        if vectors is None:
            raise ValueError("logits_by_hand: the head of this attention is not linear; use attended_logits")
        tokens, lengths = self._visible(hidden, mask)
        logits = label_logits(
            vectors.queries, vectors.folded, self.attention.keys(tokens), self.attention.values(tokens),
            lengths=lengths, heads=self.attention.heads, labels=labels, bias=bias,
        )  # fmt: skip
        return logits + (vectors.bias if labels is None else vectors.bias[labels])

    def label_vectors(self) -> LabelVectors | None:
        """The labels' side of all logits; None where the head is not linear."""
        return self.attention.label_vectors(self.head)

    @torch.no_grad()
    def predict(
        self, documents: Documents, labels: Tensor | None = None, *, vectors: LabelVectors | None = None
    ) -> Tensor:
        """`logits` of documents, without gradient."""
        hidden = self.hidden_states(documents)
        return self.logits(hidden, documents.mask, labels, vectors=vectors, known=documents.known)

    def _visible(self, hidden: Tensor, mask: Tensor) -> tuple[Tensor, list[int]]:
        """The tokens that label attention sees, document after document (N', h), and how many each document has.

        N' is `rounded`: the first token is repeated at the end.
        """
        seen = mask if self.mask_padding else torch.ones_like(mask)
        positions = seen.flatten().nonzero()[:, 0]
        more = rounded(len(positions)) - len(positions)
        positions = torch.cat([positions, positions[:1].expand(more)])
        return hidden.flatten(0, 1).index_select(0, positions), seen.sum(1).tolist()
