"""The base of label attentions with one head, and the head that they share: own output weights for each label.

    s_lj = q_l . k_j    a_l = softmax_j(s_lj)    v_l = sum_j a_lj h_j    logit_l = w_l . v_l + b_l

A subclass gives the keys k_j and the weights that they need. Symbols as in `plant.model.attentions.interface`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plant.model.attentions.interface import EvidenceHead, LabelVectors, masked_softmax


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

    def attend(self, hidden: Tensor, labels: Tensor | None, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """v_l, (B, m, h)."""
        queries = self.embeddings[None].expand(len(hidden), -1, -1) if labels is None else self.embeddings[labels]
        allowed = None if mask is None else mask[:, None, :]
        if bias is not None:
            allowed = bias if allowed is None else bias.masked_fill(~allowed, -torch.inf)
        keys, values = self.keys(hidden), self.values(hidden)  # (B, n, d), (B, n, h)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed, scale=1.0)

    def label_vectors(self, head: nn.Module) -> LabelVectors | None:
        """Queries and output weights, where the head is `LabelOutputs`."""
        if not isinstance(head, LabelOutputs):
            return None
        scale = self.embeddings.shape[1] ** 0.5  # the kernel divides the scores by it
        return LabelVectors(self.embeddings * scale, head.weight, head.bias)


class LabelOutputs(EvidenceHead):
    """logit_l = w_l . v_l + b_l: one row of weights and one bias for each label."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_labels, hidden_size))
        self.bias = nn.Parameter(torch.zeros(n_labels))
        self.register_parameter("evidence", None)

    def forward(self, attended: Tensor, attention: nn.Module, labels: Tensor | None) -> Tensor:  # noqa: ARG002
        """Logits (B, m) of what the labels attended to (B, m, h); `labels` (B, m), or None for all."""
        return self.summed(self.products(attended, labels), labels)

    def products(self, attended: Tensor, labels: Tensor | None) -> Tensor:
        """w_l * v_l of each label (B, m, h), in fp32 or wider."""
        weight = self.weight if labels is None else self.weight[labels]
        wide = torch.promote_types(attended.dtype, torch.float32)
        return attended.to(wide) * weight.to(wide)

    def summed(self, products: Tensor, labels: Tensor | None) -> Tensor:
        """Sum over h, and the label's bias: (B, m, h) -> (B, m)."""
        bias = self.bias if labels is None else self.bias[labels]
        return products.sum(-1) + bias.to(products)
