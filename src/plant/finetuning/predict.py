"""Scores of a trained classifier for the documents of a split."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from plant.corpus.reader import load_labels
from plant.finetuning.candidates import Shortlist
from plant.finetuning.scoring import predict_candidates, predict_logits
from plant.ground.identity import read_names
from plant.ground.settings import Evaluation
from plant.metrics.scores import PART, SCORES, kept_scores, write_scores
from plant.model.assemble import TrainingData
from plant.model.classifier import LabelClassifier


def predict_split(
    classifier: LabelClassifier,
    data: TrainingData,
    split: str,
    *,
    corpus: Path,
    out: Path,
    settings: Evaluation,
    batch_size: int,
    shortlist: Shortlist | None = None,
) -> None:
    """Write the scores of one split by the scores contract; ids and labels are those of the folder `corpus`.

    A label without a training document, and every label of a document without a token, gets no score (-inf). With a
    shortlist so does every label outside it, true or not: the truth of a document decides nothing about its scores.
    """
    labels, n_labels = load_labels(corpus), len(data.names)
    indptr, indices = labels.part(split)
    n_documents = len(indptr) - 1
    truth = sparse.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(n_documents, n_labels))
    first = data.corpus.splits[split][0]
    documents = data.corpus.documents(split)
    dense = n_labels <= settings.dense_limit
    rows: list[Any] = []  # dense parts, or sparse ones
    size = max(1, min(PART, SCORES // n_labels))
    for start in range(0, n_documents, size):
        part = documents[(documents >= first + start) & (documents < first + start + size)]
        shape = (min(size, n_documents - start), n_labels)
        if shortlist is None:
            scores = np.full(shape, -np.inf, dtype=np.float32)
            logits = predict_logits(classifier, data.corpus, part, batch_size=batch_size)
            scores[np.ix_(part - first - start, data.trained)] = logits
            rows.append(scores if dense else kept_scores(scores, truth[start : start + size], settings.top))
            continue
        lists, logits = predict_candidates(classifier, data.corpus, part, shortlist, batch_size=batch_size)
        row, column = np.nonzero(lists.inside)
        places = part[row] - first - start, data.trained[lists.labels[row, column]]
        if dense:
            scores = np.full(shape, -np.inf, dtype=np.float32)
            scores[places] = logits[row, column]
            rows.append(scores)
        else:
            rows.append(sparse.csr_array((logits[row, column], places), shape=shape))
    write_scores(
        out, split, document_ids=labels.document_ids(split), label_names=list(data.names),
        truth=truth, natural_threshold=0.0, settings=settings, names=read_names(corpus),
        scores=np.concatenate(rows) if dense else sparse.vstack(rows, format="csr"),
    )  # fmt: skip
