"""The base of label attentions with one head, and the head that they share: own output weights for each label.

    s_lj = q_l . k_j    a_l = softmax_j(s_lj)    v_l = sum_j a_lj h_j    logit_l = w_l . v_l + b_l

A subclass gives the keys k_j and the weights that they need. Symbols as in `plant.model.attentions.interface`.
"""

import torch
from torch import Tensor, nn

from plant.model.attentions.interface import EvidenceHead, masked_softmax, scaled_attention


class SingleHeadAttention(nn.Module):
    """Scores q_l . k_j without a scale; the values are the states themselves.

    Args:
        n_labels: |L|.
        query_size: d.
    """

    heads = 1

    def __init__(self, n_labels: int, query_size: int) -> None:
        super().__init__()
        self.embeddings = nn.Parameter(torch.empty(n_labels, query_size))

    @property
    def planted(self) -> list[nn.Parameter]:
        """All weights: the scores are all that this attention has."""
        return list(self.parameters())

    def keys(self, tokens: Tensor) -> Tensor:
        """k_j: states (..., h) -> (..., d)."""
        raise NotImplementedError

    def values(self, tokens: Tensor) -> Tensor:
        """The states (..., h) as they are."""
        return tokens

    def token_logits(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """s_lj: H (B, n, h), label ids (B, m) -> (B, m, n). Padding is not masked."""
        return self.embeddings[labels] @ self.keys(hidden).transpose(1, 2)

    @torch.no_grad()
    def scale_scores(self, factor: float) -> None:
        """Multiply all scores by a factor: they are linear in the label embeddings."""
        self.embeddings.mul_(factor)

    def token_probabilities(
        self, hidden: Tensor, labels: Tensor, mask: Tensor | None, bias: Tensor | None = None
    ) -> Tensor:
        """a_l, (B, m, n): rows sum to 1, exactly 0 at padding. The bias (B, m, n) is added to the scores."""
        return masked_softmax(self.token_logits(hidden, labels), mask, bias)

    def queries(self) -> Tensor:
        """q_l, (|L|, d)."""
        return self.embeddings

    def attend(self, queries: Tensor, hidden: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """v_l: queries (B, m, d), H (B, n, h) -> (B, m, h)."""
        queries, keys, values = (x[:, None] for x in (queries, self.keys(hidden), self.values(hidden)))  # one head
        return scaled_attention(queries, keys, values, mask, bias, 1.0)[:, 0]


class LabelOutputs(EvidenceHead):
    """logit_l = w_l . v_l + b_l: one row of weights and one bias for each label."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_labels, hidden_size))
        self.bias = nn.Parameter(torch.zeros(n_labels))
        self.register_parameter("evidence", None)

    def label_vectors(self, attention: nn.Module) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """w_l (|L|, h) and b_l (|L|)."""
        return self.weight, self.bias

    def forward(self, attended: Tensor, *of_labels: Tensor) -> Tensor:
        """Logits (B, m) of what the labels attended to (B, m, h)."""
        weight, bias = of_labels
        return self.summed(self.products(attended, weight), bias)

    def products(self, attended: Tensor, weight: Tensor) -> Tensor:
        """w_l * v_l of each label (B, m, h), in fp32 or wider."""
        wide = torch.promote_types(attended.dtype, torch.float32)
        return attended.to(wide) * weight.to(wide)

    def summed(self, products: Tensor, bias: Tensor) -> Tensor:
        """Sum over h, and the label's bias: (B, m, h), (B, m) -> (B, m)."""
        return products.sum(-1) + bias.to(products)
