"""Which words a label looks at, for a few documents: the same text under planted and under random attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from plant.ground.settings import Experiment, Settings
from plant.paper.systems import Roles, System

EXCERPT = 70
"""Tokens that the printed figure shows of a document."""
UNDERLINED = 5
"""Different tokens that are marked as the most relevant ones of a document."""
MARK = "Credentialed text. Only for those whom its data use agreement names: do not share this."


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
    """A document, one of its true labels, and both systems' attention to it."""

    document: str
    label: str
    pieces: tuple[str, ...]
    """The text token by token; a piece that starts a word starts with a space."""
    relevant: np.ndarray
    """bool (n,), the document's `UNDERLINED` tokens of highest relevance r_lj."""
    panels: tuple[Panel, ...]

    @property
    def largest(self) -> float:
        """The largest weight of all panels: the scale of the shading."""
        return max(float(panel.weights.max()) for panel in self.panels)

    def excerpt(self, size: int = EXCERPT) -> slice:
        """The `size` tokens in a row that carry most weight, summed over the panels so that none is favoured."""
        total = np.sum([panel.weights for panel in self.panels], axis=0)
        if len(total) <= size:
            return slice(0, len(total))
        sums = np.convolve(total, np.ones(size), mode="valid")
        first = int(np.argmax(sums))
        return slice(first, first + size)


def may_show_text(settings: Settings, experiment: Experiment) -> bool:
    """False for credentialed data, unless the config asks for it in so many words."""
    return not settings.is_credentialed(experiment.dataset) or settings.evaluation.show_credentialed


def mark(settings: Settings, experiment: Experiment) -> str:
    """What stands over every view of credentialed text; empty where the text is open."""
    return MARK if settings.is_credentialed(experiment.dataset) else ""


def readings(attention: pl.DataFrame, roles: Roles, *, documents: int) -> tuple[Reading, ...]:
    """The first documents that both the planted and the random system have read.

    Of each document the first label of the file is taken that is true and that both systems have. Whether the
    picture flatters a system plays no part.

    Args:
        attention: as `read_attention` returns it.
        roles: who is planted and who is random; with one of them missing the other stands alone.
        documents: at most this many.
    """
    shown = [system for system in (roles.planted, roles.control) if system is not None]
    shown = [system for system in shown if system.name in set(attention.get_column("system"))]
    if not shown:
        return ()
    chosen: dict[str, Reading] = {}
    own = [attention.filter(system=system.name) for system in shown]
    for document, label in (
        own[0].filter("truth").select("document_id", "label").unique(maintain_order=True).iter_rows()
    ):
        parts = [part.filter(document_id=document, label=label).sort("position") for part in own]
        if document not in chosen and len(chosen) < documents and all(len(part) == len(parts[0]) for part in parts):
            chosen[document] = _reading(document, label, shown, parts)
    return tuple(chosen.values())


def _reading(document: str, label: str, systems: Sequence[System], parts: Sequence[pl.DataFrame]) -> Reading:
    relevance = parts[0].get_column("relevance")
    for part in parts[1:]:
        relevance = relevance.fill_null(part.get_column("relevance"))
    return Reading(
        document=document,
        label=label,
        pieces=spaced(parts[0].get_column("token").to_list()),
        relevant=_most_relevant(parts[0].get_column("token"), relevance),
        panels=tuple(
            Panel(system, float(part.item(0, "probability")), part.get_column("weight").to_numpy())
            for system, part in zip(systems, parts, strict=True)
        ),
    )


def _most_relevant(tokens: pl.Series, relevance: pl.Series) -> np.ndarray:
    """bool (n,): every occurrence of the few tokens of highest relevance above 0; ties go by first occurrence."""
    table = pl.DataFrame({"token": tokens, "relevance": relevance}).filter(pl.col("relevance") > 0)
    best = table.unique("token", keep="first", maintain_order=True).sort(
        "relevance", descending=True, maintain_order=True
    )
    return tokens.is_in(best.head(UNDERLINED).get_column("token").implode()).to_numpy()


def spaced(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens as pieces of running text: a piece that starts a word starts with a space.

    Knows byte-level and SentencePiece marks, WordPiece's "##", and plain words.

    >>> spaced([" fe", "ver", " high"]), spaced(["fe", "##ver", "high"]), spaced(["fever", "high"])
    ((' fe', 'ver', ' high'), (' fe', 'ver', ' high'), (' fever', ' high'))
    """
    tokens = [token.replace("\u2581", " ").replace("\u0120", " ").replace("\u010a", " ") for token in tokens]
    if any(token[:1].isspace() for token in tokens):
        return tuple(" " + token.lstrip() if token[:1].isspace() else token for token in tokens)
    return tuple(token[2:] if token.startswith("##") else f" {token}" for token in tokens)
