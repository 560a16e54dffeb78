"""The label attention of the paper and the head on top of it (section 2, Eq. 1): many heads, a boost, a shared map.

Symbols, as in the paper:
    E   label embeddings (|L|, h), the queries        H   hidden states (n, h), keys and values
    S   label-by-token scores (|L|, n)                A   attended representations (|L|, h)
    B_m, B_a   multiplicative and additive boost (|L|, h)
    p   output size of the adaptive average pooling   W_c   shared map from p to one logit
Shapes in comments: B documents, L labels asked for, n tokens, h hidden size, G heads, d = h / G.
"""

import math

import torch
from torch import Tensor, nn

from plant.ground.errors import InputError
from plant.model.label_attention import Attention, EvidenceHead, Sizes

EMBEDDING_STD = 0.02  # choice C10: the usual scale of transformer embeddings


class LabelAttention(Attention):
    """Multi-head attention whose queries are label embeddings (Eq. 1).

    The parameters are those of a standard multi-head attention with biases; only E has one row per label.
    """

    def __init__(self, n_labels: int, hidden_size: int, heads: int) -> None:
        super().__init__(n_labels, hidden_size, heads=heads, scale=math.sqrt(hidden_size / heads))
        if hidden_size % heads:
            raise InputError(
                "label attention", expected=f"a number of heads that divides the hidden size {hidden_size}",
                got=f"{heads} heads", fix="Change attention_heads of the backbone in the config.",
            )  # fmt: skip
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)
        nn.init.trunc_normal_(self.embeddings, std=EMBEDDING_STD)
        for linear in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    @property
    def planted(self) -> list[nn.Parameter]:
        """The weights that Stage 1 trains: E, W_Q, W_K."""
        return [self.embeddings, *self.query.parameters(), *self.key.parameters()]

    def queries(self, labels: Tensor | None = None) -> Tensor:
        """W_Q E + b_Q of label ids (...), or of all: (..., h)."""
        return self.query(super().queries(labels))

    def keys(self, tokens: Tensor) -> Tensor:
        """W_K H + b_K: (..., h) -> (..., h)."""
        return self.key(tokens)

    def values(self, tokens: Tensor) -> Tensor:
        """W_V H + b_V: (..., h) -> (..., h). W_O is folded into the head."""
        return self.value(tokens)

    @torch.no_grad()
    def scale_scores(self, factor: float) -> None:
        """Multiply the scores of all heads by a factor: they are linear in the queries W_Q e + b_Q."""
        self.query.weight.mul_(factor)
        self.query.bias.mul_(factor)


class Head(EvidenceHead):
    """Boost, adaptive average pooling and the shared map to one logit, folded into one vector per label.

    Pooling is a fixed matrix M (p, h), and the shared map is W_c (p). Both are linear. So with w = M^T W_c and
    c_l = B_m,l * w the literal form W_c . Pool(B_a,l + A_l * B_m,l) + beta equals

        logit_l = A'_l . (W_O^T c_l) + c_l . b_O + B_a,l . w + beta,

    where A'_l is the attention output before W_O. The boosted and pooled matrices never exist. Tests
    compare it with the literal form, forward and backward.
    """

    pooling: Tensor

    def __init__(self, n_labels: int, hidden_size: int, pool_size: int) -> None:
        super().__init__()
        self.boost_mul = nn.Parameter(torch.ones(n_labels, hidden_size))
        self.boost_add = nn.Parameter(torch.zeros(n_labels, hidden_size))
        self.project = nn.Linear(pool_size, 1)
        self.register_parameter("evidence", None)
        self.register_buffer("pooling", pooling_matrix(hidden_size, pool_size).float(), persistent=False)

    def label_vectors(self, attention: LabelAttention) -> tuple[Tensor, Tensor]:
        """W_O^T c_l as rows (|L|, h); what no document changes, c_l . b_O + B_a,l . w + beta (|L|)."""
        w = self.project.weight[0] @ self.pooling  # (h)
        c, output = self.boost_mul * w, attention.output  # c_l as rows (|L|, h)
        return c @ output.weight, c @ output.bias + self.boost_add @ w + self.project.bias

    def forward(self, attended: Tensor, *of_labels: Tensor) -> Tensor:
        """Logits (B, m) of A' (B, m, h)."""
        vectors, bias = of_labels
        wide = torch.promote_types(attended.dtype, torch.float32)
        return (attended.to(wide) * vectors.to(wide)).sum(-1) + bias.to(wide)


def build(sizes: Sizes) -> tuple[LabelAttention, Head]:
    """The attention and the head of the paper."""
    attention = LabelAttention(sizes.labels, sizes.hidden, sizes.heads)
    return attention, Head(sizes.labels, sizes.hidden, sizes.pool)


def pooling_matrix(hidden_size: int, pool_size: int) -> Tensor:
    """Adaptive average pooling from h to p as a float64 matrix M (p, h); rows sum to 1.

    Row i averages the bins floor(i h / p) .. ceil((i + 1) h / p), which overlap where p does not divide h.
    """
    rows = torch.arange(pool_size)[:, None]
    columns = torch.arange(hidden_size)[None, :]
    start = rows * hidden_size // pool_size
    end = ((rows + 1) * hidden_size + pool_size - 1) // pool_size
    inside = (columns >= start) & (columns < end)
    return inside.double().div(inside.sum(1, keepdim=True))
