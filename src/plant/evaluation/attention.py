"""Attention in a few documents: which tokens a label looks at. For credentialed text it is only made if asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from plant.ground.files import write_with
from plant.model.assemble import TrainingData
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens

LABELS = 2  # labels shown per document
SCHEMA: dict[str, Any] = {
    "document_id": pl.String, "label": pl.String, "truth": pl.Boolean, "probability": pl.Float64,
    "position": pl.Int64, "token": pl.String, "weight": pl.Float32, "relevance": pl.Float32,
}  # fmt: skip


def write_attention(
    classifier: LabelClassifier,
    data: TrainingData,
    top: TopTokens | None,
    *,
    corpus: Path,
    vocabulary: Path,
    out: Path,
    documents: int,
) -> None:
    """Write the attention weights S (Eq. 1, after Stage 2) of the rarest true labels of the first test documents.

    Args:
        classifier: trained.
        data: its corpus.
        top: T_l in the trained label space, for the column `relevance`; None: this column is null.
        corpus: folder of the corpus room.
        vocabulary: vocabulary.parquet of the backbone's tokens.
        out: parquet: document_id, label, truth, probability, position, token, weight in [0, 1], relevance.
        documents: number of documents.
    """
    tokens = pl.read_parquet(vocabulary)["token"]
    ids = pl.read_parquet(corpus / "test.parquet", columns=["document_id"])["document_id"]
    first = data.corpus.splits["test"][0]
    parts = [pl.DataFrame(schema=SCHEMA)]
    for document, labels in shown_pairs(data.corpus, documents):
        weights, probability = _weights(classifier, data, document, labels)
        read = data.corpus.tokens(document)
        relevance = None if top is None else top.relevance_of(labels, read)  # (m, n); below 0: not in T_l
        for row, label in enumerate(labels):
            shown_relevance = None if relevance is None else np.where(relevance[row] < 0, np.nan, relevance[row])
            table = {
                "document_id": ids[int(document) - first],
                "label": data.names[data.trained[label]],
                "truth": True,
                "probability": float(probability[row]),
                "position": np.arange(len(read)),
                "token": tokens.gather(read),
                "weight": weights[row],
                "relevance": shown_relevance,
            }
            parts.append(pl.DataFrame(table, schema=SCHEMA).with_columns(pl.col("relevance").fill_nan(None)))
    write_with(out, pl.concat(parts).write_parquet)


def shown_pairs(corpus: Corpus, documents: int) -> list[tuple[int, np.ndarray]]:
    """The first test documents with a label, and the ids of the rarest true labels of each."""
    counts = np.bincount(corpus.indices[: corpus.indptr[corpus.splits["train"][1]]])
    shown = [int(d) for d in corpus.documents("test") if len(corpus.labels(d))][:documents]
    by_rarity = ((d, corpus.labels(d)[np.argsort(counts[corpus.labels(d)], kind="stable")]) for d in shown)
    return [(document, labels[:LABELS]) for document, labels in by_rarity]


@torch.no_grad()
def _weights(
    classifier: LabelClassifier, data: TrainingData, document: int, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Attention weights S (m, n) of m labels in one document of n tokens, and probabilities of the labels (m,)."""
    classifier.eval()
    device = next(classifier.parameters()).device
    padded = pad_documents(data.corpus, [document], device)
    ids = torch.from_numpy(labels.astype(np.int64))[None].to(device)
    hidden = classifier.hidden_states(padded)
    known = padded.known
    bias = None if known.bias is None else classifier.dense_bias(hidden, ids, known.bias)
    weights = classifier.attention.token_probabilities(hidden, ids, padded.mask, bias)[0]
    return weights.cpu().numpy(), classifier.logits(hidden, padded.mask, ids, known=known)[0].sigmoid().cpu().numpy()
