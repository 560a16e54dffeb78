"""Logits of label attention on the CPU, by hand: no padding, no L x n x G array, no work for labels without gradient.

For one document and one head, with queries Q (r, d), the head's folded vectors U (r, d), keys K and values V (n, d):

    S = softmax(Q K^T)    O = S V    y_l = o_l . u_l    logit_l = sum over heads of y_l  (+ a bias a label, elsewhere)

and backward, with g_l the gradient of logit_l, a factor of every term of row l:

    dU = g O    X = S * (U V^T - y)    dQ = g (X K)    dK = X^T (g Q)    dV = S^T (g U)

Two matrix products forward and five backward: S and U V^T are made anew, a tile of labels at a time, O is kept. A
label whose g is exactly 0 costs nothing backward: all those that hard negative mining leaves out. Every product has
the form a b^T, see `product`; one more column of its factors subtracts a number a row on the way. Powers are of 2:
PyTorch has no fast exp on every processor. What all this needs and takes: docs/speed/label-attention.md.

A bias may be added to the scores of every head (choice C26). It is made document by document, forward and again
backward for the labels that have a gradient, and has no gradient itself.

Symbols as in `plant.model.label_attention`; N counts the tokens of all documents, r the labels of one document.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

TILE = 2**19  # entries of S that exist at a time: 2 MiB in fp32, and as much for X
LIMIT = 64.0  # scores up to it (to base 2) have powers that fp32 holds, and so have their sums: no maximum is needed
LOG2_E = math.log2(math.e)
STEP = 32  # tokens and labels of a product come in few numbers: oneDNN compiles, and keeps half a MB for, every shape
KEPT = 31 * 2**20  # bytes
ScoreBias = Callable[[int, Tensor | None], Tensor]
"""(position of a document in its batch, label ids (m) or None for all) -> what is added to its scores (m, n'), n' <= n:
0 at the tokens that follow. Natural, not to base 2."""


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a b^T + bias, by the fastest library at hand.

    On the CPU and in fp32 that is oneDNN. PyTorch's own choice, MKL, does without AVX-512 on processors that are not
    Intel's, at half the speed.

    Args:
        a: (r, k).
        b: (c, k); its transpose may be the contiguous one.
        bias: (c) or None.

    Returns:
        (r, c).
    """
    onednn = torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled
    if onednn and a.dtype == torch.float32 and a.device.type == "cpu":
        if not b.is_contiguous() and not b.T.is_contiguous():
            b = b.contiguous()  # for other strides oneDNN has only its reference loop, 2,000 times slower
        return torch.ops.mkldnn._linear_pointwise(a.contiguous(), b, bias, "none", [], "")
    return a @ b.T if bias is None else torch.addmm(bias, a, b.T)


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
        queries: W_Q E + b_Q (|L|, h).
        folded: U, that is W_O^T c_l as rows (|L|, h), see `plant.model.label_attention.Head`.
        keys: W_K H + b_K (N, h), one document after the other, without padding between them.
        values: W_V H + b_V (N, h).
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
    """Let the C library of Linux keep what tiles free, for the next tile, instead of handing it back and forth.

    It keeps up to twice the largest block of at most 32 MiB that was freed so far. This one is never written to, so
    it costs nothing. Without it a process that has not freed much yet spends up to half its time on page faults.
    """
    torch.empty(KEPT, dtype=torch.uint8)


class _LabelLogits(Function):
    """The formulas above, document by document."""

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
        m, h = queries.shape[0] if labels is None else labels.shape[1], queries.shape[1]
        documents = len(lengths) if any(ctx.needs_input_grad) else 1  # whose O is kept
        logits = queries.new_zeros(len(lengths), m)
        attended, normaliser = queries.new_empty(documents, m, h), queries.new_empty(documents, m, heads)
        factor = _scale(h, heads) * LOG2_E
        largest = factor * _largest(queries, heads)
        scaled = queries * factor  # of one head or one label `_by_head` is a view: nothing in place
        q, u = _by_head(scaled, heads), folded
        for document, tokens in _spans(lengths):
            if labels is not None:
                ids = labels[document]
                q = _by_head(scaled.index_select(0, ids), heads)
                u = folded.index_select(0, ids)
            k, v = keys[tokens], values[tokens]
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
            kept, g, step = _nonzero(gradient[document], tokens.stop - tokens.start)
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
    """O of one document and the logarithm of what divides its S.

    Args:
        q: queries times log2(e) / sqrt(d), (G, r, d).
        keys: (n, h).
        values: (n, h).
        safe: for each head, whether all scores are within `LIMIT`.
        o: written, (r, G, d).
        z: written, log2 of the sum over tokens of 2 ** score (r, G).
        added: to the scores of every head (r, n'), natural; or None.
    """
    heads, r, _ = q.shape
    k, v, beyond = _tokens(keys, heads), _tokens(values, heads), _beyond(keys)
    for rows, head in _tiles(r, min(r, _step(r, len(keys))), heads, heads_first=added is None):
        s = _plus(product(q[head, rows], k[head], beyond), added, rows)
        top = 0 if safe[head] else s.amax(1, keepdim=True)
        total = (s if safe[head] else s.sub_(top)).exp2_().sum(1, keepdim=True)
        torch.div(product(s, v[head].T), total, out=o[rows, head])
        z[rows, head] = (total.log2_() + top)[:, 0]


def _document_backward(
    q: Tensor, u: Tensor, o: Tensor, z: Tensor, keys: Tensor, values: Tensor, g: Tensor, step: int,
    added: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients by Q, K, V of one document: (r, h), (n, h), (n, h).

    Args:
        q: (r, h).
        u: (r, h).
        o: (r, h).
        z: (r, G), see `_attend`.
        keys: (n, h).
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
    k_one, v_one = F.pad(k, (0, 1), value=1), F.pad(v, (0, 1), value=1)
    dq = torch.empty_like(o).view(r, heads, -1)
    dk, dv = (x.new_zeros(heads, x.shape[2], x.shape[1]) for x in (k, v))  # (G, d, n')
    for rows, head in _tiles(r, step, heads, heads_first=added is None):
        s = _plus(product(q[head, rows], k_one[head], beyond), added, rows).exp2_()
        dv[head] += product(gu[head, :, rows], s.T)
        x = product(u[head, rows], v_one[head], torch.zeros_like(beyond)).mul_(s)
        dk[head] += product(gq[head, :, rows], x.T)
        dq[rows, head] = product(x, k[head].T)
    dk, dv = (x[:, :, : len(keys)].flatten(0, 1).T for x in (dk, dv))
    return dq.view(r, -1).mul_(g * scale), dk, dv


def _highest(added: Tensor | None) -> float:
    """What a bias adds to a score to base 2, at most."""
    return 0.0 if added is None or not added.numel() else LOG2_E * max(abs(float(one)) for one in added.aminmax())


def _plus(s: Tensor, added: Tensor | None, rows: slice) -> Tensor:
    """Scores of some labels to base 2 with the natural bias added, in place."""
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
    """Positions of the entries that are not 0, those entries, and labels of a tile for n tokens, which divides their
    number: the first position, with 0, fills up."""
    kept = gradient.nonzero()[:, 0]
    step = _step(len(kept), n)
    missing = -len(kept) % step
    return torch.cat([kept, kept[:1].expand(missing)]), F.pad(gradient[kept], (0, missing)), step


def rounded(n: int) -> int:
    """Tokens of a product: n, or up to an eighth more."""
    step = max(STEP, 2 ** (n.bit_length() - 4))
    return -(-n // step) * step


def _step(r: int, n: int) -> int:
    """Labels of a tile of about `TILE` scores, where r labels and n tokens make tiles of like size."""
    count = max(1, -(-r * rounded(n) // TILE))
    return max(1, -(-r // (count * STEP))) * STEP


def _tiles(r: int, step: int, heads: int, *, heads_first: bool) -> Iterator[tuple[slice, int]]:
    """`step` rows and a head; the last rows may overlap those before.

    All rows of a head, whose keys and values stay near; or all heads of some rows, whose bias does. A head's rows come
    in the same order either way.
    """
    starts = range(0, r, step)
    for one, two in itertools.product(range(heads), starts) if heads_first else itertools.product(starts, range(heads)):
        head, start = (one, two) if heads_first else (two, one)
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
    """(n, h) -> (G, n', d), contiguous: n' is n rounded up, rows beyond n are 0"""
    return _by_head(F.pad(x, (0, 0, 0, rounded(len(x)) - len(x))), heads)


def _beyond(tokens: Tensor) -> Tensor:
    """What is added to scores (n'): 0 at the n tokens, -inf at the rows that `_tokens` puts beyond them."""
    n = len(tokens)
    return F.pad(tokens.new_zeros(n), (0, rounded(n) - n), value=-math.inf)
