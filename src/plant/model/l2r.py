"""The ranking model of the earlier version of the paper (A.2), and the attention that it gives (A.4, Eq. 6).

    f(l, t) = w_2 . relu(W_1 [e_l; e_t] + b_1) + b_2        a score for each label l and word t (Eqs. 1 and 2, L = 2)
    P_l = softmax over the document's tokens of threshold(f(l, t_j), k)                      inattention (Eq. 6, A.5)

f knows labels and words, not documents: it is trained over the vocabulary (`plant.pretraining.vocabulary`), before the
classifier. The classifier adds P to its learned attention and trains f further (`differentiable_attention`).
W_1 [e_l; e_t] is computed as the sum of a label's part and a word's part.
"""

import math

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

LABELS_TOGETHER = 256  # of a document: their part of the hidden layer fits a cache, and a GPU is still busy


class L2R(nn.Module):
    """f(l, t): a network of two layers, the first of width r (`hidden`), over embeddings of size d."""

    def __init__(self, n_labels: int, vocabulary: int, size: int, hidden: int) -> None:
        super().__init__()
        self.labels = nn.Parameter(torch.empty(n_labels, size))
        self.words = nn.Parameter(torch.empty(vocabulary, size))
        self.of_label = nn.Linear(size, hidden)  # the left half of W_1, and b_1
        self.of_word = nn.Linear(size, hidden, bias=False)  # the right half of W_1
        self.output = nn.Linear(hidden, 1)
        for table in (self.labels, self.words):
            nn.init.normal_(table, std=1 / math.sqrt(size))

    def pairs(self, labels: Tensor, words: Tensor) -> Tensor:
        """f of a list of words for each label: label ids (m), word ids (m, t) -> (m, t)."""
        left = self.of_label(self.labels[labels])[:, None]  # (m, 1, r)
        right = self.of_word(self.words[words])  # (m, t, r)
        return self.output((left + right).relu())[..., 0]

    def scores(self, labels: Tensor | None, words: Tensor) -> Tensor:
        """f of all words of a document for each label: label ids (m) or None for all, word ids (n) -> (m, n).

        A word that is repeated is scored once. The hidden layer (m, n, r) exists for `LABELS_TOGETHER` labels at a time
        and is computed again in the backward pass.
        """
        left = self.of_label(self.labels if labels is None else self.labels[labels])  # (m, r)
        unique, place = words.unique(return_inverse=True)
        right = self.of_word(self.words[unique])  # (u, r)
        rows = []
        for part in left.split(LABELS_TOGETHER):
            if torch.is_grad_enabled():
                rows.append(checkpoint(self._combined, part, right, use_reentrant=False))
            else:
                rows.append(self._combined(part, right))
        return torch.cat(rows)[:, place]

    def _combined(self, left: Tensor, right: Tensor) -> Tensor:
        return self.output((left[:, None] + right[None]).relu())[..., 0]


def inattention(scores: Tensor, k: int | None, losers: str) -> Tensor:
    """P of Eq. 6: softmax over tokens after the threshold of A.5 (choice C34).

    Args:
        scores: f (m, n).
        k: the threshold is the k-th largest score of a row; None, or k above n: no threshold.
        losers: `zero` reads A.5 as printed: scores above the k-th largest stay (k - 1 of them, without ties), and the
            others become 0, which keeps the weight e^0. `minus_infinity` keeps the k largest alone.
    """
    if k is not None and k <= scores.shape[-1]:
        kth = scores.detach().topk(k, dim=-1).values[..., -1:]
        if losers == "zero":
            scores = scores.masked_fill(scores.detach() <= kth, 0.0)
        else:
            scores = scores.masked_fill(scores.detach() < kth, -torch.inf)
    return scores.softmax(-1)


def l2r_from(tensors: dict[str, Tensor], prefix: str = "") -> L2R | None:
    """A random model of the sizes of the saved one among a label attention's tensors; None where there is none."""
    name = f"{prefix}l2r."
    if f"{name}labels" not in tensors:
        return None
    labels, words = tensors[f"{name}labels"], tensors[f"{name}words"]
    return L2R(len(labels), len(words), labels.shape[1], tensors[f"{name}output.weight"].shape[1])
