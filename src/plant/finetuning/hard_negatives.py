"""Hard negative mining: all positives and the m negatives of highest predicted probability (section 2)."""

import torch
from torch import Tensor


def hard_labels(logits: Tensor, truth: Tensor, m: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """S_i of each document.

    Args:
        logits: (B, c), without gradient; of all labels (then c = |L|) or of each document's candidates.
        truth: bool (B, c).
        m: negatives kept per document.
        allowed: bool (B, c), False at columns that hold no label (lists of candidates differ in length).

    Returns:
        Columns (B, s) and bool (B, s), which of them are in S_i: every positive and the m hardest negatives.
        s is the largest |S_i| of the batch. Ties are broken by column.
    """
    size = (truth.sum(1) + m).clamp_max(truth.shape[1])
    # positives first, then negatives by falling logit, then what holds no label: one sort gives all
    key = logits.float().masked_fill(truth, torch.inf)
    if allowed is not None:
        size = torch.minimum(size, allowed.sum(1))
        key = key.masked_fill(~allowed, -torch.inf)
    order = key.argsort(dim=1, descending=True, stable=True)[:, : int(size.max())]
    inside = torch.arange(order.shape[1], device=logits.device)[None, :] < size[:, None]
    return order, inside
