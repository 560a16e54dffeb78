"""Stage 1: the label attention is trained to rank a document's tokens by relevance (section 2, Eq. 2)."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plant.ground.errors import InputError
from plant.ground.files import atomic_path
from plant.ground.seeds import generator
from plant.ground.settings import Pretraining
from plant.model.assemble import save_weights
from plant.model.batches import Corpus, ordered_batches, pad_documents, shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, TrainingRun, fit
from plant.model.parallel import processes
from plant.pretraining.lists import TopTokens, label_weights, labels_of_document, packed
from plant.pretraining.losses import find_loss
from plant.pretraining.ndcg import ndcg
from plant.pretraining.scale import scale_attention

EPOCHS = "epochs"  # folder of the weights of every epoch, beside the best one's


class TokenRanking:
    """Lists, scores and measures of Stage 1 on one corpus. The head of the classifier takes no part.

    Raises:
        InputError: no label has `label_min_documents` training documents.
    """

    def __init__(
        self, classifier: LabelClassifier, corpus: Corpus, top: TopTokens, *, settings: Pretraining, seed: int
    ) -> None:
        self.classifier, self.corpus, self.top = classifier, corpus, top
        self.settings, self.seed = settings, seed
        self.k = settings.ndcg_k or settings.k
        self.list_losses = find_loss(settings)
        self.device = classifier.attention.embeddings.device
        trained_on = corpus.indices[: corpus.indptr[corpus.splits["train"][1]]]
        counts = np.bincount(trained_on, minlength=classifier.n_labels)
        self.enters = counts >= settings.label_min_documents
        self.eligible = np.flatnonzero(self.enters)
        if not len(self.eligible):
            most = f"at most {counts.max(initial=0)}, the training documents of the most frequent label"
            got = str(settings.label_min_documents)
            raise InputError("pretrainings: label_min_documents", expected=most, got=got, fix="Lower it.")

    def positives(self, document: int) -> np.ndarray:
        """Labels of a document that enter Stage 1."""
        labels = self.corpus.labels(document)
        return labels[self.enters[labels]]

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
        hidden = self.classifier.hidden_states(documents)  # (B, n, h)
        if self.settings.scores == "logits":
            scores = self.classifier.attention.token_logits(hidden, labels)
        else:
            scores = self.classifier.attention.token_probabilities(hidden, labels, documents.mask)
        return scores.gather(2, positions)  # (B, m, n) -> (B, m, t)

    def loss(self, batch: np.ndarray, epoch: int) -> tuple[Tensor, float]:
        """Sum of the losses of this process's share of a batch, and what the batch's sum is divided by (choice C06).

        That is the number of lists that hold a token of T_l (`reduction: mean`) or of documents (`sum`). With
        `reweight` lists are counted with their weights in both places (choice C05). Labels are drawn for the whole
        batch, so that the draw does not depend on the number of processes.
        """
        random = generator(self.seed, "stage 1 labels", epoch, int(batch[0]))
        labels = [
            labels_of_document(self.positives(document), self.eligible, self.settings.negatives, random)
            for document in batch
        ]
        mine = processes().mine(len(batch))
        batch, labels = batch[mine], [labels[position] for position in mine]
        if not any(len(part) for part in labels):
            return torch.zeros(()), float(len(batch)) if self.settings.reduction == "sum" else 0.0
        ids, positions, relevance = self.lists(batch, labels)
        losses = self.list_losses(self.scores(batch, ids, positions), relevance)  # (B, m)
        counted = (relevance >= 0).any(-1).to(losses.dtype)  # (B, m): 1 for a list that holds a token
        if self.settings.reweight and self.settings.negatives is not None:
            weights = self.weights(batch, labels, width=ids.shape[1])
            losses, counted = losses * weights, counted * weights
        return losses.sum(), float(len(batch)) if self.settings.reduction == "sum" else float(counted.sum())

    def weights(self, batch: np.ndarray, labels: list[np.ndarray], *, width: int) -> Tensor:
        """Weights of sampled labels (B, m); 0 where a row has ended."""
        weights = np.zeros((len(batch), width), dtype=np.float32)
        for row, (document, part) in enumerate(zip(batch, labels, strict=True)):
            weights[row, : len(part)] = label_weights(part, len(self.positives(document)), len(self.eligible))
        return torch.from_numpy(weights).to(self.device)

    def ranks(self, documents: np.ndarray) -> bool:
        """Whether some list (document, positive label) holds two tokens of different relevance."""
        for document in documents:
            relevance = self.top.relevance_of(self.positives(document), self.corpus.tokens(document))
            lowest = np.where(relevance >= 0, relevance, np.inf).min(1)
            if (relevance.max(1) > lowest).any():
                return True
        return False

    @torch.no_grad()
    def measure(self, documents: np.ndarray) -> dict[str, float]:
        """Means over the lists (document, positive label) that hold two tokens of different relevance.

        Returns:
            ndcg: nDCG@k in [0, 1]; mass: attention probability on T_l in [0, 1]; entropy: of the attention,
            as a fraction of log n, in [0, 1]. nDCG is blind to the scale of the scores; the other two are not.
        """
        together, sums = processes(), np.zeros(4)
        documents = documents[[len(self.positives(document)) > 0 for document in documents]]
        batches = ordered_batches(self.corpus, documents, self.settings.batch_size)
        for batch in (batches[position] for position in together.mine(len(batches))):
            ids, positions, relevance = self.lists(batch, [self.positives(document) for document in batch])
            padded = pad_documents(self.corpus, batch, self.device)
            hidden = self.classifier.hidden_states(padded)  # (B, n, h)
            logits = self.classifier.attention.token_logits(hidden, ids)  # (B, m, n)
            s = self.classifier.attention.token_probabilities(hidden, ids, padded.mask)  # (B, m, n)
            scores = logits if self.settings.scores == "logits" else s
            inside = relevance >= 0  # (B, m, t)
            lowest = relevance.masked_fill(~inside, torch.inf).amin(-1)
            counted = relevance.amax(-1) > lowest  # (B, m); False for rows that hold no label
            value = ndcg(scores.gather(2, positions), relevance, k=self.k, gain=self.settings.gain)
            mass = (s.gather(2, positions) * inside).sum(-1)  # (B, m), as nDCG and entropy
            entropy = torch.special.entr(s).sum(-1) / padded.mask.sum(1).clamp_min(2).log()[:, None]
            sums += [*(float(part[counted].sum()) for part in (value, mass, entropy)), int(counted.sum())]
        *totals, count = together.sum(sums).tolist()
        means = [total / count if count else np.nan for total in totals]
        return dict(zip(("ndcg", "mass", "entropy"), means, strict=True))


def pretrain(
    classifier: LabelClassifier, corpus: Corpus, top: TopTokens, settings: Pretraining, run: TrainingRun
) -> list[dict[str, float]]:
    """Run Stage 1. The classifier ends with the weights of the epoch with the best validation nDCG@k.

    Trained: the backbone's adapter (all of it that requires a gradient) and the weights that the attention's scores
    come from (E, W_Q and W_K in the paper's attention). The value and output projections and the head get no gradient
    from the ranking and stay as they were initialised. With `scale: fitted` the scores are scaled then (choice C39).

    T_l comes from the training split only. With `keep_epochs` the weights of every epoch are beside the checkpoint
    (choice C24).

    Returns:
        History, one row per epoch: loss, nDCG@k of both splits, attention mass and entropy of validation.

    Raises:
        InputError: the training or the validation split has nothing to rank.
    """
    ranking = TokenRanking(classifier, corpus, top, settings=settings, seed=run.seed)
    for split in ("train", "val"):
        if not ranking.ranks(corpus.documents(split)):
            raise InputError(
                f"Stage 1, {split} split", got="none: the relevance says nothing about these documents",
                expected="a document with a label for which it holds two tokens of different relevance",
                fix="Use more documents that differ in texts and labels, or train without Stage 1 (pretraining: none).",
            )  # fmt: skip
    with _ranked_weights_alone(classifier):
        task = _task(ranking, run.checkpoint / EPOCHS)
        history = fit(classifier, task, settings, run, fp16_scaler=classifier.needs_loss_scaling)
    if settings.scale == "fitted":
        scale_attention(ranking)
    return history


@contextmanager
def _ranked_weights_alone(classifier: LabelClassifier) -> Iterator[None]:
    """Take the gradient from the weights of attention and head that the ranking does not reach, and give it back."""
    ranked = {id(weight) for weight in classifier.attention.planted}
    rest = [*classifier.attention.parameters(), *classifier.head.parameters()]
    others = [weight for weight in rest if id(weight) not in ranked]
    for weight in others:
        weight.requires_grad_(False)
    yield
    for weight in others:
        weight.requires_grad_(True)


def _task(ranking: TokenRanking, epochs: Path) -> Task:
    """What is trained, on which batches, and how it is validated; `epochs` is the folder of the epochs' weights."""
    classifier, corpus, settings = ranking.classifier, ranking.corpus, ranking.settings
    train, val = corpus.documents("train"), corpus.documents("val")
    sample = train[:: max(1, len(train) // len(val))]  # training nDCG on as many documents as validation
    sample = sample if ranking.ranks(sample) else train
    running = 0  # the epoch whose batches were asked for last

    def batches(epoch: int) -> list[np.ndarray]:
        nonlocal running
        running = epoch
        return shuffled_batches(corpus, train, settings.batch_size, seed=ranking.seed, epoch=epoch)

    def validate() -> dict[str, float]:
        if settings.keep_epochs and processes().first:
            save_weights(classifier, epochs / str(running), head=False)
        on_val = ranking.measure(val)
        return {
            "ndcg_val": on_val["ndcg"], "ndcg_train": ranking.measure(sample)["ndcg"],
            "attention_mass": on_val["mass"], "attention_entropy": on_val["entropy"],
        }  # fmt: skip

    groups = [Group("planted", classifier.attention.planted, settings.head_learning_rate)]
    if classifier.backbone is not None:
        adapter = [p for p in classifier.backbone.parameters() if p.requires_grad]
        groups += [Group("backbone", adapter, settings.learning_rate)] if adapter else []
    return Task(
        name="Stage 1", groups=groups, loss=ranking.loss, validate=validate, monitor="ndcg_val", batches=batches
    )


def publish_epochs(checkpoint: Path, out: Path, *, epochs: int) -> None:
    """Put the weights of every epoch beside the results: `epochs/<e>/`; an empty folder where none were kept.

    During a run they are beside its checkpoint, so that they survive an interruption as the checkpoint does.
    """
    with atomic_path(out / EPOCHS) as partial:
        partial.mkdir()
        for epoch in range(1, epochs + 1):
            if (kept := checkpoint / EPOCHS / str(epoch)).is_dir():
                shutil.copytree(kept, partial / str(epoch))  # not moved: a run that dies here can end again
