"""A control: the decoder of PLM-CA, with an output layer for each label.

    a_l = softmax_j(e_l . W_K h_j)    y_l = LayerNorm(sum_j a_lj (W_V h_j + b_V))    logit_l = w_l . y_l + b_l

No paper has this network. Beside `cross_attention` it tests whether a start matters less where the outputs know the
label too.
"""

from torch import Tensor, nn

from plant.model.attentions.cross_attention import STD, CrossAttention, SharedOutput
from plant.model.label_attention import Sizes


class OwnOutputs(SharedOutput):
    """logit_l = w_l . LayerNorm(y_l) + b_l."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__(hidden_size)
        self.output = nn.Linear(hidden_size, n_labels)
        nn.init.normal_(self.output.weight, std=STD)

    def label_vectors(self, attention: nn.Module) -> tuple[Tensor, ...]:  # noqa: ARG002
        """w_l (|L|, h) and b_l (|L|)."""
        return self.output.weight, self.output.bias

    def forward(self, attended: Tensor, *of_labels: Tensor) -> Tensor:
        """Logits (B, m) of what the labels attended to (B, m, h)."""
        weight, bias = of_labels
        return (self.norm(attended) * weight).sum(-1) + bias


def build(sizes: Sizes) -> tuple[CrossAttention, OwnOutputs]:
    """PLM-CA's attention with an output layer for each label."""
    return CrossAttention(sizes.labels, sizes.hidden), OwnOutputs(sizes.labels, sizes.hidden)
