"""nDCG@k of a ranking of tokens by predicted score, against their relevance (section 2).

A list is one label's tokens in one document: the positions whose token is in T_l. Lists are rows of padded
arrays: relevance -1 marks what is not in the list.

    DCG@k = sum over ranks i <= k of gain(r_i) / log2(1 + i),   nDCG@k = DCG@k / max DCG@k
"""

import math

import torch
from torch import Tensor

OUTSIDE = -1.0  # relevance of a position that is not in the list


def gains(relevance: Tensor, kind: str) -> Tensor:
    """2^r - 1 (exponential) or r (linear), in [0, 1]; 0 outside the list (choice C04)."""
    inside = relevance.clamp_min(0)
    # expm1 keeps the digits of a small r
    return torch.expm1(inside * math.log(2)) if kind == "exponential" else inside


def discounts(scores: Tensor, relevance: Tensor, k: int) -> Tensor:
    """1 / log2(1 + rank) of every position in the ranking by score (..., t), 0 beyond rank k and outside the list.

    Ties in score are broken by position, so that the result is the same on every machine.
    """
    inside = relevance >= 0
    order = scores.masked_fill(~inside, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    rank = torch.empty_like(order)
    rank.scatter_(-1, order, torch.arange(1, scores.shape[-1] + 1, device=scores.device).expand_as(order))
    discount = 1 / torch.log2(1 + rank.to(torch.promote_types(scores.dtype, torch.float32)))
    return discount.masked_fill((rank > k) | ~inside, 0)


def ideal_dcg(relevance: Tensor, k: int, gain: str) -> Tensor:
    """max DCG@k of each list, (...); 0 where no position has a positive relevance."""
    ordered = gains(relevance, gain).sort(dim=-1, descending=True).values[..., :k]
    ranks = torch.arange(2, ordered.shape[-1] + 2, device=relevance.device, dtype=ordered.dtype)
    return (ordered / torch.log2(ranks)).sum(-1)


def ndcg(scores: Tensor, relevance: Tensor, *, k: int, gain: str = "exponential") -> Tensor:
    """nDCG@k of each list, higher is better.

    Args:
        scores: (..., t).
        relevance: (..., t) in [0, 1], `OUTSIDE` at positions outside the list.
        k: truncation.
        gain: "exponential" or "linear".

    Returns:
        (...) in [0, 1]; NaN for a list without a positive relevance, where nDCG is not defined.

    >>> ndcg(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1.0, 0.0, 0.5]), k=10)
    tensor(1.)
    """
    dcg = (gains(relevance, gain) * discounts(scores, relevance, k)).sum(-1)
    return dcg / ideal_dcg(relevance, k, gain).masked_fill_(~(relevance > 0).any(-1), torch.nan)
