"""The decoder of PLM-CA: labels attend to projected states, and all labels share one output layer.

Edin et al. 2024 (section 3, "PLM-CA"), with e_l the representation of a label and h_j the state of a token:

    a_l = softmax_j(e_l . W_K h_j)    y_l = LayerNorm(sum_j a_lj (W_V h_j + b_V))    logit_l = w . y_l + b
"""

from torch import Tensor, nn

from plant.model.label_attention import Attention, EvidenceHead, Sizes

STD = 0.03  # of all weights at the start, as in the authors' code


class CrossAttention(Attention):
    """e_l as query, W_K h_j as key, W_V h_j + b_V as value."""

    def __init__(self, n_labels: int, hidden_size: int) -> None:
        super().__init__(n_labels, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size, bias=False)
        self.value = nn.Linear(hidden_size, hidden_size)
        for weight in (self.embeddings, self.key.weight, self.value.weight):
            nn.init.normal_(weight, std=STD)

    @property
    def planted(self) -> list[nn.Parameter]:
        """The representations of the labels, and W_K."""
        return [self.embeddings, *self.key.parameters()]

    def keys(self, tokens: Tensor) -> Tensor:
        """W_K h_j: (..., h) -> (..., h)."""
        return self.key(tokens)

    def values(self, tokens: Tensor) -> Tensor:
        """W_V h_j + b_V: (..., h) -> (..., h)."""
        return self.value(tokens)


class SharedOutput(EvidenceHead):
    """logit_l = w . LayerNorm(y_l) + b, with the same w and b for all labels."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size)
        self.output = nn.Linear(hidden_size, 1)
        nn.init.normal_(self.output.weight, std=STD)
        self.register_parameter("evidence", None)

    def label_vectors(self, attention: nn.Module) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Nothing: w and b are those of all labels."""
        return ()

    def forward(self, attended: Tensor, *of_labels: Tensor) -> Tensor:  # noqa: ARG002
        """Logits (B, m) of what the labels attended to (B, m, h)."""
        return self.output(self.norm(attended))[..., 0]


def build(sizes: Sizes) -> tuple[CrossAttention, SharedOutput]:
    """PLM-CA's attention and output layer."""
    return CrossAttention(sizes.labels, sizes.hidden), SharedOutput(sizes.hidden)
