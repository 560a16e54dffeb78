"""Section 2 of the paper, written down word for word: the slow twin of the folded head.

It builds every matrix that the paper names. Tests compare it with `LabelClassifier.logits`; nothing else calls it.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from plant.model.classifier import LabelClassifier


def literal_logits(
    classifier: LabelClassifier, hidden: Tensor, mask: Tensor | None, bias: Tensor | None = None
) -> Tensor:
    """Logits of all labels by Eq. 1, boost, pool and projection, one matrix after the other.

    Args:
        classifier: the parameters.
        hidden: H, (B, n, h).
        mask: (B, n), True at tokens; None attends to padding too.
        bias: added to the scores of every head (B, |L|, n), or None (choice C26).

    Returns:
        (B, |L|).
    """
    attention, head = classifier.attention, classifier.head
    batch, n, h = hidden.shape
    heads, d = attention.heads, h // attention.heads
    q = attention.query(attention.embeddings).view(-1, heads, d)  # (L, G, d)
    k = attention.key(hidden).view(batch, n, heads, d)
    v = attention.value(hidden).view(batch, n, heads, d)
    scores = torch.einsum("lgd,bngd->bgln", q, k) / math.sqrt(d)
    if bias is not None:
        scores = scores + bias[:, None]
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], -math.inf)
    s = scores.softmax(-1)
    a = attention.output(torch.einsum("bgln,bngd->blgd", s, v).reshape(batch, -1, h))  # A (B, L, h)
    a_boost = head.boost_add + a * head.boost_mul
    pooled = F.adaptive_avg_pool1d(a_boost, head.project.in_features)  # (B, L, p)
    return head.project(pooled).squeeze(-1)
