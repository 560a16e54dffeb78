"""Attention against people: how well attention finds the tokens that people marked as the reason for a label.

Plausibility is likeness to people: nDCG@k, mass on the marked tokens, and recall at equal length (as many top tokens as
are marked). Faithfulness is what the network itself uses: by how much its logit drops when the top tokens are taken out
of the document, as many as people marked (comprehensiveness). Both are measured for the attention at each point of
training and for references:

- `uniform`: the same score for all tokens; `random`: random scores (a point of the Dirichlet distribution);
- `relevance`: MIG of the token and the label, from the training split; `marked`: the marks themselves;
- `occlusion`: the drop of the trained network's logit when one token is taken out (leave-one-out).

The logit is that of the trained network for all of them. Occlusion and drops are measured in a sample of documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.corpus.reader import load_tokens, read_clusters
from plant.evaluation.attention_mass import sampled
from plant.evaluation.points import TrainedNetwork, attention, logits_of_parts, write_rows
from plant.ground.seeds import generator
from plant.ground.settings import AttentionStudy
from plant.metrics.attention import equal_length_recall, marked_ndcg, mass, top_tokens
from plant.model.batches import Corpus
from plant.pretraining.lists import TopTokens

SCHEMA: dict[str, Any] = {
    "scorer": pl.String, "document": pl.UInt32, "cluster": pl.UInt32, "label": pl.String, "tokens": pl.UInt32,
    "marked": pl.UInt32,
    **dict.fromkeys(("ndcg", "mass", "recall", "drop"), pl.Float64),
}  # fmt: skip


@dataclass(frozen=True)
class Marked:
    """A document with marked tokens.

    Attributes:
        document: its id in the corpus.
        labels: ids of its labels with a marked token, in the trained label space (m).
        tokens: bool (m, n), the marked tokens of each label.
    """

    document: int
    labels: np.ndarray
    tokens: np.ndarray


def write_marks_study(
    run: TrainedNetwork, marks: pl.DataFrame, *, settings: AttentionStudy, out: Path
) -> dict[str, int]:
    """Score the attention of a network, and the references, for every test document and label with marked tokens.

    `marks` are those of `plant.corpus.marks.read_marks`. The table `out` (parquet) is without any text: scorer (a point
    of training or a reference), document (its place in the split), cluster (the number of its patient or group), label,
    tokens (n), marked (how many), ndcg, mass, recall, drop (null outside the sample).

    Returns:
        Numbers of pairs of document and label: with marks, and of these with a trained label and a marked token.
    """
    found = list(marked_tokens(run, marks))
    sample = set(sampled([each.document for each in found], settings.hidden_documents, settings.seed))
    names, first = [run.data.names[label] for label in run.data.trained], run.data.corpus.splits["test"][0]
    rankings: dict[int, dict[str, np.ndarray]] = {each.document: {} for each in found}
    for point, read in run.points():
        for each in found:
            rankings[each.document][point] = attention(run.classifier, read, each.document, each.labels)
    clusters, rows = read_clusters(run.corpus / "test.parquet"), []
    for each in found:  # the classifier is the trained network now
        scores = rankings.pop(each.document) | references(each, read, run.top, settings.seed)
        drops: dict[str, np.ndarray] = {}
        if each.document in sample:
            scores["occlusion"] = occlusion(run, read, each)
            drops = {name: drop(run, read, each, values) for name, values in scores.items() if name != "uniform"}
        for name, values in scores.items():
            place = each.document - first
            row = {"scorer": name, "document": place, "cluster": clusters[place], "tokens": values.shape[1]}
            row |= {"label": [names[label] for label in each.labels], "marked": each.tokens.sum(axis=1)}
            rows.append(row | plausibility(values, each.tokens, settings.at) | {"drop": drops.get(name)})
    write_rows(out, SCHEMA, rows)
    pairs = marks.select("document_id", "label").unique().height
    return {"marked_pairs": pairs, "measured_pairs": sum(len(each.labels) for each in found)}


def marked_tokens(run: TrainedNetwork, marks: pl.DataFrame) -> Iterator[Marked]:
    """Test documents with the tokens that overlap a mark, without untrained labels and labels without such a token."""
    texts, first = load_tokens(run.tokens), run.data.corpus.splits["test"][0]
    ids = {run.data.names[label]: place for place, label in enumerate(run.data.trained)}
    listed = pl.read_parquet(run.corpus / "test.parquet", columns=["document_id"])["document_id"]
    by_document = marks.partition_by("document_id", as_dict=True)
    for place, name in enumerate(listed):
        document, own = first + place, by_document.get((name,))
        part = slice(int(texts.offsets[document]), int(texts.offsets[document + 1]))
        starts, ends = texts.starts[part], texts.ends[part]
        rows: dict[int, np.ndarray] = {}
        for label, start, end in () if own is None else own.select("label", "start", "end").iter_rows():
            if label in ids:
                row = rows.setdefault(ids[label], np.zeros(len(starts), dtype=bool))
                row |= (starts < end) & (ends > start)
        labels = np.array(sorted(label for label, row in rows.items() if row.any()), dtype=np.int64)
        if len(labels):
            yield Marked(document, labels, np.stack([rows[label] for label in labels]))


def references(each: Marked, corpus: Corpus, top: TopTokens, seed: int) -> dict[str, np.ndarray]:
    """Scores (m, n) that need no network; each row sums to 1."""
    shape = each.tokens.shape
    random = generator(seed, "attention", "random", each.document).exponential(size=shape)
    relevance = np.maximum(top.relevance_of(each.labels, corpus.tokens(each.document)), 0)
    found = {"random": random, "relevance": relevance, "marked": each.tokens, "uniform": np.ones(shape)}
    return {name: distribution(scores) for name, scores in found.items()}


def distribution(scores: np.ndarray) -> np.ndarray:
    """Scores (m, n) scaled so that each row sums to 1, negative ones as 0; uniform where none is positive."""
    positive = np.maximum(scores, 0).astype(np.float64)
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / scores.shape[1])


def plausibility(scores: np.ndarray, marked: np.ndarray, k: int) -> dict[str, np.ndarray]:
    """The measures against people, (m,) each. Drops of a logit may be negative: their mass is that of the others."""
    return {
        "ndcg": marked_ndcg(scores, marked, k),
        "mass": mass(distribution(scores), marked),
        "recall": equal_length_recall(scores, marked),
    }


def occlusion(run: TrainedNetwork, corpus: Corpus, each: Marked) -> np.ndarray:
    """By how much the logit of each label drops without each token, (m, n); 0 for a document of one token.

    Drops are rounded to 5 decimals, so that tokens of equal drop tie whatever the last bits of the logits say.
    """
    n = each.tokens.shape[1]
    if n == 1:
        return np.zeros(each.tokens.shape)
    positions = np.arange(n)
    kept = [positions, *(np.delete(positions, place) for place in positions)]
    logits = logits_of_parts(run.classifier, corpus, each.document, each.labels, kept)
    return np.round(logits[0] - logits[1:], 5).T


def drop(run: TrainedNetwork, corpus: Corpus, each: Marked, scores: np.ndarray) -> np.ndarray:
    """By how much the logit drops without the top tokens, as many as are marked (m,); NaN where no token is left."""
    positions = np.arange(each.tokens.shape[1])
    sizes = each.tokens.sum(axis=1)
    kept = [np.delete(positions, top_tokens(row, size)) for row, size in zip(scores, sizes, strict=True)]
    parts = [positions, *(part if len(part) else positions for part in kept)]
    logits = logits_of_parts(run.classifier, corpus, each.document, each.labels, parts)
    own = np.diagonal(logits[1:])  # label i without the tokens of row i
    return np.where(sizes < len(positions), logits[0] - own, np.nan)
