"""A control: the label attention of LAAT and PLM-ICD, with projected states in place of the states themselves.

    Z = tanh(H W^T)    a_l = softmax(Z u_l)    v_l = (H W_V^T + b_V)^T a_l    logit_l = w_l . v_l + b_l

No paper has this network. Beside `laat` it tests whether a start matters more where what the labels add up is projected
(W_V, as in `cross_attention`) first.
"""

from torch import Tensor, nn

from plant.model.attentions.laat import STD, ProjectedAttention
from plant.model.attentions.per_label import LabelOutputs
from plant.model.label_attention import Sizes


class ValuesAttention(ProjectedAttention):
    """u_l as query, tanh(W h_j) as key, W_V h_j + b_V as value."""

    def __init__(self, n_labels: int, hidden_size: int, projection: int) -> None:
        super().__init__(n_labels, hidden_size, projection)
        self.value = nn.Linear(hidden_size, hidden_size)
        nn.init.normal_(self.value.weight, std=STD)

    @property
    def planted(self) -> list[nn.Parameter]:
        """The queries and W, as in `laat`; not W_V."""
        return [self.embeddings, *self.project.parameters()]

    def values(self, tokens: Tensor) -> Tensor:
        """W_V h_j + b_V: (..., h) -> (..., h)."""
        return self.value(tokens)


def build(sizes: Sizes) -> tuple[ValuesAttention, LabelOutputs]:
    """LAAT's attention and output layer, with W_V."""
    attention = ValuesAttention(sizes.labels, sizes.hidden, sizes.projection or sizes.hidden)
    head = LabelOutputs(sizes.labels, sizes.hidden)
    nn.init.normal_(head.weight, std=STD)
    return attention, head
