"""Attention over the words of a few test documents: which tokens a label looks at. The files hold words of the texts.

For credentialed text they are only made if asked for.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from plant.evaluation.attention_marks import marked_tokens
from plant.evaluation.points import POINTS, TrainedNetwork, attention
from plant.ground.files import write_with
from plant.model.assemble import TrainingData
from plant.model.batches import Corpus, pad_documents
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
        out: parquet: document_id, label, truth, probability, position, token, weight in [0, 1], relevance (null outside
            T_l).
    """

    def columns(document: int, labels: np.ndarray) -> Iterator[dict[str, Any]]:
        probability = _probabilities(classifier, data.corpus, document, labels)
        relevance = top.relevance_of(labels, data.corpus.tokens(document))
        relevance = np.where(relevance < 0, np.nan, relevance)
        weights = attention(classifier, data.corpus, document, labels)
        for row in zip(probability.tolist(), weights, relevance, strict=True):
            yield {"truth": True, **dict(zip(("probability", "weight", "relevance"), row, strict=True))}

    _write(out, SCHEMA, data, _shown(data, documents, corpus=corpus, vocabulary=vocabulary), columns)


def write_attention_points(
    run: TrainedNetwork, marks: pl.DataFrame | None, *, vocabulary: Path, documents: int, out: Path
) -> None:
    """Write the same attention at each point of training, for the page `attention_page_<experiment>`.

    Args:
        marks: as `plant.corpus.marks.read_marks` returns them; None where nobody marked words.
        vocabulary, documents: as in `write_attention`.
        out: parquet: document_id, label, position, token, relevance in [0, 1] (0 outside T_l), marked (whether people
            marked the token; null without marks), and the attention at each of `POINTS`.
    """
    shown = list(_shown(run.data, documents, corpus=run.corpus, vocabulary=vocabulary))
    weights = {
        (point, document): attention(run.classifier, read, document, labels)
        for point, read in run.points()
        for document, labels, _ in shown
    }
    found = () if marks is None else marked_tokens(run, marks)
    marked = {(each.document, int(label)): row for each in found
              for label, row in zip(each.labels, each.tokens, strict=True)}  # fmt: skip

    def columns(document: int, labels: np.ndarray) -> Iterator[dict[str, Any]]:
        relevance = np.maximum(run.top.relevance_of(labels, run.data.corpus.tokens(document)), 0)
        none = np.zeros(relevance.shape[1], dtype=bool)
        for row, label in enumerate(labels.tolist()):
            yield {
                "relevance": relevance[row],
                "marked": None if marks is None else marked.get((document, label), none),
                **{point: weights[point, document][row] for point in POINTS},
            }

    _write(out, POINTS_SCHEMA, run.data, shown, columns)


Shown = tuple[int, np.ndarray, dict[str, Any]]
"""A document, the ids of some of its labels, and its tokens as columns."""


def _write(
    out: Path, schema: dict[str, Any], data: TrainingData, shown: Iterable[Shown],
    columns: Callable[[int, np.ndarray], Iterator[dict[str, Any]]],
) -> None:  # fmt: skip
    """A row for each token of each label that is shown; `columns` gives the columns of each label beside the tokens."""
    parts = [pl.DataFrame(schema=schema)]
    for document, labels, words in shown:
        for label, own in zip(labels, columns(document, labels), strict=True):
            parts.append(pl.DataFrame(words | own | {"label": data.names[data.trained[label]]}, schema=schema))
    write_with(out, pl.concat(parts).fill_nan(None).write_parquet)


def _shown(data: TrainingData, documents: int, *, corpus: Path, vocabulary: Path) -> Iterator[Shown]:
    """The first test documents with a label, the ids of the rarest true labels of each, and its tokens as columns."""
    read, tokens = data.corpus, pl.read_parquet(vocabulary)["token"]
    names = pl.read_parquet(corpus / "test.parquet", columns=["document_id"])["document_id"]
    counts = np.bincount(read.indices[: read.indptr[read.splits["train"][1]]])
    with_label = [int(document) for document in read.documents("test") if len(read.labels(document))]
    for document in with_label[:documents]:
        labels, ids = read.labels(document), read.tokens(document)
        rarest = labels[np.argsort(counts[labels], kind="stable")][:LABELS]
        name = names[document - read.splits["test"][0]]
        yield document, rarest, {"document_id": name, "position": np.arange(len(ids)), "token": tokens.gather(ids)}


@torch.no_grad()
def _probabilities(classifier: LabelClassifier, corpus: Corpus, document: int, labels: np.ndarray) -> np.ndarray:
    """Probabilities of some labels in one document, (m,)."""
    padded = pad_documents(corpus, [document], classifier.attention.embeddings.device)
    ids = torch.from_numpy(labels.astype(np.int64))[None].to(classifier.attention.embeddings.device)
    hidden = classifier.hidden_states(padded)
    return classifier.logits(hidden, padded.mask, ids, known=padded.known)[0].sigmoid().cpu().numpy()
