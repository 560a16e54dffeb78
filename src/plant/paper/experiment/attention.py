"""Which words a label attends to, for a few documents: the same text under planted and under random attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from plant.paper.experiment.data import ExperimentData
from plant.paper.inputs import read_attention

UNDERLINED = 5
"""Number of different tokens of a document that are marked as its most relevant ones."""
LONGEST = 600
"""Tokens of a document that a page shows. Of a longer one it shows the part with the most attention of all panels."""


def heaviest(weights: Sequence[np.ndarray], size: int = LONGEST) -> slice:
    """The `size` tokens in a row with the largest sum over all panels, so that none is favoured."""
    total = np.sum(weights, axis=0)
    if len(total) <= size:
        return slice(0, len(total))
    first = int(np.argmax(np.convolve(total, np.ones(size), mode="valid")))
    return slice(first, first + size)


def readings(data: ExperimentData) -> list[dict[str, Any]]:
    """The first documents that both the planted system and its control have read; none if the text is hidden.

    The label of a document is the first true one of the file that both systems have. Nothing is chosen by how the
    picture looks. If a system has no attention file, the other is shown alone.

    Returns:
        `document`, `label`, `pieces` of the text, which of them are `relevant` (the `UNDERLINED` tokens with the
        highest relevance r_lj), the `part` that is shown, the `largest` weight, and `panels`: the `system`, the
        `probability` of the label, and the `weights` of all tokens, which sum to 1.
    """
    if data.hides_text:
        return []
    attention = read_attention(data.inputs)
    pair = (each for each in (data.roles.planted, data.roles.control) if each is not None)
    tables = {each: own for each in pair if not (own := attention.filter(system=each.name)).is_empty()}
    if not tables:
        return []
    first = next(iter(tables.values()))
    chosen: dict[str, dict[str, Any]] = {}
    for document, label in first.filter("truth").select("document_id", "label").unique(maintain_order=True).rows():
        parts = [table.filter(document_id=document, label=label).sort("position") for table in tables.values()]
        more = len(chosen) < data.settings.evaluation.attention_documents
        if not more or document in chosen or len({part.height for part in parts}) != 1:
            continue
        weights = [part["weight"].to_numpy() for part in parts]
        tokens, relevance = parts[0]["token"], parts[0]["relevance"].fill_null(parts[-1]["relevance"])
        chosen[document] = {
            "document": document, "label": label, "pieces": spaced(tokens.to_list()),
            "relevant": _most_relevant(tokens, relevance), "part": heaviest(weights),
            "largest": max(float(own.max()) for own in weights),
            "panels": [
                {"system": system, "probability": float(part.item(0, "probability")), "weights": own}
                for system, part, own in zip(tables, parts, weights, strict=True)
            ],
        }  # fmt: skip
    return list(chosen.values())


def _most_relevant(tokens: pl.Series, relevance: pl.Series) -> np.ndarray:
    """bool (n,): every occurrence of the few tokens with the highest relevance above 0; of equal ones, the first."""
    table = pl.DataFrame({"token": tokens, "relevance": relevance}).filter(pl.col("relevance") > 0)
    once = table.unique("token", keep="first", maintain_order=True)
    best = once.sort("relevance", descending=True, maintain_order=True).head(UNDERLINED)
    return tokens.is_in(best["token"].implode()).to_numpy()


def spaced(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens as pieces of running text. A piece that starts a word starts with a space.

    Tokens may have byte-level or SentencePiece marks, or WordPiece's "##", or be plain words.

    >>> spaced([" fe", "ver", " high"]), spaced(["fe", "##ver", "high"]), spaced(["fever", "high"])
    ((' fe', 'ver', ' high'), (' fe', 'ver', ' high'), (' fever', ' high'))
    """
    tokens = [token.replace("\u2581", " ").replace("\u0120", " ").replace("\u010a", " ") for token in tokens]
    if any(token[:1].isspace() for token in tokens):
        return tuple(" " + token.lstrip() if token[:1].isspace() else token for token in tokens)
    return tuple(token[2:] if token.startswith("##") else f" {token}" for token in tokens)
