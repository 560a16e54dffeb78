"""Mean squared error in place of Eq. 2: ablation 7 of the paper."""

from torch import Tensor


def mse_loss(scores: Tensor, relevance: Tensor) -> Tensor:
    """Mean squared error between scores and relevance (..., t) over each list (...); 0 for an empty list."""
    inside = relevance >= 0
    squares = (scores - relevance).square().masked_fill(~inside, 0).sum(-1)
    return squares / inside.sum(-1).clamp_min(1)
