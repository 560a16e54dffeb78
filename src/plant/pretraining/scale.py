"""One number fitted after Stage 1: how sharp the planted attention is (choice C39).

Eq. 2 asks for an order and not for a scale. So Stage 1 can rank well while its softmax is almost flat. Here all scores
are multiplied by one c > 0. It is the c for which the softmax over a document's tokens is closest to the relevance:

    c = argmin of the mean over lists (i, l) of - sum_j p_j log softmax_j(c s_l),    p_j = r_lj / sum of r_lj

The mean is over the training split's documents and their labels. It is convex in c.
"""

import logging

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from plant.ground.settings import Pretraining
from plant.model.batches import Corpus, ordered_batches, pad_documents
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import TokenRanking

MOST = 1000
"""Documents that the scale is fitted on: evenly over the training split."""
LIMITS = (1e-2, 1e3)
"""The smallest and the largest scale."""

log = logging.getLogger("plant")


@torch.no_grad()
def scale_attention(
    classifier: LabelClassifier, corpus: Corpus, top: TopTokens, settings: Pretraining, *, seed: int
) -> float:
    """Multiply the attention's scores by the fitted scale, and return it. Arguments as in `pretrain`."""
    ranking = TokenRanking(classifier, corpus, top, settings=settings, seed=seed)
    scale = fit_scale(ranking)
    documents = corpus.documents("val")
    before = ranking.measure(documents)
    classifier.attention.scale_scores(scale)
    after = ranking.measure(documents)
    log.info(
        "Stage 1: scores times %.3g; attention mass %.3f -> %.3f, entropy %.3f -> %.3f (validation)",
        scale, before["mass"], after["mass"], before["entropy"], after["entropy"],
    )  # fmt: skip
    return scale


@torch.no_grad()
def fit_scale(ranking: TokenRanking) -> float:
    """The scale c in `LIMITS`; 1.0 where no list has relevance."""
    train = ranking.corpus.documents("train")
    documents = train[:: max(1, -(-len(train) // MOST))]
    lists: list[tuple[np.ndarray, np.ndarray]] = []  # scores (n) and target p (n) of each list
    for batch in ordered_batches(ranking.corpus, documents, ranking.settings.batch_size):
        own = [ranking.positives(document) for document in batch]
        if not any(len(part) for part in own):
            continue
        ids = np.zeros((len(own), max(map(len, own))), dtype=np.int64)
        for row, part in enumerate(own):
            ids[row, : len(part)] = part
        padded = pad_documents(ranking.corpus, batch, ranking.device)
        hidden = ranking.classifier.hidden_states(padded)
        scores = ranking.classifier.attention.token_logits(hidden, torch.from_numpy(ids).to(ranking.device))
        scores_of = scores.double().cpu().numpy()  # (B, m, n)
        for row, (document, part) in enumerate(zip(batch, own, strict=True)):
            tokens = ranking.corpus.tokens(document)
            relevance = ranking.top.relevance_of(part, tokens).clip(min=0).astype(np.float64)
            lists += [
                (scores_of[row, place, : len(tokens)], each / each.sum())
                for place, each in enumerate(relevance)
                if each.sum() > 0
            ]
    if not lists:
        return 1.0
    return _minimum(lists)


def _minimum(lists: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The scale with the least mean cross entropy."""
    scores = np.concatenate([s - s.max() for s, _ in lists])
    starts = np.cumsum([0, *(len(s) for s, _ in lists[:-1])])
    linear = sum(float(p @ (s - s.max())) for s, p in lists)

    def cross_entropy(log_c: float) -> float:
        c = np.exp(log_c)
        return float(np.log(np.add.reduceat(np.exp(c * scores), starts)).sum() - c * linear)

    return float(np.exp(minimize_scalar(cross_entropy, bounds=tuple(np.log(LIMITS)), method="bounded").x))
