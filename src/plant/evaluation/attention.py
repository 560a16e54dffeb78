"""Attention over the words of a few test documents: which tokens a label looks at. The files hold words of the texts.

For credentialed text they are only made if asked for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from plant.evaluation.attention_marks import marked_tokens
from plant.evaluation.points import POINTS, TrainedNetwork, attention, write_rows
from plant.model.assemble import TrainingData
from plant.model.batches import pad_documents
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens

LABELS = 2
"""Labels shown per document."""
SCHEMA: dict[str, Any] = {
    "document_id": pl.String, "label": pl.String, "truth": pl.Boolean, "probability": pl.Float64,
    "position": pl.Int64, "token": pl.String, "weight": pl.Float32, "relevance": pl.Float32,
}  # fmt: skip
POINTS_SCHEMA: dict[str, Any] = {
    "document_id": pl.String, "label": pl.String, "position": pl.UInt32, "token": pl.String, "relevance": pl.Float32,
    "marked": pl.Boolean, **dict.fromkeys(POINTS, pl.Float32),
}  # fmt: skip


def write_attention(
    classifier: LabelClassifier, data: TrainingData, top: TopTokens, *,
    corpus: Path, vocabulary: Path, documents: int, out: Path,
) -> None:  # fmt: skip
    """Write the attention (see `points.attention`) of the rarest true labels of the first test documents.

    Args:
        top: T_l in the trained label space, for the column `relevance`.
        corpus: folder of the corpus.
        vocabulary: vocabulary.parquet of the backbone's tokens.
        documents: number of documents.
        out: parquet with the columns of SCHEMA: weight in [0, 1], relevance null outside T_l.
    """
    rows, device = [], classifier.attention.embeddings.device
    for document, labels, columns in _shown(data, documents, corpus=corpus, vocabulary=vocabulary):
        ids = torch.from_numpy(labels.astype(np.int64))[None].to(device)
        logits = classifier.predict(pad_documents(data.corpus, [document], device), ids)
        probability = logits[0].sigmoid().cpu().numpy().tolist()
        relevance = top.relevance_of(labels, data.corpus.tokens(document))
        relevance = np.where(relevance < 0, np.nan, relevance)
        weights = attention(classifier, data.corpus, document, labels)
        for row, own in enumerate(columns):
            values = {"probability": probability[row], "weight": weights[row], "relevance": relevance[row]}
            rows.append(own | {"truth": True} | values)
    write_rows(out, SCHEMA, rows)


def write_attention_points(
    run: TrainedNetwork, marks: pl.DataFrame | None, *, vocabulary: Path, documents: int, out: Path
) -> None:
    """Write the same attention at each point of training, for the page `attention_page_<experiment>`.

    Args:
        marks: as `plant.corpus.marks.read_marks` returns them; None where nobody marked words.
        vocabulary, documents: as in `write_attention`.
        out: parquet with the columns of POINTS_SCHEMA: relevance in [0, 1] (0 outside T_l), marked (whether people
            marked the token; null without marks), and the attention at each of `POINTS`.
    """
    shown = list(_shown(run.data, documents, corpus=run.corpus, vocabulary=vocabulary))
    weights = {
        (point, document): attention(run.classifier, read, document, labels)
        for point, read in run.points()
        for document, labels, _ in shown
    }
    found = () if marks is None else marked_tokens(run, marks)
    marked = {(each.document, label): row for each in found
              for label, row in zip(each.labels.tolist(), each.tokens, strict=True)}  # fmt: skip
    rows = []
    for document, labels, columns in shown:
        relevance = np.maximum(run.top.relevance_of(labels, run.data.corpus.tokens(document)), 0)
        none = np.zeros(relevance.shape[1], dtype=bool)
        for row, label in enumerate(labels.tolist()):
            own = None if marks is None else marked.get((document, label), none)
            values = {point: weights[point, document][row] for point in POINTS}
            rows.append(columns[row] | values | {"relevance": relevance[row], "marked": own})
    write_rows(out, POINTS_SCHEMA, rows)


def _shown(
    data: TrainingData, documents: int, *, corpus: Path, vocabulary: Path
) -> Iterator[tuple[int, np.ndarray, list[dict[str, Any]]]]:
    """The first test documents with a label, the ids of the rarest true labels of each, and the columns that name each
    label and the tokens."""
    read, tokens = data.corpus, pl.read_parquet(vocabulary)["token"]
    names = pl.read_parquet(corpus / "test.parquet", columns=["document_id"])["document_id"]
    counts = np.bincount(read.indices[: read.indptr[read.splits["train"][1]]])
    with_label = [int(document) for document in read.documents("test") if len(read.labels(document))]
    for document in with_label[:documents]:
        labels, ids = read.labels(document), read.tokens(document)
        rarest = labels[np.argsort(counts[labels], kind="stable")][:LABELS]
        name = names[document - read.splits["test"][0]]
        words = {"document_id": name, "position": np.arange(len(ids)), "token": tokens.gather(ids)}
        yield document, rarest, [words | {"label": data.names[data.trained[label]]} for label in rarest]
