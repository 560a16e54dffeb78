"""Approximate nDCG over labels, the loss in the authors' public code (choice C23): a ranking of S_i by the logits, in
which a true label has relevance 1 and another one 0."""

import torch
from torch import Tensor

from plant.pretraining.losses import approx_ndcg


def approx_ndcg_loss(
    logits: Tensor, truth: Tensor, *, temperature: float, n_labels: int, selected: Tensor | None = None
) -> Tensor:
    """The loss of each document (B), in [0, 1]; arguments as in `plant.finetuning.losses.focal.focal_loss`.

    `temperature` is that of the smooth ranks.
    """
    del n_labels  # a ranking is no sum over labels
    relevance = truth.to(torch.promote_types(logits.dtype, torch.float32))
    relevance = relevance if selected is None else relevance.masked_fill(~selected, -1)
    return approx_ndcg.approx_ndcg_loss(logits, relevance, k=truth.shape[1], temperature=temperature, gain="linear")
