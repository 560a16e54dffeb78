"""Stage 2: the whole model is trained end to end (section 2, Eq. 3)."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plant.f1 import best_threshold
from plant.finetuning.focal_loss import focal_loss
from plant.finetuning.hard_negatives import hard_labels
from plant.model.batches import Corpus, multi_hot, ordered_batches, pad_documents, shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, fit
from plant.settings import Finetuning

ONE_PASS = 4  # two passes pay where mining keeps less than a quarter of the labels


def batch_loss(classifier: LabelClassifier, corpus: Corpus, batch: np.ndarray, settings: Finetuning) -> Tensor:
    """HNM-augmented focal loss, mean over the batch's documents.

    Where mining leaves most labels out, logits of all labels are computed without gradient first, and only the
    selected ones again with it: exact, as nothing between H and the logits is random. Where it leaves few out, one
    pass over all labels is cheaper than two, and the others are masked.
    """
    device = next(classifier.parameters()).device
    documents = pad_documents(corpus, batch, device)
    truth = multi_hot(corpus, batch, classifier.n_labels, device)
    hidden = classifier.hidden_states(documents)
    m, labels, selected = settings.hard_negatives, None, None
    if m is not None and m < classifier.n_labels // ONE_PASS:
        with torch.no_grad():
            everything = classifier.logits(hidden, documents.mask)
        labels, selected = hard_labels(everything, truth, m)
        truth = truth.gather(1, labels)
    logits = classifier.logits(hidden, documents.mask, labels)
    if m is not None and labels is None:
        chosen, inside = hard_labels(logits.detach(), truth, m)
        selected = torch.zeros_like(truth).scatter_(1, chosen, inside)
    losses = focal_loss(
        logits, truth, gamma=settings.gamma, epsilon=settings.epsilon, n_labels=classifier.n_labels, selected=selected
    )
    return losses.mean()


def predict_logits(
    classifier: LabelClassifier, corpus: Corpus, documents: np.ndarray, *, batch_size: int
) -> np.ndarray:
    """Logits (len(documents), |L|) in fp32, in the order of `documents`."""
    device = next(classifier.parameters()).device
    out = np.zeros((len(documents), classifier.n_labels), dtype=np.float32)
    row_of = {int(document): row for row, document in enumerate(documents)}
    classifier.eval()
    for batch in ordered_batches(corpus, documents, batch_size):
        logits = classifier.predict(pad_documents(corpus, batch, device))
        out[[row_of[int(document)] for document in batch]] = logits.float().cpu().numpy()
    return out


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
    classifier: LabelClassifier, corpus: Corpus, settings: Finetuning, *, seed: int, checkpoint: Path, digest: str
) -> list[dict[str, float]]:
    """Run Stage 2; the classifier keeps the weights of the epoch with the best validation macro-F1.

    Args:
        classifier: planted by Stage 1 or randomly initialised.
        corpus: splits train and val are read.
        settings: the recipe.
        seed: of the run.
        checkpoint: folder for resuming.
        digest: of everything that the run depends on.

    Returns:
        History, a row an epoch: loss, macro-F1 over labels present in validation at the best threshold there.
    """
    train, val = corpus.documents("train"), corpus.documents("val")
    truth = multi_hot(corpus, val, classifier.n_labels, torch.device("cpu")).numpy()

    def validate() -> dict[str, float]:
        scores = predict_logits(classifier, corpus, val, batch_size=settings.batch_size)
        best = best_threshold(scores, truth, "macro_f1_present")
        return {"macro_f1": best.objective, "threshold": best.value}

    task = Task(
        name="Stage 2",
        groups=parameter_groups(classifier, settings),
        validate=validate,
        monitor="macro_f1",
        loss=lambda batch, _: batch_loss(classifier, corpus, batch, settings),
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
