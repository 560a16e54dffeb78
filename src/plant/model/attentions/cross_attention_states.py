"""A control: the decoder of PLM-CA, with the states themselves in place of projected ones.

    a_l = softmax_j(e_l . W_K h_j)    y_l = LayerNorm(sum_j a_lj h_j)    logit_l = w . y_l + b

No paper has this network. Beside `cross_attention` it tests whether a start matters more where what the labels add up
is projected (W_V) first.
"""

from torch import Tensor

from plant.model.attentions.cross_attention import CrossAttention, SharedOutput
from plant.model.label_attention import Sizes


class StatesAttention(CrossAttention):
    """e_l as query, W_K h_j as key, h_j as value."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__(n_labels, hidden_size)
        del self.value

    def values(self, tokens: Tensor) -> Tensor:
        """h_j: (..., h)."""
        return tokens


def build(sizes: Sizes) -> tuple[StatesAttention, SharedOutput]:
    """PLM-CA's attention and output layer, without W_V."""
    return StatesAttention(sizes.labels, sizes.hidden), SharedOutput(sizes.hidden)
