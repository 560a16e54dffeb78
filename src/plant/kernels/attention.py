"""Label attention on a CPU: logits and their gradients, one document and one tile of labels at a time.

The formula, for one document and one head, with queries Q (r, d), folded vectors U (r, d), keys K and values V (n, d):

    S = softmax(Q K^T)    O = S V    y_l = o_l . u_l    logit_l = sum over heads of y_l  (+ a bias a label, elsewhere)

and backward, where g_l is the gradient of logit_l:

    dU = g O    X = S * (U V^T - y)    dQ = g (X K)    dK = X^T (g Q)    dV = S^T (g U)

The plain function that it must equal is `plant.model.classifier.LabelClassifier.attended_logits`: PyTorch's attention
over the padded batch. Stage 2 is 92 % of a CodiEsp run, and this halves it: a training step with 1,767 labels takes
2.4 times less CPU time, inference 2.3 times (docs/speed/label-attention.md says what each of these ways brings):

- Padding costs nothing. No array of all labels by all tokens exists: S and U V^T are made again backward, O is kept.
- g_l is a factor of every term of row l. So a label whose g is 0 costs nothing backward: hard negative mining leaves
  most labels out.
- Every product has the form a b^T, which oneDNN does fastest (`product`). One more column of the factors subtracts a
  number from each row within the product.
- Powers are of 2, because PyTorch has no fast exp on every processor.

A bias may be added to the scores of every head (choice C26). It is made document by document, forward and backward,
and has no gradient.

Symbols as in `plant.model.attentions.multi_head`; N counts the tokens of all documents, r the labels of one document.
Queries and keys have k numbers, values and U have h; in the multi-head attention of the paper k = h.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
"""The operator that PyTorch's compiler emits for a linear map. It is private: None where a build lacks it."""
TILE = 2**19  # entries of S that exist at a time: 2 MiB in fp32, and as much for X
LIMIT = 64.0  # scores up to it (to base 2) have powers that fp32 holds, and so have their sums: no maximum is needed
LOG2_E = math.log2(math.e)
STEP = 32  # tokens and labels of a product come in few numbers: oneDNN compiles, and keeps half a MB for, every shape
KEPT = 31 * 2**20  # bytes
ScoreBias = Callable[[int, Tensor | None], Tensor]
"""(position of a document in its batch, label ids (m) or None for all) -> what is added to its scores (m, n'), n' <= n:
0 at the tokens that follow. Natural, not to base 2."""


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a b^T + bias: by oneDNN on a CPU in fp32, else by PyTorch.

    PyTorch itself takes MKL, which does without AVX-512 on processors that are not Intel's, at half the speed.

    Args:
        a: (r, k).
        b: (c, k); its transpose may be the contiguous one.
        bias: (c) or None.

    Returns:
        (r, c).
    """
    if ONEDNN is None or a.dtype != torch.float32 or a.device.type != "cpu":
        return a @ b.T if bias is None else torch.addmm(bias, a, b.T)
    if not b.is_contiguous() and not b.T.is_contiguous():
        b = b.contiguous()  # for other strides oneDNN has only its reference loop, 2,000 times slower
    return ONEDNN(a.contiguous(), b, bias, "none", [], "")


class _Affine(Function):
    """x W^T + b, forward and backward by `product`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        return (
            product(gradient, weight.T) if ctx.needs_input_grad[0] else None,
            product(gradient.T, x.T) if ctx.needs_input_grad[1] else None,
            gradient.sum(0) if ctx.needs_input_grad[2] else None,
        )


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: (r, i), (o, i), (o) -> (r, o). Differentiable once."""
    return _Affine.apply(x, weight, bias)


def label_logits(
    queries: Tensor,
    folded: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    lengths: Sequence[int],
    heads: int,
    labels: Tensor | None = None,
    bias: ScoreBias | None = None,
) -> Tensor:
    """Sum over heads and tokens of S_lj (v_j . u_l), for every document.

    Args:
        queries: (|L|, k), such as W_Q E + b_Q.
        folded: U (|L|, h), such as W_O^T c_l as rows, see `plant.model.attentions.multi_head.Head`.
        keys: (N, k), such as W_K H + b_K, one document after the other, without padding between them.
        values: (N, h), such as W_V H + b_V.
        lengths: tokens of each document, N in all or fewer. A document without a token has logits 0.
        heads: G.
        labels: ids (B, m) of each document, or None for all.
        bias: added to the scores of every head.

    Returns:
        (B, m), or (B, |L|). Differentiable once.
    """
    _keep_freed_memory()
    return _LabelLogits.apply(queries, folded, keys, values, labels, lengths, heads, bias)


@functools.cache
def _keep_freed_memory() -> None:
    """Make the C library of Linux keep the memory that a tile frees, for the next tile.

    It keeps up to twice the largest block of at most 32 MiB that was freed so far. This block is never written to, so
    it costs nothing. Without it a young process spends up to half its time on page faults.
    """
    torch.empty(KEPT, dtype=torch.uint8)


class _LabelLogits(Function):
    """The formulas of the module, document by document."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        folded: Tensor,
        keys: Tensor,
        values: Tensor,
        labels: Tensor | None,
        lengths: Sequence[int],
        heads: int,
        bias: ScoreBias | None,
    ) -> Tensor:
        m, h = queries.shape[0] if labels is None else labels.shape[1], values.shape[1]
        documents = len(lengths) if any(ctx.needs_input_grad) else 1  # so many O (m, h) and z (m, G) are kept
        logits = queries.new_zeros(len(lengths), m)
        attended, normaliser = queries.new_empty(documents, m, h), queries.new_empty(documents, m, heads)
        factor = _scale(queries.shape[1], heads) * LOG2_E
        largest = factor * _largest(queries, heads)
        scaled = queries * factor  # a copy: with one head or one label `_by_head` is a view of it
        q, u = _by_head(scaled, heads), folded  # (G, r, d), (r, h)
        for document, tokens in _spans(lengths):
            if labels is not None:
                ids = labels[document]
                q = _by_head(scaled.index_select(0, ids), heads)
                u = folded.index_select(0, ids)
            k, v = keys[tokens], values[tokens]  # (n, h)
            added = None if bias is None else bias(document, None if labels is None else ids)
            safe = (largest * _largest(k, heads) + _highest(added) <= LIMIT).tolist()
            o, z = attended[document % documents], normaliser[document % documents]
            _attend(q, k, v, safe, o.view(m, heads, -1), z, added)
            logits[document] = (o * u).sum(1)
        ctx.save_for_backward(queries, folded, keys, values, labels, attended, normaliser)
        ctx.lengths, ctx.bias = lengths, bias
        return logits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, folded, keys, values, labels, attended, normaliser = ctx.saved_tensors
        of_queries, of_folded = torch.zeros_like(queries), torch.zeros_like(folded)
        of_keys, of_values = torch.zeros_like(keys), torch.zeros_like(values)
        for document, tokens in _spans(ctx.lengths):
            kept, g, step = _nonzero(gradient[document], tokens.stop - tokens.start)  # (r), (r)
            if not len(kept):
                continue
            ids = kept if labels is None else labels[document].index_select(0, kept)
            q, u = queries.index_select(0, ids), folded.index_select(0, ids)
            o, z = (x[document].index_select(0, kept) for x in (attended, normaliser))
            added = None if ctx.bias is None else ctx.bias(document, ids)
            dq, dk, dv = _document_backward(q, u, o, z, keys[tokens], values[tokens], g[:, None], step, added)
            of_queries.index_add_(0, ids, dq)
            of_folded.index_add_(0, ids, o.mul_(g[:, None]))
            of_keys[tokens], of_values[tokens] = dk, dv
        return of_queries, of_folded, of_keys, of_values, None, None, None, None


