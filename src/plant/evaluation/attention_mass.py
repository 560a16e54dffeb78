"""Where attention goes: its mass on the relevant tokens of a label, and how concentrated it is (its entropy).

The relevant tokens of a label in a document are those of its list (the top k tokens by MIG, from the training split)
with a relevance above 0. Equal values of relevance are one grade. Two sets are measured, in all places of the document:
the tokens of the highest grade there, and those of the highest few grades (`attention_study.grades`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.corpus.reader import read_clusters
from plant.evaluation.points import TrainedNetwork, attention, write_rows
from plant.ground.seeds import generator
from plant.ground.settings import AttentionStudy
from plant.metrics.attention import entropy, mass, relative_entropy
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens

SCHEMA: dict[str, Any] = {
    "point": pl.String, "document": pl.UInt32, "cluster": pl.UInt32, "label": pl.String, "tokens": pl.UInt32,
    **dict.fromkeys(("mass_first", "uniform_first", "mass_grades", "uniform_grades"), pl.Float64),
    **dict.fromkeys(("entropy", "relative_entropy"), pl.Float64),
}  # fmt: skip


def write_mass(run: TrainedNetwork, *, settings: AttentionStudy, out: Path) -> None:
    """Measure a sample of validation documents with a label, at each point of training, for each of their labels.

    The table `out` (parquet) has one row for each point, document (its place in the split) and label: `cluster`, the
    number of the document's patient or group; `tokens` n; `mass_first` and `mass_grades`, the attention on the two sets
    (null without a relevant token); `uniform_first` and `uniform_grades`, that of uniform attention; `entropy` in nats;
    `relative_entropy`, entropy / ln n (null if n = 1).
    """
    corpus = run.data.corpus
    sample = sampled([d for d in corpus.documents("val") if len(corpus.labels(d))], settings.documents, settings.seed)
    names, first = [run.data.names[label] for label in run.data.trained], corpus.splits["val"][0]
    clusters = read_clusters(run.corpus / "val.parquet")
    rows = []
    for point, read in run.points():
        for document in sample:
            labels = corpus.labels(document)
            values = measure(run.classifier, read, document, run.top, settings.grades)
            row = {"point": point, "document": document - first, "cluster": clusters[document - first]}
            row |= {"label": [names[label] for label in labels], "tokens": len(corpus.tokens(document))}
            rows.append(row | values)
    write_rows(out, SCHEMA, rows)


def measure(
    classifier: LabelClassifier, corpus: Corpus, document: int, top: TopTokens, grades: int
) -> dict[str, np.ndarray]:
    """The measured columns of `write_mass` for the m labels of a document; NaN where one is not defined."""
    labels = corpus.labels(document)
    weights = attention(classifier, corpus, document, labels).astype(np.float64)  # (m, n)
    relevance = top.relevance_of(labels, corpus.tokens(document))
    values = {"entropy": entropy(weights), "relative_entropy": relative_entropy(weights)}
    for name, count in (("first", 1), ("grades", grades)):
        relevant = highest_grades(relevance, count)
        known = np.where(relevant.any(axis=1), 1.0, np.nan)
        values[f"mass_{name}"] = known * mass(weights, relevant)
        values[f"uniform_{name}"] = known * relevant.mean(axis=1)
    return values


def highest_grades(relevance: np.ndarray, count: int) -> np.ndarray:
    """(m, n) boolean: the positions whose relevance is one of the `count` highest values above 0 of its row."""
    return np.array([np.isin(values, np.unique(values[values > 0])[-count:]) for values in relevance])


def sampled(documents: Sequence[int], size: int, seed: int) -> list[int]:
    """A random sample of documents, in their order; all of them if there are not more."""
    if len(documents) <= size:
        return [int(document) for document in documents]
    chosen = generator(seed, "attention", "documents").choice(len(documents), size=size, replace=False)
    return [int(documents[place]) for place in np.sort(chosen)]
