"""The base of label attentions, and of their heads.

A label attention gives every label l a score s_lj for every token j of a document. The softmax over the tokens weighs
the document's states, and the head makes one logit of what the label attended to. Stage 1 trains the scores, the static
attention adds to them, Stage 2 trains everything.

Shapes: B documents, |L| labels, m labels asked for, n tokens of a padded document, h size of a hidden state, G heads, d
size of a query in a head.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Sizes:
    """What an attention is built from."""

    labels: int  # |L|
    hidden: int  # h
    heads: int = 1  # G of the attention multi_head
    pool: int = 1  # p of the attention multi_head
    projection: int | None = None  # d of attentions that project the states; None: h


ScoreBias = Callable[[int, Tensor | None], Tensor]
"""(position of a document in its batch, label ids (m) or None for all) -> what is added to its scores (m, n'), n' <= n:
0 at the tokens that follow."""


class Attention(nn.Module):
    """A label attention with G heads of size d:

        s_lj = q_l . k_j / scale in each head    a_l = softmax_j(s_lj)    v_l = sum_j a_lj v_j

    As it is here, it has one head, the embeddings of the labels as queries, and the states as keys and values. A
    subclass changes what its paper changes. `query_size` is that of an embedding, before any projection; G divides the
    sizes of queries, keys and values.
    """

    def __init__(self, n_labels: int, query_size: int, *, heads: int = 1, scale: float = 1.0) -> None:
        super().__init__()
        self.heads, self.scale = heads, scale
        self.embeddings = nn.Parameter(torch.empty(n_labels, query_size))

    @property
    def planted(self) -> list[nn.Parameter]:
        """The weights that the token scores come from; Stage 1 trains these. Here: all."""
        return list(self.parameters())

    def queries(self, labels: Tensor | None = None) -> Tensor:
        """q_l of label ids (...), or of all: (..., G d)."""
        return self.embeddings if labels is None else self.embeddings[labels]

    def keys(self, tokens: Tensor) -> Tensor:
        """k_j: states (..., h) -> (..., G d)."""
        return tokens

    def values(self, tokens: Tensor) -> Tensor:
        """v_j: states (..., h) -> (..., h)."""
        return tokens

    @torch.no_grad()
    def scale_scores(self, factor: float) -> None:
        """Multiply all scores by a factor, in place: they are linear in the embeddings."""
        self.embeddings.mul_(factor)

    def token_logits(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """s_lj before the softmax, averaged over heads (choice C01), (B, m, n). Padding is not masked.

        The states are H (B, n, h), the labels ids (B, m).
        """
        queries = self.queries(labels) * (1 / (self.heads * self.scale))  # the mean is one dot product over G d
        return queries @ self.keys(hidden).transpose(1, 2)

    def token_probabilities(
        self, hidden: Tensor, labels: Tensor, mask: Tensor | None, bias: Tensor | None = None
    ) -> Tensor:
        """The softmax of s_lj over the tokens of a document, averaged over heads (S of Eq. 1).

        Args:
            hidden: H (B, n, h).
            labels: label ids (B, m).
            mask: (B, n), True at tokens; None attends to padding.
            bias: added to the scores of every head before the softmax (B, m, n), or None.

        Returns:
            (B, m, n) in fp32 or wider; rows sum to 1, exactly 0 at padding.
        """
        queries, keys = self._split(self.queries(labels)), self._split(self.keys(hidden))
        scores = queries @ keys.transpose(-1, -2) / self.scale  # (B, G, m, n)
        if bias is not None:
            scores = scores + bias[:, None]
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return scores.to(torch.promote_types(scores.dtype, torch.float32)).softmax(-1).mean(1)

    def attend(self, queries: Tensor, hidden: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """v_l (B, m, h): the values of the heads side by side, weighed by PyTorch.

        The queries are rows of `queries()` (B, m, G d); the others are as in `token_probabilities`. Four dimensions
        matter: of tensors with three, PyTorch keeps all scores (m, n) on a CPU.
        """
        q, k, v = (self._split(states) for states in (queries, self.keys(hidden), self.values(hidden)))
        added = None if mask is None else mask[:, None, None, :]
        if bias is not None:
            added = bias[:, None] if added is None else bias[:, None].masked_fill(~added, -torch.inf)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=1 / self.scale)  # (B, G, m, h / G)
        return attended.transpose(1, 2).flatten(2)

    def _split(self, states: Tensor) -> Tensor:
        """(B, m, G d) -> (B, G, m, d)"""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class EvidenceHead(nn.Module, ABC):
    """A head, which can add evidence to its logits. A subclass registers the parameter `evidence` as None."""

    evidence: nn.Parameter | None

    @abstractmethod
    def label_vectors(self, attention: Any) -> tuple[Tensor, ...]:
        """What `forward` takes from the labels, |L| rows each. It is constant as long as the weights are."""

    @abstractmethod
    def forward(self, attended: Tensor, *of_labels: Tensor) -> Tensor:
        """Logits (B, m) in fp32 or wider, of what `attend` gave (B, m, h) and of the labels' vectors (B, m, ...)."""

    def weigh_evidence(self) -> None:
        """Add the parameter beta of `with_evidence`; it starts at 0, which is a weight of log 2."""
        self.evidence = nn.Parameter(next(self.parameters()).new_zeros(()))

    def with_evidence(self, logits: Tensor, evidence: Tensor) -> Tensor:
        """logit + softplus(beta) e (choice C27), e the evidence of the same documents and labels."""
        assert self.evidence is not None  # `weigh_evidence` was called
        return logits + F.softplus(self.evidence) * evidence
