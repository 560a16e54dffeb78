"""What a label attention and its head are to the rest of the model.

A label attention gives every label l a score s_lj for every token j of a document. The softmax over the tokens weighs
the document's states, and the head makes one logit of what the label attended to. Stage 1 trains the scores, the static
attention adds to them, Stage 2 trains everything.

Shapes: B documents, |L| labels, m labels asked for, n tokens of a padded document, N tokens of a batch without padding,
h size of a hidden state, d size of a query.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Sizes:
    """What an attention is built from.

    Attributes:
        labels: |L|.
        hidden: h, of the states of the backbone.
        heads: of the attention `multi_head`.
        pool: p of the attention `multi_head`.
        projection: d of attentions that project the states; None: h.
    """

    labels: int
    hidden: int
    heads: int = 1
    pool: int = 1
    projection: int | None = None


class LabelVectors(NamedTuple):
    """What a logit takes from its label, whatever the document; constant as long as the weights are."""

    queries: Tensor  # (|L|, d)
    folded: Tensor  # the head as one vector for each label (|L|, h)
    bias: Tensor  # added to a label's logit (|L|)


class Attention(Protocol):
    """A label attention; `plant.model.attentions.single_head` is the base of those with one head.

    Attributes:
        embeddings: one trained row for each label, (|L|, d): its query, before any projection.
        heads: number of heads.
        planted: the weights that the token scores come from; Stage 1 trains these.
    """

    embeddings: nn.Parameter
    heads: int

    @property
    def planted(self) -> list[nn.Parameter]: ...

    def token_logits(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """s_lj before the softmax: H (B, n, h), label ids (B, m) -> (B, m, n). Padding is not masked."""

    def scale_scores(self, factor: float) -> None:
        """Multiply all scores s_lj by a factor, in place."""

    def token_probabilities(
        self, hidden: Tensor, labels: Tensor, mask: Tensor | None, bias: Tensor | None = None
    ) -> Tensor:
        """The softmax of s_lj + bias over the tokens that the mask (B, n) allows: (B, m, n), 0 at padding."""

    def attend(self, hidden: Tensor, labels: Tensor | None, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """The states weighed by the probabilities (B, m, h); `labels` None: all labels."""

    def keys(self, tokens: Tensor) -> Tensor:
        """What the queries meet: states (N, h) -> (N, d)."""

    def values(self, tokens: Tensor) -> Tensor:
        """What is weighed: states (N, h) -> (N, h)."""

    def label_vectors(self, head: Any) -> LabelVectors | None:
        """The labels' side of the logits, for the fast way on a CPU. None: the head is not linear and has none.

        The scores are the products of queries and keys, divided by sqrt(d / heads).
        """


class EvidenceHead(nn.Module):
    """A head that can add evidence to its logits. A subclass registers the parameter `evidence` as None."""

    evidence: nn.Parameter | None

    def weigh_evidence(self) -> None:
        """Add the parameter beta of `with_evidence`; it starts at 0, which is a weight of log 2."""
        self.evidence = nn.Parameter(next(self.parameters()).new_zeros(()))

    def with_evidence(self, logits: Tensor, evidence: Tensor) -> Tensor:
        """logit + softplus(beta) e (choice C27), e the evidence of the same documents and labels."""
        if self.evidence is None:
            raise ValueError("with_evidence: call weigh_evidence first")
        return logits + F.softplus(self.evidence) * evidence


def masked_softmax(scores: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
    """Softmax over tokens of scores + bias (B, m, n), in fp32 or wider, exactly 0 where the mask (B, n) is False."""
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, :], -torch.inf)
    return scores.to(torch.promote_types(scores.dtype, torch.float32)).softmax(-1)
