"""Stage 1 of the earlier version of the paper (A.2): the ranking model learns to rank the vocabulary for each label.

One list is one label: T_l, its k most relevant words, and words outside T_l with relevance 0. The loss is Eq. 2, whose
gradient is the lambda of LambdaRank (Burges 2010):

    lambda_jk = -sigma / (1 + exp(sigma (f_j - f_k))) |delta nDCG@k|_jk

up to the factor 1 / log 2. No document is read, so there are no held-out lists: nDCG@k is measured on T_l and a fixed
sample of other words.
"""

import numpy as np
import torch
from torch import Tensor

from plant.ground.errors import InputError
from plant.ground.seeds import generator
from plant.ground.settings import Pretraining
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, TrainingRun, fit
from plant.model.l2r import L2R
from plant.model.parallel import processes
from plant.pretraining.lists import TopTokens
from plant.pretraining.losses.pairwise import pairwise_loss
from plant.pretraining.ndcg import OUTSIDE, ndcg


class VocabularyLists:
    """The lists: T_l, and those of `outside` words drawn for each list that are not in it."""

    def __init__(self, top: TopTokens, *, outside: int, seed: int) -> None:
        self.top, self.outside, self.seed = top, outside, seed
        self.labels = np.array([label for label in range(len(top.sizes)) if self._relevance(label).any()])

    def of(self, labels: np.ndarray, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Word ids i64 and relevance f32 of some labels, both (m, t); relevance is -1 where a list has ended.

        Epochs count from 1; 0 gives the lists that are measured on.
        """
        rows = [self._list(int(label), epoch) for label in labels]
        t = max(len(words) for words, _ in rows)
        words, relevance = np.zeros((len(rows), t), np.int64), np.full((len(rows), t), OUTSIDE, np.float32)
        for row, (ids, values) in enumerate(rows):
            words[row, : len(ids)], relevance[row, : len(ids)] = ids, values
        return words, relevance

    def _list(self, label: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        start = self.top.starts[label]
        inside = np.asarray(self.top.token_id[start : start + self.top.sizes[label]])
        random = generator(self.seed, "words outside the list", epoch, label)
        drawn = np.unique(random.integers(0, self.top.vocabulary, self.outside))
        others = drawn[~np.isin(drawn, inside)]
        return np.concatenate([inside, others]), np.concatenate([self._relevance(label), np.zeros(len(others))])

    def _relevance(self, label: int) -> np.ndarray:
        start = self.top.starts[label]
        return np.asarray(self.top.relevance[start : start + self.top.sizes[label]])


def pretrain_l2r(
    classifier: LabelClassifier, top: TopTokens, settings: Pretraining, run: TrainingRun
) -> list[dict[str, float]]:
    """Train f of a new ranking model and leave it in the classifier's label attention, as `l2r`.

    Nothing else of the classifier is trained. T_l comes from the training split only.

    Returns:
        History, one row per epoch: loss, and nDCG@k as `ndcg_val`.

    Raises:
        InputError: no label has a word with relevance.
    """
    device = classifier.attention.embeddings.device
    l2r = L2R(classifier.n_labels, top.vocabulary, settings.l2r_size, settings.l2r_hidden).to(device)
    lists = VocabularyLists(top, outside=settings.outside, seed=run.seed)
    if not len(lists.labels):
        raise InputError(
            "Stage 1 over the vocabulary", expected="a label with a relevant word", got="none",
            fix="Use more documents that differ in texts and labels, or train without Stage 1 (pretraining: none).",
        )  # fmt: skip
    k = settings.ndcg_k or settings.k

    def batches(epoch: int) -> list[np.ndarray]:
        order = generator(run.seed, "order", epoch).permutation(lists.labels)
        return [order[start : start + settings.batch_size] for start in range(0, len(order), settings.batch_size)]

    def scored(labels: np.ndarray, epoch: int) -> tuple[Tensor, Tensor]:
        words, relevance = (torch.from_numpy(part).to(device) for part in lists.of(labels, epoch))
        return l2r.pairs(torch.from_numpy(labels).to(device), words), relevance

    def loss(labels: np.ndarray, epoch: int) -> tuple[Tensor, float]:
        labels = labels[processes().mine(len(labels))]
        if not len(labels):
            return torch.zeros(()), 0.0
        scores, relevance = scored(labels, epoch)  # (m, t)
        losses = pairwise_loss(scores, relevance, k=k, sigma=settings.sigma, gain=settings.gain)
        return losses.sum(), float(len(labels))

    @torch.no_grad()
    def validate() -> dict[str, float]:
        sums, size = np.zeros(2), settings.batch_size
        parts = [lists.labels[start : start + size] for start in range(0, len(lists.labels), size)]
        for labels in (parts[position] for position in processes().mine(len(parts))):
            values = ndcg(*scored(labels, 0), k=k, gain=settings.gain)
            sums += [float(values.sum()), len(labels)]
        total, count = processes().sum(sums).tolist()
        return {"ndcg_val": total / count}

    task = Task(
        name="Stage 1", groups=[Group("l2r", list(l2r.parameters()), settings.head_learning_rate)], loss=loss,
        validate=validate, monitor="ndcg_val", batches=batches,
    )  # fmt: skip
    history = fit(l2r, task, settings, run)
    classifier.attention.l2r = l2r
    return history
