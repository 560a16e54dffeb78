"""Scores of a trained classifier for the documents of a split."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from plant.evaluation.scores import write_scores
from plant.finetuning.finetune import predict_logits
from plant.model.assemble import TrainingData
from plant.model.classifier import LabelClassifier
from plant.settings import Evaluation

PART = 512  # documents whose scores are dense at the same time where the label set is large


def predict_split(
    classifier: LabelClassifier,
    data: TrainingData,
    split: str,
    *,
    corpus: Path,
    out: Path,
    settings: Evaluation,
    batch_size: int,
) -> None:
    """Write the scores of one split by the scores contract.

    A label without a training document, and every label of a document without a token, gets no score (-inf).

    Args:
        classifier: trained.
        data: its corpus and label space.
        split: "val" or "test".
        corpus: folder of the corpus room (document ids and all labels, trained or not).
        out: folder of the scores.
        settings: top K, dense limit.
        batch_size: documents at once.
    """
    table = pl.read_parquet(corpus / f"{split}.parquet", columns=["document_id", "labels"])
    n_labels = len(data.names)
    first = data.corpus.splits[split][0]
    documents = data.corpus.documents(split)
    dense = n_labels <= settings.dense_limit
    truth = _truth(table["labels"], data.names)
    rows: list[Any] = []  # dense parts, or sparse ones
    for start in range(0, table.height, PART):
        part = documents[(documents >= first + start) & (documents < first + start + PART)]
        scores = np.full((min(PART, table.height - start), n_labels), -np.inf, dtype=np.float32)
        logits = predict_logits(classifier, data.corpus, part, batch_size=batch_size)
        scores[np.ix_(part - first - start, data.trained)] = logits
        rows.append(scores if dense else _known(scores, truth[start : start + PART], settings.top))
    write_scores(
        out, split, document_ids=table["document_id"].to_list(), label_names=list(data.names),
        truth=truth, natural_threshold=0.0, settings=settings,
        scores=np.concatenate(rows) if dense else sparse.vstack(rows, format="csr"),
    )  # fmt: skip


def _truth(labels: pl.Series, names: Sequence[str]) -> sparse.csr_array:
    """Truth (N, |L|) over the full label list."""
    position = {name: index for index, name in enumerate(names)}
    rows = labels.to_list()
    indices = np.array([position[label] for row in rows for label in row], dtype=np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return sparse.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(len(rows), len(names)))


def _known(scores: np.ndarray, truth: sparse.csr_array, k: int) -> sparse.csr_array:
    """The k largest scores of each row and those of its true labels; only finite ones."""
    k = min(k, scores.shape[1])
    keep = truth.toarray()
    np.put_along_axis(keep, np.argpartition(-scores, k - 1, axis=1)[:, :k], True, 1)
    row, column = np.nonzero(keep & np.isfinite(scores))
    return sparse.csr_array((scores[row, column], (row, column)), shape=scores.shape)
