"""Asymmetric loss (Ridnik et al. 2021, Eq. 5 to 7), which a summary of the paper names in place of Eq. 3.

    L = -1/|L| sum over l of  y (1 - p)^g+ log p + (1 - y) p_m^g- log(1 - p_m),
    p = sigmoid(logit),  p_m = max(p - margin, 0).

Negatives below the margin cost nothing. Targets are 0 and 1: the label smoothing of Eq. 3 (`epsilon`) does not apply.
g+ = g- = 0 and margin = 0 is binary cross-entropy.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from plant.finetuning.losses.focal import focus


def asymmetric_loss(
    logits: Tensor,
    truth: Tensor,
    *,
    gamma_positive: float,
    gamma_negative: float,
    margin: float,
    n_labels: int,
    selected: Tensor | None = None,
) -> Tensor:
    """The loss of each document.

    Args:
        logits, truth, n_labels, selected: as in `plant.finetuning.losses.focal.focal_loss`.
        gamma_positive, gamma_negative: g+ and g-, focusing of positives and of negatives, at least 0.
        margin: probability in [0, 1) that is taken off a negative's.

    Returns:
        (B), at least 0, in fp32 or wider.
    """
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_p, log_q = F.logsigmoid(z), F.logsigmoid(-z)
    positive = focus(log_q, gamma_positive) * log_p
    losses = torch.where(truth, positive, _negative(z, log_p, log_q, gamma_negative, margin))
    if selected is not None:
        losses = losses.masked_fill(~selected, 0)
    return -losses.sum(-1) / n_labels


def _negative(z: Tensor, log_p: Tensor, log_q: Tensor, gamma: float, margin: float) -> Tensor:
    """p_m^gamma log(1 - p_m) of negatives; its gradient is 0, and finite, where p is not above the margin."""
    if margin == 0:
        return focus(log_p, gamma) * log_q
    shifted = torch.sigmoid(z) - margin
    costs = shifted > 0
    shifted = torch.where(costs, shifted, 0.5)  # any value: a power of 0 has no finite gradient below gamma 1
    return torch.where(costs, shifted.pow(gamma) * torch.log1p(-shifted), 0)
