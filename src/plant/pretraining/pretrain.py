"""Stage 1: the label attention is trained to rank a document's tokens by relevance (section 2, Eq. 2)."""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plant.model.batches import Corpus, ordered_batches, pad_documents, shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, fit
from plant.pretraining.lists import TopTokens, labels_of_document, packed
from plant.pretraining.ndcg import ndcg
from plant.pretraining.ranking_loss import mse_loss, pairwise_loss
from plant.seeds import generator
from plant.settings import Pretraining

log = logging.getLogger("plant")


class Ranking:
    """Lists, scores and measures of Stage 1 on one corpus.

    Args:
        classifier: backbone and label attention; the head takes no part.
        corpus: documents.
        top: T_l and relevance of every label.
        settings: the recipe.
        seed: of the run.
    """

    def __init__(
        self, classifier: LabelClassifier, corpus: Corpus, top: TopTokens, *, settings: Pretraining, seed: int
    ) -> None:
        self.classifier, self.corpus, self.top = classifier, corpus, top
        self.settings, self.seed = settings, seed
        self.k = settings.ndcg_k or settings.k
        self.device = next(classifier.parameters()).device

    def lists(self, batch: np.ndarray, labels: list[np.ndarray]) -> tuple[Tensor, Tensor, Tensor]:
        """label ids (B, m), positions and relevance (B, m, t) of a batch."""
        relevance = [
            self.top.relevance_of(ids, self.corpus.tokens(document))
            for document, ids in zip(batch, labels, strict=True)
        ]
        positions, values = packed(relevance)
        ids = np.zeros(positions.shape[:2], dtype=np.int64)
        for row, part in enumerate(labels):
            ids[row, : len(part)] = part
        moved = [torch.from_numpy(part).to(self.device) for part in (ids, positions, values)]
        return moved[0], moved[1], moved[2]

    def scores(self, batch: np.ndarray, labels: Tensor, positions: Tensor) -> Tensor:
        """s_lj at the listed positions, (B, m, t), by choice C01."""
        documents = pad_documents(self.corpus, batch, self.device)
        hidden = self.classifier.hidden_states(documents)
        if self.settings.scores == "logits":
            scores = self.classifier.attention.token_logits(hidden, labels)
        else:
            scores = self.classifier.attention.token_probabilities(hidden, labels, documents.mask)
        return scores.gather(2, positions)

    def loss(self, batch: np.ndarray, epoch: int) -> Tensor:
        """The batch's loss: mean over its lists, or sum over a document's lists and mean over documents (C06)."""
        random = generator(self.seed, "stage 1 labels", epoch, int(batch[0]))
        labels = [
            labels_of_document(self.corpus.labels(document), self.classifier.n_labels, self.settings.negatives, random)
            for document in batch
        ]
        ids, positions, relevance = self.lists(batch, labels)
        scores = self.scores(batch, ids, positions)
        if self.settings.objective == "mse":
            losses = mse_loss(scores, relevance)
        else:
            losses = pairwise_loss(scores, relevance, k=self.k, sigma=self.settings.sigma, gain=self.settings.gain)
        if self.settings.reduction == "sum":
            return losses.sum() / len(batch)
        return losses.sum() / (relevance >= 0).any(-1).sum().clamp_min(1)

    @torch.no_grad()
    def measure(self, documents: np.ndarray) -> dict[str, float]:
        """Means over the lists (document, positive label) that hold two tokens of different relevance.

        Returns:
            ndcg: nDCG@k in [0, 1]; mass: attention probability on T_l in [0, 1]; entropy: of the attention,
            as a fraction of log n, in [0, 1]. nDCG is blind to the scale of the scores; the other two are not.
        """
        sums, count = np.zeros(3), 0
        documents = documents[[len(self.corpus.labels(document)) > 0 for document in documents]]
        for batch in ordered_batches(self.corpus, documents, self.settings.batch_size):
            ids, positions, relevance = self.lists(batch, [self.corpus.labels(document) for document in batch])
            padded = pad_documents(self.corpus, batch, self.device)
            hidden = self.classifier.hidden_states(padded)
            logits = self.classifier.attention.token_logits(hidden, ids)
            s = self.classifier.attention.token_probabilities(hidden, ids, padded.mask)
            scores = logits if self.settings.scores == "logits" else s
            inside = relevance >= 0
            lowest = relevance.masked_fill(~inside, torch.inf).amin(-1)
            counted = relevance.amax(-1) > lowest  # (B, m); False for rows that hold no label
            value = ndcg(scores.gather(2, positions), relevance, k=self.k, gain=self.settings.gain)
            mass = (s.gather(2, positions) * inside).sum(-1)
            entropy = torch.special.entr(s).sum(-1) / padded.mask.sum(1).clamp_min(2).log()[:, None]
            for index, part in enumerate((value, mass, entropy)):
                sums[index] += float(part[counted].sum())
            count += int(counted.sum())
        means = sums / count if count else np.full(3, np.nan)
        return dict(zip(("ndcg", "mass", "entropy"), means.tolist(), strict=True))


def pretrain(
    classifier: LabelClassifier,
    corpus: Corpus,
    top: TopTokens,
    settings: Pretraining,
    *,
    seed: int,
    checkpoint: Path,
    digest: str,
) -> list[dict[str, float]]:
    """Run Stage 1; the classifier keeps the weights of the epoch with the best validation nDCG@k.

    Trained: the backbone's adapter (whatever of it requires a gradient), E, W_Q and W_K. The value and output
    projections and the head get no gradient from the ranking and stay as they were initialised.

    Args:
        classifier: to train.
        corpus: splits train and val are read.
        top: T_l, from the training split only.
        settings: the recipe.
        seed: of the run.
        checkpoint: folder for resuming.
        digest: of everything that the run depends on.

    Returns:
        History, a row an epoch.
    """
    attention = classifier.attention
    for module in (attention.value, attention.output, classifier.head):
        module.requires_grad_(False)
    ranking = Ranking(classifier, corpus, top, settings=settings, seed=seed)
    train, val = corpus.documents("train"), corpus.documents("val")
    sample = train[:: max(1, len(train) // max(1, len(val)))]  # training nDCG on as many documents as validation

    def validate() -> dict[str, float]:
        on_val = ranking.measure(val)
        return {
            "ndcg_val": on_val["ndcg"], "ndcg_train": ranking.measure(sample)["ndcg"],
            "attention_mass": on_val["mass"], "attention_entropy": on_val["entropy"],
        }  # fmt: skip

    groups = [Group("planted", attention.planted, settings.head_learning_rate)]
    if classifier.backbone is not None:
        adapter = [p for p in classifier.backbone.parameters() if p.requires_grad]
        groups += [Group("backbone", adapter, settings.learning_rate)] if adapter else []
    task = Task(
        name="Stage 1",
        groups=groups,
        loss=ranking.loss,
        validate=validate,
        monitor="ndcg_val",
        batches=lambda epoch: shuffled_batches(corpus, train, settings.batch_size, seed=seed, epoch=epoch),
    )
    history = fit(
        classifier,
        task,
        settings,
        seed=seed,
        checkpoint=checkpoint,
        digest=digest,
        fp16_scaler=classifier.needs_loss_scaling,
    )
    classifier.requires_grad_(True)
    return history
