"""Logits of whole sets of documents without gradient, and the validation measure of Stage 2.

Several processes score their shares of the batches and sum the scores: all get the same numbers.
"""

import numpy as np
import torch

from plant.finetuning.candidates import Lists, Shortlist
from plant.metrics.f1 import Threshold, best_threshold, best_threshold_of_entries
from plant.metrics.top import top_labels
from plant.model.batches import Corpus, multi_hot, ordered_batches, pad_documents
from plant.model.classifier import LabelClassifier
from plant.model.parallel import processes

DENSE_SCORES = 2**28  # scores of validation documents that are all kept (1 GiB); beyond, the best of each document
BEST = 100  # labels that are kept of a document then, as in the evaluation (`evaluation.top`)
PART = 2**26  # scores that are dense at the same time where only the best are kept


@torch.no_grad()
def predict_logits(
    classifier: LabelClassifier,
    corpus: Corpus,
    documents: np.ndarray,
    *,
    batch_size: int,
    asked: np.ndarray | None = None,
) -> np.ndarray:
    """Logits in fp32 in the order of the N documents, (N, |L|) or (N, m) of the labels asked for, (N, m)."""
    device = classifier.attention.embeddings.device
    out = np.zeros((len(documents), classifier.n_labels) if asked is None else asked.shape, dtype=np.float32)
    classifier.eval()
    vectors = classifier.label_vectors()  # they serve all batches
    row_of = {int(document): row for row, document in enumerate(documents)}
    batches = ordered_batches(corpus, documents, batch_size)
    for batch in (batches[position] for position in processes().mine(len(batches))):
        rows = np.array([row_of[int(document)] for document in batch])
        labels = None if asked is None else torch.from_numpy(asked[rows]).to(device)  # (B, m)
        logits = classifier.predict(pad_documents(corpus, batch, device), labels, vectors=vectors)
        out[rows] = logits.float().cpu().numpy()
    return processes().sum(out)


def predict_candidates(
    classifier: LabelClassifier, corpus: Corpus, documents: np.ndarray, shortlist: Shortlist, *, batch_size: int
) -> tuple[Lists, np.ndarray]:
    """Shortlists of the N documents (N, c), whatever their true labels are, and logits fp32, -inf where a row ends."""
    lists = shortlist.of(documents)
    logits = predict_logits(classifier, corpus, documents, batch_size=batch_size, asked=lists.labels)
    return lists, np.where(lists.inside, logits, np.float32(-np.inf))


def validation_f1(
    classifier: LabelClassifier, corpus: Corpus, documents: np.ndarray, shortlist: Shortlist | None, *, batch_size: int
) -> Threshold:
    """Macro-F1 over labels present in the documents at the best threshold there (choice C12), and that threshold.

    With a shortlist, or with more than `DENSE_SCORES` scores, only the labels that are kept of a document can be
    predicted; the other true labels count as missed.
    """
    n_labels = classifier.n_labels
    if shortlist is None and len(documents) * n_labels <= DENSE_SCORES:
        scores = predict_logits(classifier, corpus, documents, batch_size=batch_size)
        truth = multi_hot(corpus, documents, n_labels, torch.device("cpu")).numpy()
        return best_threshold(scores, truth, "macro_f1_present")
    if shortlist is None:
        rows, labels, scores = _best_scores(classifier, corpus, documents, batch_size)
    else:
        lists, values = predict_candidates(classifier, corpus, documents, shortlist, batch_size=batch_size)
        rows, columns = np.nonzero(lists.inside)
        labels, scores = lists.labels[rows, columns], values[rows, columns]
    true = [corpus.labels(document).astype(np.int64) for document in documents]
    pairs = np.concatenate([np.zeros(0, dtype=np.int64), *(row * n_labels + ids for row, ids in enumerate(true))])
    return best_threshold_of_entries(
        labels, scores, np.isin(rows * n_labels + labels, pairs),
        positives=np.bincount(pairs % n_labels, minlength=n_labels), objective="macro_f1_present",
    )  # fmt: skip


def _best_scores(
    classifier: LabelClassifier, corpus: Corpus, documents: np.ndarray, batch_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, label and score of the `BEST` labels of each document, a part of the documents at a time."""
    size, best = max(1, PART // classifier.n_labels), min(BEST, classifier.n_labels)
    labels, scores = [np.zeros((0, best), dtype=np.int32)], [np.zeros((0, best), dtype=np.float32)]
    for start in range(0, len(documents), size):
        logits = predict_logits(classifier, corpus, documents[start : start + size], batch_size=batch_size)
        labels.append(top_labels(logits, best))
        scores.append(np.take_along_axis(logits, labels[-1], axis=1))
    rows = np.repeat(np.arange(len(documents)), best)
    return rows, np.concatenate(labels).ravel(), np.concatenate(scores).ravel()
