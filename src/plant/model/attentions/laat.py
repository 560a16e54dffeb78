"""The label attention of LAAT and PLM-ICD: one query vector for each label over projected states.

Vu et al. 2020 (Eqs. 6 to 9), Huang et al. 2022 (Eqs. 3 to 6), with H the states of a document, one row for each token:

    Z = tanh(H W^T)    a_l = softmax(Z u_l)    v_l = H^T a_l    logit_l = w_l . v_l + b_l
"""

import torch
from torch import Tensor, nn

from plant.model.attentions.per_label import LabelOutputs
from plant.model.label_attention import Attention, Sizes

STD = 0.03  # of all weights at the start, as in the public code of both


class ProjectedAttention(Attention):
    """u_l as query, tanh(W h_j) of size d as key."""

    def __init__(self, n_labels: int, hidden_size: int, projection: int) -> None:
        super().__init__(n_labels, projection)
        self.project = nn.Linear(hidden_size, projection, bias=False)
        for weight in self.parameters():
            nn.init.normal_(weight, std=STD)

    def keys(self, tokens: Tensor) -> Tensor:
        """tanh(W h_j): (..., h) -> (..., d)."""
        return torch.tanh(self.project(tokens))


def build(sizes: Sizes) -> tuple[ProjectedAttention, LabelOutputs]:
    """LAAT's attention and output layer."""
    attention = ProjectedAttention(sizes.labels, sizes.hidden, sizes.projection or sizes.hidden)
    head = LabelOutputs(sizes.labels, sizes.hidden)
    nn.init.normal_(head.weight, std=STD)
    return attention, head
