"""Stage 2: the whole model is trained end to end (section 2, Eq. 3)."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plant.finetuning.asymmetric_loss import asymmetric_loss
from plant.finetuning.candidates import Shortlist
from plant.finetuning.focal_loss import focal_loss
from plant.finetuning.hard_negatives import hard_labels
from plant.finetuning.scoring import validation_f1
from plant.ground.settings import Finetuning
from plant.model.batches import Corpus, multi_hot, pad_documents, shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, fit
from plant.model.parallel import processes
from plant.pretraining.approx_ndcg import approx_ndcg_loss

ONE_PASS = 4  # two passes pay where mining keeps less than a quarter of the labels


def batch_loss(
    classifier: LabelClassifier,
    corpus: Corpus,
    batch: np.ndarray,
    settings: Finetuning,
    shortlist: Shortlist | None = None,
) -> tuple[Tensor, float]:
    """Sum of the losses of this process's documents of a batch, and their number.

    Where mining leaves most labels out, logits of all labels (with a shortlist: of all candidates) are computed
    without gradient first, and only the selected ones again with it: exact, as nothing between H and the logits is
    random. Where it leaves few out, one pass over all is cheaper than two, and the others are masked.
    """
    batch = batch[processes().mine(len(batch))]
    if not len(batch):
        return torch.zeros(()), 0.0
    device = classifier.attention.embeddings.device
    documents = pad_documents(corpus, batch, device)
    hidden = classifier.hidden_states(documents)
    labels, selected, truth = _labels(classifier, corpus, batch, shortlist, device)
    m = settings.hard_negatives
    if m is not None and m < truth.shape[1] // ONE_PASS:
        with torch.no_grad():
            everything = classifier.logits(hidden, documents.mask, labels, known=documents.known)
        columns, selected = hard_labels(everything, truth, m, selected)
        labels = columns if labels is None else labels.gather(1, columns)
        truth = truth.gather(1, columns)
        logits = classifier.logits(hidden, documents.mask, labels, known=documents.known)
    else:
        logits = classifier.logits(hidden, documents.mask, labels, known=documents.known)
        if m is not None:
            columns, inside = hard_labels(logits.detach(), truth, m, selected)
            selected = torch.zeros_like(truth).scatter_(1, columns, inside)
    n_labels = classifier.n_labels if shortlist is None else shortlist.size  # choice C13
    losses = document_losses(logits, truth, selected, settings, n_labels=n_labels)
    return losses.sum(), float(len(batch))


def _labels(
    classifier: LabelClassifier, corpus: Corpus, batch: np.ndarray, shortlist: Shortlist | None, device: torch.device
) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """Label ids (B, c), which of them count (B, c) and truth (B, c); None, None and (B, |L|) for all labels."""
    if shortlist is None:
        return None, None, multi_hot(corpus, batch, classifier.n_labels, device)
    lists, truth = shortlist.with_positives(corpus, batch)
    labels, inside = lists.tensors(device)
    return labels, inside, torch.from_numpy(truth).to(device)


def document_losses(
    logits: Tensor, truth: Tensor, selected: Tensor | None, settings: Finetuning, *, n_labels: int
) -> Tensor:
    """The recipe's loss of each document, over S_i.

    Args:
        logits: (B, c).
        truth: bool (B, c).
        selected: bool (B, c), which columns are in S_i; None: all.
        settings: `loss` and its parameters.
        n_labels: divisor of the losses that are sums over labels (choice C13); approx_ndcg has none.

    Returns:
        (B).
    """
    if settings.loss == "approx_ndcg":  # a ranking of S_i, relevance 1 for true labels (choice C23)
        relevance = truth.to(torch.promote_types(logits.dtype, torch.float32))
        relevance = relevance if selected is None else relevance.masked_fill(~selected, -1)
        k = truth.shape[1]
        return approx_ndcg_loss(logits, relevance, k=k, temperature=settings.temperature, gain="linear")
    if settings.loss == "asymmetric":
        return asymmetric_loss(
            logits, truth, gamma_positive=settings.gamma_positive, gamma_negative=settings.gamma_negative,
            margin=settings.margin, n_labels=n_labels, selected=selected,
        )  # fmt: skip
    return focal_loss(
        logits, truth, gamma=settings.gamma, epsilon=settings.epsilon, n_labels=n_labels, selected=selected
    )


def parameter_groups(classifier: LabelClassifier, settings: Finetuning) -> list[Group]:
    """Backbone at its rate from its epoch on; planted parts at the head's rate times `attention_rate`; the rest."""
    planted = classifier.attention.planted
    known = {id(p) for p in planted}
    rest = [*classifier.attention.parameters(), *classifier.head.parameters()]
    rate = settings.head_learning_rate
    groups = [
        Group("planted", planted, rate * settings.attention_rate),
        Group("head", [p for p in rest if id(p) not in known], rate),
    ]
    if classifier.backbone is not None:
        adapter = [p for p in classifier.backbone.parameters() if p.requires_grad]
        if adapter:
            groups.append(Group("backbone", adapter, settings.learning_rate, settings.backbone_from_epoch))
    return groups


def finetune(
    classifier: LabelClassifier,
    corpus: Corpus,
    settings: Finetuning,
    *,
    seed: int,
    checkpoint: Path,
    digest: str,
    shortlist: Shortlist | None = None,
) -> list[dict[str, float]]:
    """Run Stage 2; the classifier keeps the weights of the epoch with the best validation macro-F1.

    Args:
        classifier: planted by Stage 1 or randomly initialised.
        corpus: splits train and val are read.
        settings: the recipe.
        seed: of the run.
        checkpoint: folder for resuming.
        digest: of everything that the run depends on.
        shortlist: candidates of every document; None trains and validates on all labels.

    Returns:
        History, a row an epoch: loss, macro-F1 over labels present in validation at the best threshold there.
    """
    train, val = corpus.documents("train"), corpus.documents("val")

    def validate() -> dict[str, float]:
        best = validation_f1(classifier, corpus, val, shortlist, batch_size=settings.batch_size)
        return {"macro_f1": best.objective, "threshold": best.value}

    task = Task(
        name="Stage 2",
        groups=parameter_groups(classifier, settings),
        validate=validate,
        monitor="macro_f1",
        loss=lambda batch, _: batch_loss(classifier, corpus, batch, settings, shortlist),
        batches=lambda epoch: shuffled_batches(corpus, train, settings.batch_size, seed=seed, epoch=epoch),
    )
    return fit(
        classifier,
        task,
        settings,
        seed=seed,
        checkpoint=checkpoint,
        digest=digest,
        fp16_scaler=classifier.needs_loss_scaling,
    )
