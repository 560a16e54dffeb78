"""The label attention of CAML and MultiResCNN: one query vector for each label.

Mullenbach et al. 2018 (Eqs. 2 to 5), Li and Yu 2020 (Eqs. 5 to 7), with H the states of a document:

    a_l = softmax(H u_l)    v_l = H^T a_l    logit_l = w_l . v_l + b_l
"""

from torch import Tensor, nn

from plant.model.attentions.interface import Sizes
from plant.model.attentions.single_head import LabelOutputs, SingleHeadAttention


class PerLabelAttention(SingleHeadAttention):
    """u_l as query, the states as keys. Weights start by Xavier's uniform rule, as in CAML's public code."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__(n_labels, hidden_size)
        nn.init.xavier_uniform_(self.embeddings)

    def keys(self, tokens: Tensor) -> Tensor:
        """The states (..., h) as they are."""
        return tokens


def build(sizes: Sizes) -> tuple[PerLabelAttention, LabelOutputs]:
    """CAML's attention and output layer."""
    attention, head = PerLabelAttention(sizes.labels, sizes.hidden), LabelOutputs(sizes.labels, sizes.hidden)
    nn.init.xavier_uniform_(head.weight)
    return attention, head
