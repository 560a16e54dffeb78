"""Which words a label attends to, for a few documents: the same text under planted and under random attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from plant.paper.experiment.data import ExperimentData
from plant.paper.inputs import read_attention
from plant.paper.systems import System

UNDERLINED = 5
"""Number of different tokens of a document that are marked as its most relevant ones."""


@dataclass(frozen=True)
class Panel:
    """One system's view of one label in one document."""

    system: System
    probability: float
    """Of the label, in [0, 1]."""
    weights: np.ndarray
    """Attention of every token, (n,), sums to 1."""


@dataclass(frozen=True)
class Reading:
    """A document, one of its true labels, and the attention of both systems to it."""

    document: str
    label: str
    pieces: tuple[str, ...]
    """The text token by token, (n,). A piece that starts a word starts with a space."""
    relevant: np.ndarray
    """bool (n,): the `UNDERLINED` tokens of the document with the highest relevance r_lj."""
    panels: tuple[Panel, ...]

    @property
    def largest(self) -> float:
        """The largest weight of all panels: the scale of the shading."""
        return max(float(panel.weights.max()) for panel in self.panels)

    def excerpt(self, size: int) -> slice:
        """The `size` tokens in a row with the largest sum of weights over all panels, so that none is favoured."""
        return heaviest(np.sum([panel.weights for panel in self.panels], axis=0), size)


def heaviest(weights: np.ndarray, size: int) -> slice:
    """The `size` tokens in a row with the largest sum of weights; all of a shorter text."""
    if len(weights) <= size:
        return slice(0, len(weights))
    first = int(np.argmax(np.convolve(weights, np.ones(size), mode="valid")))
    return slice(first, first + size)


def readings(data: ExperimentData) -> tuple[Reading, ...]:
    """The first documents that both the planted system and its control have read; none if the text is hidden.

    The label of a document is the first true one of the file that both systems have. Nothing is chosen by how the
    picture looks. If a system has no attention file, the other is shown alone.
    """
    if data.hides_text:
        return ()
    attention = read_attention(data.inputs)
    known = set(attention["system"])
    systems = [each for each in (data.roles.planted, data.roles.control) if each is not None and each.name in known]
    if not systems:
        return ()
    tables = [attention.filter(system=system.name) for system in systems]
    chosen: dict[str, Reading] = {}
    for document, label in tables[0].filter("truth").select("document_id", "label").unique(maintain_order=True).rows():
        parts = [table.filter(document_id=document, label=label).sort("position") for table in tables]
        more = len(chosen) < data.settings.evaluation.attention_documents
        if more and document not in chosen and len({part.height for part in parts}) == 1:
            chosen[document] = _reading(document, label, systems, parts)
    return tuple(chosen.values())


def _reading(document: str, label: str, systems: Sequence[System], parts: Sequence[pl.DataFrame]) -> Reading:
    tokens, relevance = parts[0]["token"], parts[0]["relevance"]
    for part in parts[1:]:
        relevance = relevance.fill_null(part["relevance"])
    return Reading(
        document=document,
        label=label,
        pieces=spaced(tokens.to_list()),
        relevant=_most_relevant(tokens, relevance),
        panels=tuple(
            Panel(system, float(part.item(0, "probability")), part["weight"].to_numpy())
            for system, part in zip(systems, parts, strict=True)
        ),
    )


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
