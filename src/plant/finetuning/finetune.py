"""Stage 2: the whole model is trained end to end (section 2, Eq. 3)."""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from plant.finetuning.candidates import Shortlist
from plant.finetuning.losses import find_loss
from plant.finetuning.scoring import validation_f1
from plant.ground.settings import Finetuning
from plant.model.batches import Corpus, multi_hot, pad_documents, shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, TrainingRun, fit
from plant.model.parallel import processes

ONE_PASS = 4  # two passes are faster where mining keeps less than a quarter of the labels


def batch_loss(
    classifier: LabelClassifier, corpus: Corpus, batch: np.ndarray, settings: Finetuning,
    shortlist: Shortlist | None = None,
) -> tuple[Tensor, float]:  # fmt: skip
    """Sum of the losses of this process's documents of a batch, and their number.

    Where mining leaves most labels out, all logits (with a shortlist: of all candidates) are computed without gradient
    first, and those of the selected labels again with gradient. Nothing between H and the logits is random, so this is
    exact. Where mining leaves few labels out, one pass over all is cheaper, and the others are masked.
    """
    batch = batch[processes().mine(len(batch))]
    if not len(batch):
        return torch.zeros(()), 0.0
    device = classifier.attention.embeddings.device
    documents = pad_documents(corpus, batch, device)
    hidden = classifier.hidden_states(documents)  # (B, n, h)
    # columns: label ids (None: all labels), which of them count (None: all), and truth; (B, c) each
    labels, selected = None, None
    if shortlist is None:
        truth = multi_hot(corpus, batch, classifier.n_labels, device)
    else:
        lists, true = shortlist.with_positives(corpus, batch)
        labels, selected, truth = (torch.from_numpy(part).to(device) for part in (*lists, true))
    # logits of the hard labels S_i, or of all columns with a mask of S_i
    vectors = classifier.label_vectors()
    logits_of = partial(classifier.logits, hidden, documents.mask, vectors=vectors, known=documents.known)
    m = settings.hard_negatives
    if m is not None and m < truth.shape[1] // ONE_PASS:
        with torch.no_grad():
            columns, selected = hard_labels(logits_of(labels), truth, m, selected)  # (B, s) each
        labels = columns if labels is None else labels.gather(1, columns)  # (B, c) -> (B, s), as truth
        truth = truth.gather(1, columns)
        logits = logits_of(labels)
    else:
        logits = logits_of(labels)
        if m is not None:
            columns, inside = hard_labels(logits.detach(), truth, m, selected)
            selected = torch.zeros_like(truth).scatter_(1, columns, inside)
    n_labels = classifier.n_labels if shortlist is None else shortlist.size  # choice C13
    losses = find_loss(settings)(logits, truth, n_labels=n_labels, selected=selected)  # (B)
    return losses.sum(), float(len(batch))


def hard_labels(logits: Tensor, truth: Tensor, m: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """S_i of each document: all positives and the m negatives of highest predicted probability (section 2).

    Args:
        logits, truth: (B, c), without gradient; of all labels (then c = |L|) or of each document's candidates.
        m: negatives kept per document.
        allowed: bool (B, c), False at columns that hold no label (lists of candidates differ in length).

    Returns:
        Columns (B, s) and bool (B, s), which of them are in S_i. s is the largest |S_i| of the batch. Ties are broken
        by column.
    """
    size = (truth.sum(1) + m).clamp_max(truth.shape[1])
    # positives first, then negatives by falling logit, then what holds no label: one sort gives all
    key = logits.float().masked_fill(truth, torch.inf)
    if allowed is not None:
        size = torch.minimum(size, allowed.sum(1))
        key = key.masked_fill(~allowed, -torch.inf)
    order = key.argsort(dim=1, descending=True, stable=True)[:, : int(size.max())]
    inside = torch.arange(order.shape[1], device=logits.device)[None, :] < size[:, None]
    return order, inside


def parameter_groups(classifier: LabelClassifier, settings: Finetuning) -> list[Group]:
    """The planted weights, the rest of the head, and what is trained of the backbone, each with its rate."""
    l2r = getattr(classifier.attention, "l2r", None)
    planted = classifier.attention.planted if l2r is None else list(l2r.parameters())
    known = {id(p) for p in planted}
    rest = [*classifier.attention.parameters(), *classifier.head.parameters()]
    rate = settings.head_learning_rate
    groups = [
        Group("planted", planted, rate * settings.attention_rate, settings.attention_from_epoch),
        Group("head", [p for p in rest if id(p) not in known], rate),
    ]
    if classifier.backbone is not None:
        groups += backbone_groups(classifier.backbone, settings)
    return groups


def backbone_groups(backbone: nn.Module, settings: Finetuning) -> list[Group]:
    """What is trained of the backbone: at once, or layer by layer from the last one (`plant.model.registry.check`)."""
    first, rate = settings.backbone_from_epoch, settings.learning_rate
    if settings.unfreezing == "together":
        adapter = [p for p in backbone.parameters() if p.requires_grad]
        return [Group("backbone", adapter, rate, first)] if adapter else []
    trained = [[p for p in layer if p.requires_grad] for layer in backbone.layer_groups]  # type: ignore[union-attr]
    return [Group(f"layer {depth}", part, rate, first + depth) for depth, part in enumerate(trained) if part]


def finetune(
    classifier: LabelClassifier,
    corpus: Corpus,
    settings: Finetuning,
    run: TrainingRun,
    *,
    shortlist: Shortlist | None = None,
) -> list[dict[str, float]]:
    """Run Stage 2. The classifier ends with the weights of the epoch with the best validation macro-F1.

    With a shortlist it is trained and validated on the candidates of every document, else on all labels.

    Returns:
        History, one row per epoch: loss, and macro-F1 over the labels present in validation at its best threshold.
    """
    train, val = corpus.documents("train"), corpus.documents("val")

    def validate() -> dict[str, float]:
        best = validation_f1(classifier, corpus, val, shortlist, batch_size=settings.batch_size)
        return {"macro_f1": best.objective, "threshold": best.value}

    groups = parameter_groups(classifier, settings)
    task = Task(
        name="Stage 2", groups=groups, validate=validate, monitor="macro_f1",
        loss=lambda batch, _: batch_loss(classifier, corpus, batch, settings, shortlist),
        batches=lambda epoch: shuffled_batches(corpus, train, settings.batch_size, seed=run.seed, epoch=epoch),
    )  # fmt: skip
    history = fit(classifier, task, settings, run, fp16_scaler=classifier.needs_loss_scaling)
    for group in groups:  # `save_weights` writes what requires a gradient: also a group whose epoch never came
        for parameter in group.parameters:
            parameter.requires_grad_(True)
    return history
