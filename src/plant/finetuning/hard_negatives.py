"""Hard negative mining: all positives and the m negatives of highest predicted probability (section 2)."""

import torch
from torch import Tensor


def hard_labels(logits: Tensor, truth: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """S_i of each document.

    Args:
        logits: (B, |L|), without gradient.
        truth: bool (B, |L|).
        m: negatives kept a document.

    Returns:
        Label ids (B, s) and bool (B, s), which of them are in S_i: every positive and the m hardest negatives.
        s is the largest |S_i| of the batch. Ties are broken by label id.
    """
    n_labels = logits.shape[1]
    positives = truth.sum(1)
    size = (positives + m).clamp_max(n_labels)
    # positives first, then negatives by falling logit: one sort gives both
    key = logits.float().masked_fill(truth, torch.inf)
    order = key.argsort(dim=1, descending=True, stable=True)[:, : int(size.max())]
    inside = torch.arange(order.shape[1], device=logits.device)[None, :] < size[:, None]
    return order, inside
