"""Approximate nDCG over labels, the loss in the authors' public code (choice C23): a ranking of S_i by the logits, in
which a true label has relevance 1 and another one 0."""

import torch
from torch import Tensor

from plant.pretraining.losses import approx_ndcg


def approx_ndcg_loss(
    logits: Tensor, truth: Tensor, *, temperature: float, n_labels: int, selected: Tensor | None = None
) -> Tensor:
    """The loss of each document.

    Args:
        logits: (B, m), of the labels in S_i or of all.
        truth: bool (B, m).
        temperature: of the smooth ranks.
        n_labels: has no part in it: a ranking is no sum over labels.
        selected: bool (B, m), False at labels that do not count; None counts all.

    Returns:
        (B), in [0, 1].
    """
    del n_labels
    relevance = truth.to(torch.promote_types(logits.dtype, torch.float32))
    relevance = relevance if selected is None else relevance.masked_fill(~selected, -1)
    return approx_ndcg.approx_ndcg_loss(logits, relevance, k=truth.shape[1], temperature=temperature, gain="linear")
