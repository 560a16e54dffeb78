"""The Stage 2 loss: focal loss with label smoothing (Eq. 3), over all labels or a selection of them.

    L = -1/|L| sum over l in S_i of  y~ (1 - p)^gamma log p + (1 - y~) p^gamma log(1 - p),
    p = sigmoid(logit),  y~ = 1 - epsilon for a positive and epsilon for a negative.

gamma = 0 and epsilon = 0 is binary cross-entropy.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def focal_loss(
    logits: Tensor, truth: Tensor, *, gamma: float, epsilon: float, n_labels: int, selected: Tensor | None = None
) -> Tensor:
    """Eq. 3 of each document.

    Args:
        logits: (B, m), of the labels in S_i or of all.
        truth: bool (B, m).
        gamma: focusing, at least 0.
        epsilon: smoothing in [0, .5).
        n_labels: |L|, which Eq. 3 divides by whatever S_i is (choice C13).
        selected: bool (B, m), False at labels that do not count; None counts all.

    Returns:
        (B), at least 0, in fp32 or wider.
    """
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    target = torch.full_like(z, epsilon).masked_fill(truth, 1 - epsilon)
    log_p, log_q = F.logsigmoid(z), F.logsigmoid(-z)
    losses = target * focus(log_q, gamma) * log_p + (1 - target) * focus(log_p, gamma) * log_q
    if selected is not None:
        losses = losses.masked_fill(~selected, 0)
    return -losses.sum(-1) / n_labels


def focus(log_probability: Tensor, gamma: float) -> Tensor:
    """probability ** gamma from its logarithm: finite gradients where the probability rounds to 0."""
    return (gamma * log_probability).exp() if gamma else torch.ones_like(log_probability)
