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
from plant.model.attentions.interface import EvidenceHead, Sizes, scaled_attention

EMBEDDING_STD = 0.02  # choice C10: the usual scale of transformer embeddings


class LabelAttention(nn.Module):
    """Multi-head attention whose queries are label embeddings (Eq. 1).

    The parameters are those of a standard multi-head attention with biases; only E has one row a label.

    Args:
        n_labels: |L|.
        hidden_size: h, of the backbone.
        heads: G; must divide h.

    Raises:
        InputError: `heads` does not divide `hidden_size`.
    """

    def __init__(self, n_labels: int, hidden_size: int, heads: int) -> None:
        super().__init__()
        if hidden_size % heads:
            raise InputError(
                "label attention", expected=f"a number of heads that divides the hidden size {hidden_size}",
                got=f"{heads} heads", fix="Change attention_heads of the backbone in the config.",
            )  # fmt: skip
        self.heads = heads
        self.embeddings = nn.Parameter(torch.empty(n_labels, hidden_size))
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

    def token_logits(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """s_lj before the softmax, averaged over heads (choice C01).

        That mean of q^g . k^g / sqrt(d) is one dot product over all h dimensions.

        Args:
            hidden: H, (B, n, h).
            labels: label ids (B, m).

        Returns:
            (B, m, n). Padding is not masked.
        """
        queries = self.query(self.embeddings[labels])  # (B, m, h)
        scale = 1 / (self.heads * math.sqrt(self.key.out_features / self.heads))
        return (queries * scale) @ self.key(hidden).transpose(1, 2)

    @torch.no_grad()
    def scale_scores(self, factor: float) -> None:
        """Multiply the scores of all heads by a factor: they are linear in the queries W_Q e + b_Q."""
        self.query.weight.mul_(factor)
        self.query.bias.mul_(factor)

    def token_probabilities(
        self, hidden: Tensor, labels: Tensor, mask: Tensor | None, bias: Tensor | None = None
    ) -> Tensor:
        """S of Eq. 1: the softmax over the tokens of a document, averaged over heads.

        Args:
            hidden: H, (B, n, h).
            labels: label ids (B, m).
            mask: (B, n), True at tokens and False at padding; None attends to padding.
            bias: added to the scores of every head before the softmax (B, m, n), or None.

        Returns:
            (B, m, n), rows sum to 1, exactly 0 at padding.
        """
        queries = self._split(self.query(self.embeddings[labels]))  # (B, G, m, d)
        keys = self._split(self.key(hidden))  # (B, G, n, d)
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        if bias is not None:
            scores = scores + bias[:, None]
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return scores.float().softmax(-1).mean(1)

    def queries(self) -> Tensor:
        """W_Q E + b_Q (|L|, h)."""
        return self.query(self.embeddings)

    def attend(self, queries: Tensor, hidden: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """The concatenated heads' outputs, before W_O (folded into the head: see `Head`).

        Args:
            queries: rows of `queries()` (B, m, h).
            hidden: H, (B, n, h).
            mask: (B, n) or None.
            bias: as in `token_probabilities`.

        Returns:
            (B, m, h).
        """
        q, k, v = (self._split(states) for states in (queries, self.key(hidden), self.values(hidden)))
        attended = scaled_attention(q, k, v, mask, bias, 1 / math.sqrt(q.shape[-1]))  # (B, G, m, d)
        return attended.transpose(1, 2).flatten(2)

    def values(self, tokens: Tensor) -> Tensor:
        """W_V H + b_V: (..., h) -> (..., h)."""
        return self.value(tokens)

    def _split(self, states: Tensor) -> Tensor:
        """(B, m, h) -> (B, G, m, d)"""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Head(EvidenceHead):
    """Boost, adaptive average pooling and the shared map to one logit, folded into one vector a label.

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
        """The head as one vector and one number for each label.

        Args:
            attention: whose W_O and b_O are folded in.

        Returns:
            W_O^T c_l as rows (|L|, h); what no document changes, c_l . b_O + B_a,l . w + beta (|L|).
        """
        w = self.project.weight[0] @ self.pooling  # (h)
        c, output = self.boost_mul * w, attention.output  # c_l as rows (|L|, h)
        return c @ output.weight, c @ output.bias + self.boost_add @ w + self.project.bias

    def forward(self, attended: Tensor, *of_labels: Tensor) -> Tensor:
        """Logits of the labels whose attention is given.

        Args:
            attended: A' (B, m, h), from `LabelAttention.attend`.
            of_labels: `label_vectors` of the same labels, (B, m, h) and (B, m).

        Returns:
            (B, m) in fp32 or wider.
        """
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
