"""Stage 1's loss (Eq. 2) and its gradient on a CPU. fast: `kernels.pairwise`; plain: `pairwise_loss_dense`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from run import Job

from plant.pretraining.losses.pairwise import pairwise_loss, pairwise_loss_dense

SMALL = {"lists": 20, "tokens": 30}
JOBS = {
    "Eq. 2, an epoch of CodiEsp (500 documents, 18 lists each)": Job("loss", {"lists": 9_000, "tokens": 64}, SMALL),
    "Eq. 2, one document with all labels of MIMIC-III": Job("loss", {"lists": 8_929, "tokens": 64}, SMALL),
    "Eq. 2, four lists of 2,000 tokens": Job("loss", {"lists": 4, "tokens": 2_000}, SMALL),
}


def loss(way: str, lists: int, tokens: int) -> Callable[[], list[float]]:
    """The sums of losses, and of the gradients' absolute values."""
    random = np.random.default_rng(0)
    relevance = random.random((lists, tokens)).astype(np.float32)
    relevance[:, ::5] = np.round(relevance[:, ::5], 1)  # some are equal, as a token's repeats are
    targets = torch.from_numpy(relevance)
    scores = torch.from_numpy(random.normal(0, 2, (lists, tokens)).astype(np.float32)).requires_grad_()
    compute = pairwise_loss if way == "fast" else pairwise_loss_dense

    def work(few: int = lists) -> list[float]:
        losses = compute(scores[:few], targets[:few], k=1000, sigma=1.0, gain="exponential")
        (gradient,) = torch.autograd.grad(losses.sum(), scores)
        return [float(losses.sum()), float(gradient.abs().sum())]

    work(1)
    return work
