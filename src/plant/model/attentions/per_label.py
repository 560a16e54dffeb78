"""The label attention of CAML and MultiResCNN: one query vector for each label.

Mullenbach et al. 2018 (Eqs. 2 to 5), Li and Yu 2020 (Eqs. 5 to 7), with H the states of a document:

    a_l = softmax(H u_l)    v_l = H^T a_l    logit_l = w_l . v_l + b_l
"""

import torch
from torch import Tensor, nn

from plant.model.label_attention import Attention, EvidenceHead, Sizes


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


def build(sizes: Sizes) -> tuple[Attention, LabelOutputs]:
    """CAML's attention and output layer. Weights start by Xavier's uniform rule, as in its public code."""
    attention, head = Attention(sizes.labels, sizes.hidden), LabelOutputs(sizes.labels, sizes.hidden)
    nn.init.xavier_uniform_(attention.embeddings)
    nn.init.xavier_uniform_(head.weight)
    return attention, head