def _attend(
    q: Tensor, keys: Tensor, values: Tensor, safe: Sequence[bool], o: Tensor, z: Tensor, added: Tensor | None
) -> None:
    """O of one document, and the logarithm of the sums that its S is divided by.

    Args:
        q: queries times log2(e) / sqrt(d), (G, r, d).
        keys: (n, k).
        values: (n, h).
        safe: for each head, whether all scores are within `LIMIT`.
        o: written, (r, G, d).
        z: written, log2 of the sum over tokens of 2 ** score (r, G).
        added: bias of the scores of every head (r, n'), natural; or None.
    """
    heads, r, _ = q.shape
    k, v, beyond = _tokens(keys, heads), _tokens(values, heads), _beyond(keys)
    for rows, head in _tiles(r, min(r, _step(r, len(keys))), heads):
        s = _plus(product(q[head, rows], k[head], beyond), added, rows)  # (step, n'), -inf beyond n
        top = 0 if safe[head] else s.amax(1, keepdim=True)
        total = (s if safe[head] else s.sub_(top)).exp2_().sum(1, keepdim=True)
        torch.div(product(s, v[head].T), total, out=o[rows, head])
        z[rows, head] = (total.log2_() + top)[:, 0]


def _document_backward(
    q: Tensor, u: Tensor, o: Tensor, z: Tensor, keys: Tensor, values: Tensor, g: Tensor, step: int,
    added: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of one document's Q, K and V: (r, k), (n, k), (n, h).

    Args:
        q: (r, k).
        u: (r, h).
        o: (r, h).
        z: (r, G), see `_attend`.
        keys: (n, k).
        values: (n, h).
        g: gradients of the logits (r, 1).
        step: labels of a tile; divides r.
        added: see `_attend`.
    """
    r, heads = z.shape
    scale = _scale(q.shape[1], heads)
    k, v, beyond = _tokens(keys, heads), _tokens(values, heads), _beyond(keys)
    gq, gu = ((g * x).T.contiguous().view(heads, -1, r) for x in (q * scale, u))  # (G, d, r)
    y = (o * u).view(r, heads, -1).sum(-1)
    q, u = _less(_by_head(q * (scale * LOG2_E), heads), z), _less(_by_head(u, heads), y)  # (G, r, d + 1)
    k_one, v_one = F.pad(k, (0, 1), value=1), F.pad(v, (0, 1), value=1)  # (G, n', d + 1)
    dq = keys.new_empty(r, heads, keys.shape[1] // heads)
    dk, dv = (x.new_zeros(heads, x.shape[2], x.shape[1]) for x in (k, v))  # (G, d, n')
    for rows, head in _tiles(r, step, heads):
        s = _plus(product(q[head, rows], k_one[head], beyond), added, rows).exp2_()  # S (step, n')
        dv[head] += product(gu[head, :, rows], s.T)
        x = product(u[head, rows], v_one[head], torch.zeros_like(beyond)).mul_(s)  # X (step, n')
        dk[head] += product(gq[head, :, rows], x.T)
        dq[rows, head] = product(x, k[head].T)
    dk, dv = (x[:, :, : len(keys)].flatten(0, 1).T for x in (dk, dv))
    return dq.view(r, -1).mul_(g * scale), dk, dv


def _highest(added: Tensor | None) -> float:
    """The largest change that a bias makes to a score, to base 2."""
    return 0.0 if added is None or not added.numel() else LOG2_E * max(abs(float(one)) for one in added.aminmax())


def _plus(s: Tensor, added: Tensor | None, rows: slice) -> Tensor:
    """Add the natural bias of some labels to their scores to base 2, in place."""
    if added is not None:
        s[:, : added.shape[1]].add_(added[rows], alpha=LOG2_E)
    return s


def _largest(x: Tensor, heads: int) -> Tensor:
    """Length of the longest row of each head (G): the product of two bounds all scores."""
    return torch.linalg.vector_norm(x.view(len(x), heads, -1), dim=-1).amax(0)


def _less(x: Tensor, numbers: Tensor) -> Tensor:
    """(G, r, d), (r, G) -> (G, r, d + 1): times a row that ends with 1, `x` times that row less the number."""
    return torch.cat([x, -numbers.T[:, :, None]], 2)


def _scale(h: int, heads: int) -> float:
    """1 / sqrt(d)"""
    return 1 / math.sqrt(h / heads)


def _nonzero(gradient: Tensor, n: int) -> tuple[Tensor, Tensor, int]:
    """Positions of the entries that are not 0, these entries, and the number of labels of a tile for n tokens.

    The first position, with the entry 0, is repeated until the number of positions is a multiple of a tile.
    """
    kept = gradient.nonzero()[:, 0]
    step = _step(len(kept), n)
    missing = -len(kept) % step
    return torch.cat([kept, kept[:1].expand(missing)]), F.pad(gradient[kept], (0, missing)), step


def rounded(n: int) -> int:
    """The number of tokens that a product gets for n: up to an eighth more."""
    step = max(STEP, 2 ** (n.bit_length() - 4))
    return -(-n // step) * step


def _step(r: int, n: int) -> int:
    """The number of labels of a tile of about `TILE` scores, so that r labels make tiles of like size."""
    count = max(1, -(-r * rounded(n) // TILE))
    return max(1, -(-r // (count * STEP))) * STEP


def _tiles(r: int, step: int, heads: int) -> Iterator[tuple[slice, int]]:
    """`step` rows and a head, all heads of the rows first; the last rows may overlap those before."""
    for start in range(0, r, step):
        for head in range(heads):
            yield slice(min(start, r - step), min(start + step, r)), head


def _spans(lengths: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Position and tokens of each document that has any."""
    first = 0
    for document, n in enumerate(lengths):
        if n:
            yield document, slice(first, first + n)
        first += n


def _by_head(x: Tensor, heads: int) -> Tensor:
    """(r, h) -> (G, r, d), contiguous; a view of x where one of G and r is 1"""
    return x.view(len(x), heads, -1).transpose(0, 1).contiguous()


def _tokens(x: Tensor, heads: int) -> Tensor:
    """(n, h) -> (G, n', d), contiguous: n' is `rounded(n)`, rows beyond n are 0"""
    return _by_head(F.pad(x, (0, 0, 0, rounded(len(x)) - len(x))), heads)


def _beyond(tokens: Tensor) -> Tensor:
    """What is added to scores (n'): 0 at the n tokens, -inf at the rows that `_tokens` puts beyond them."""
    n = len(tokens)
    return F.pad(tokens.new_zeros(n), (0, rounded(n) - n), value=-math.inf)
