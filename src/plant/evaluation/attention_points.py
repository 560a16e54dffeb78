"""Attention over the text of a few documents at each point of training, for the page `attention_page_<experiment>`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.evaluation.attention import shown_pairs
from plant.evaluation.attention_marks import marked_tokens
from plant.evaluation.points import POINTS, Run, attention
from plant.ground.files import write_with
from plant.pretraining.lists import TopTokens

SCHEMA: dict[str, Any] = {
    "document_id": pl.String, "label": pl.String, "position": pl.UInt32, "token": pl.String, "relevance": pl.Float32,
    "marked": pl.Boolean, **dict.fromkeys(POINTS, pl.Float32),
}  # fmt: skip


def write_attention_points(
    run: Run,
    top: TopTokens,
    marks: pl.DataFrame | None,
    *,
    corpus: Path,
    tokens: Path,
    vocabulary: Path,
    documents: int,
    out: Path,
) -> None:
    """Write the attention of the rarest true labels of the first test documents, token by token.

    Args:
        run: the network.
        top: T_l of every label, in the trained label space.
        marks: as `plant.corpus.marks.read_marks` returns them; None where nobody marked words.
        corpus: folder of the corpus.
        tokens: folder of its tokens.
        vocabulary: vocabulary.parquet of the backbone's tokens.
        documents: number of documents.
        out: parquet with words of the texts: document_id, label, position, token, relevance in [0, 1] (0 outside T_l),
            marked (whether people marked the token; null without marks), and the attention at each of `POINTS`.
    """
    data, words = run.data, pl.read_parquet(vocabulary)["token"]
    ids = pl.read_parquet(corpus / "test.parquet", columns=["document_id"])["document_id"]
    shown = shown_pairs(data.corpus, documents)
    weights: dict[tuple[str, int], np.ndarray] = {}
    for point, read in run.points():
        for document, labels in shown:
            weights[point, document] = attention(run.classifier, read, document, labels)
    found = () if marks is None else marked_tokens(data, marks, corpus=corpus, tokens=tokens)
    by_pair = {(each.document, int(label)): row for each in found
               for label, row in zip(each.labels, each.tokens, strict=True)}  # fmt: skip
    parts = [pl.DataFrame(schema=SCHEMA)]
    for document, labels in shown:
        ids_read = data.corpus.tokens(document)
        relevance = np.maximum(top.relevance_of(labels, ids_read), 0)
        none = np.zeros(len(ids_read), dtype=bool)
        for row, label in enumerate(labels):
            table: dict[str, Any] = {
                "document_id": ids[document - data.corpus.splits["test"][0]],
                "label": data.names[data.trained[label]], "position": np.arange(len(ids_read)),
                "token": words.gather(ids_read), "relevance": relevance[row],
                "marked": None if marks is None else by_pair.get((document, int(label)), none),
            }  # fmt: skip
            table |= {point: weights[point, document][row] for point in POINTS}
            parts.append(pl.DataFrame(table, schema=SCHEMA))
    write_with(out, pl.concat(parts).write_parquet)
