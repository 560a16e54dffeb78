"""A control: the label attention of LAAT and PLM-ICD, with one output layer for all labels.

    Z = tanh(H W^T)    a_l = softmax(Z u_l)    v_l = H^T a_l    logit_l = w . v_l + b

No paper has this network. Beside `laat` it tests whether a start matters more where only the attention knows the label.
"""

from torch import Tensor, nn

from plant.model.attentions.laat import STD, ProjectedAttention
from plant.model.attentions.per_label import LabelOutputs
from plant.model.label_attention import Sizes


class OneOutput(LabelOutputs):
    """logit_l = w . v_l + b: one row of weights and one bias, which all labels share."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__(1, hidden_size)
        self.n_labels = n_labels
        nn.init.normal_(self.weight, std=STD)

    def label_vectors(self, attention: nn.Module) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """w (|L|, h) and b (|L|), the same for each label."""
        return self.weight.expand(self.n_labels, -1), self.bias.expand(self.n_labels)


def build(sizes: Sizes) -> tuple[ProjectedAttention, OneOutput]:
    """LAAT's attention with a shared output layer."""
    attention = ProjectedAttention(sizes.labels, sizes.hidden, sizes.projection or sizes.hidden)
    return attention, OneOutput(sizes.labels, sizes.hidden)
