"""One number fitted after Stage 1: how sharp the planted attention is (choice C39).

Eq. 2 asks for an order and not for a scale. So Stage 1 can rank well while its softmax is almost flat. Here all scores
are multiplied by one c > 0. It is the c for which the softmax over a document's tokens is closest to the relevance:

    c = argmin of the mean over lists (i, l) of - sum_j p_j log softmax_j(c s_l),    p_j = r_lj / sum of r_lj

The mean is over the training split's documents and their labels. It is convex in c.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import torch

from plant.model.batches import ordered_batches, pad_documents

if TYPE_CHECKING:
    from plant.pretraining.pretrain import TokenRanking

MOST = 1000
"""Documents that the scale is fitted on: evenly over the training split."""
LIMITS = (1e-2, 1e3)
"""The smallest and the largest scale."""

log = logging.getLogger("plant")


@torch.no_grad()
def scale_attention(ranking: TokenRanking) -> float:
    """Multiply the attention's scores by the fitted scale, and return it."""
    scale, documents = fit_scale(ranking), ranking.corpus.documents("val")
    before = ranking.measure(documents)
    ranking.classifier.attention.scale_scores(scale)
    after = ranking.measure(documents)
    log.info(
        "Stage 1: scores times %.3g; attention mass %.3f -> %.3f, entropy %.3f -> %.3f (validation)",
        scale, before["mass"], after["mass"], before["entropy"], after["entropy"],
    )  # fmt: skip
    return scale


@torch.no_grad()
def fit_scale(ranking: TokenRanking) -> float:
    """The scale c in `LIMITS`; 1.0 where no list has relevance."""
    corpus, classifier = ranking.corpus, ranking.classifier.eval()  # after a resumed last epoch it is in training mode
    train = corpus.documents("train")
    documents = train[:: max(1, -(-len(train) // MOST))]
    documents = documents[[len(ranking.positives(document)) > 0 for document in documents]]
    lists: list[np.ndarray] = []  # scores (n) of each list, less the largest
    linear = 0.0  # sum over lists of sum_j p_j s_j, with these scores
    for batch in ordered_batches(corpus, documents, ranking.settings.batch_size):
        ids, positions, relevance = ranking.lists(batch, [ranking.positives(document) for document in batch])
        hidden = classifier.hidden_states(pad_documents(corpus, batch, ranking.device))  # (B, n, h)
        scores = classifier.attention.token_logits(hidden, ids).double()  # (B, m, n)
        weights = relevance.clamp(min=0).double()  # (B, m, t)
        total = weights.sum(-1)  # (B, m)
        target = (weights * scores.gather(2, positions)).sum(-1) / total
        for row, column in (total > 0).nonzero().tolist():
            own = scores[row, column, : len(corpus.tokens(batch[row]))]
            lists.append((own - own.max()).cpu().numpy())
            linear += float(target[row, column] - own.max())
    return _minimum(lists, linear) if lists else 1.0


def _minimum(lists: list[np.ndarray], linear: float) -> float:
    """The scale with the least sum of cross entropies: log of the sum of exp(c s), less c times `linear`."""
    from scipy.optimize import minimize_scalar  # here, so that a fit without this option needs no SciPy (make gpu)

    scores = np.concatenate(lists)
    starts = np.cumsum([0, *(len(own) for own in lists[:-1])])

    def cross_entropy(log_c: float) -> float:
        c = np.exp(log_c)
        return float(np.log(np.add.reduceat(np.exp(c * scores), starts)).sum() - c * linear)

    return float(np.exp(minimize_scalar(cross_entropy, bounds=tuple(np.log(LIMITS)), method="bounded").x))
