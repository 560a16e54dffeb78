"""The chosen tokens of all labels, in pieces, in two ways that give the same rows.

`compiled_choice` is the fast one; `polars_choice` counts with polars and selects with NumPy, label by label: the
oracle, and the way of `random` and `description`, which have no formula of the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plant.ground.seeds import generator
from plant.ground.settings import Relevance
from plant.relevance import kernel
from plant.relevance.contingency import BLOCK, TokenLists, joint_counts, label_spans, token_lists
from plant.relevance.selection import Candidates, LabelCounts, Selected, idf_tokens, random_tokens, top_tokens


@dataclass(frozen=True)
class Training:
    """What a table is made from: the training split only.

    Attributes:
        names, words: label names and token strings, by id.
        input_ids, offsets: tokens of the documents, as in `corpus.reader.Tokens`.
        counted: bool[V], False for special tokens.
        lists: distinct tokens of each document.
        candidates: the tokens that may be chosen.
        indptr, documents: the documents of each label, of `contingency.label_documents`.
        described: token ids of each label's description, of `described.described_tokens`; for that measure only.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]
    input_ids: np.ndarray
    offsets: np.ndarray
    counted: np.ndarray
    lists: kernel.Lists
    candidates: Candidates
    indptr: np.ndarray
    documents: np.ndarray
    described: tuple[np.ndarray, ...] | None = None


@dataclass(frozen=True)
class Chosen:
    """The chosen tokens of some labels: labels ascending, each label's tokens in rank order."""

    labels: np.ndarray  # int64[m]
    lengths: np.ndarray  # int64[m], tokens of each
    token: np.ndarray  # ids
    n_joint: np.ndarray
    relevance: np.ndarray  # float32 in [0, 1]


def chosen(
    training: Training, measure: str, settings: Relevance, *, compiled: bool = True, block: int = BLOCK
) -> Iterator[Chosen]:
    """The k best tokens of every label, in pieces of about `rows_in_memory` rows, in the way that the measure has.

    Where there are fewer tokens than k, a label keeps them all; nothing comes where there is none.
    """
    if not len(training.candidates.order):
        return iter(())
    settings = settings.model_copy(update={"k": min(settings.k, len(training.candidates.order))})
    if compiled and measure in kernel.CODES:
        return compiled_choice(training, measure, settings, rows=settings.rows_in_memory)
    return polars_choice(training, measure, settings, rows=settings.rows_in_memory, block=block)


def compiled_choice(training: Training, measure: str, settings: Relevance, *, rows: int) -> Iterator[Chosen]:
    """The k best tokens of every label, in pieces of at least `rows` rows (the last may be shorter)."""
    among = kernel.marginals(training.candidates.n_token, training.candidates.order, training.candidates.n_documents)
    rule = kernel.rule(
        measure, k=settings.k, sign=settings.sign, min_documents=settings.min_documents,
        n_documents=among.n_documents, n_tokens=len(among.n_token),
    )  # fmt: skip
    lists, repeats = training.lists, training.lists
    if measure == "term_frequency":
        repeats = _repeats(training)
    label = 0
    while label < len(training.names):
        label, *piece = kernel.best_tokens(
            lists, repeats, training.indptr, training.documents, among, rule, label, rows
        )
        yield Chosen(*piece)


def _repeats(training: Training) -> kernel.Lists:
    """All tokens of each document that count."""
    kept = training.counted[training.input_ids]
    before = np.concatenate(([0], np.cumsum(kept)))
    return kernel.Lists(training.input_ids[kept].astype(np.uint32), before[training.offsets])


def polars_choice(training: Training, measure: str, settings: Relevance, *, rows: int, block: int) -> Iterator[Chosen]:
    """As `compiled_choice`; `block` keys (label, document, token) are in memory at once."""
    labels: list[int] = []
    pieces: list[Selected] = []
    for label, counts in _label_counts(training, measure, block):
        labels.append(label)
        if measure == "random":
            draw = generator(settings.seed, "relevance", "random", training.names[label])
            pieces.append(random_tokens(counts, training.candidates, k=settings.k, generator=draw))
        elif measure == "description":
            tokens = training.described[label] if training.described else np.zeros(0, np.int64)
            pieces.append(idf_tokens(counts, training.candidates, tokens, k=settings.k))
        else:
            pieces.append(top_tokens(counts, training.candidates, measure=measure, k=settings.k, sign=settings.sign))
        if sum(len(piece.token) for piece in pieces) >= rows:
            yield _joined(labels, pieces)
            labels, pieces = [], []
    if labels:
        yield _joined(labels, pieces)


def _joined(labels: list[int], pieces: list[Selected]) -> Chosen:
    return Chosen(
        np.array(labels),
        np.array([len(piece.token) for piece in pieces]),
        np.concatenate([piece.token for piece in pieces]),
        np.concatenate([piece.n_joint for piece in pieces]),
        np.concatenate([piece.relevance for piece in pieces]),
    )


def _label_counts(training: Training, measure: str, block: int) -> Iterator[tuple[int, LabelCounts]]:
    def listed(*, distinct: bool) -> TokenLists:
        return token_lists(
            training.input_ids, training.offsets, counted=training.counted, distinct=distinct, block=block
        )

    selectable = np.zeros(len(training.counted), bool)
    selectable[training.candidates.order] = True
    lists, occurrences = listed(distinct=True), listed(distinct=False) if measure == "term_frequency" else None
    indptr, documents = training.indptr, training.documents
    for first, last in label_spans(lists, indptr, documents, block):
        joint = joint_counts(lists, indptr, documents, first=first, last=last, block=block)
        repeats = None
        if occurrences is not None:
            repeats = joint_counts(occurrences, indptr, documents, first=first, last=last, block=block)
        for label in range(first, last):
            n_label = int(indptr[label + 1] - indptr[label])
            if not n_label:
                continue
            token, n_joint = joint.row(label)
            keep = selectable[token]
            said = None if repeats is None else repeats.row(label)[1]
            yield label, LabelCounts(
                n_label, token[keep], n_joint[keep],
                None if said is None else said[keep],
                None if said is None else int(said.sum()),
            )  # fmt: skip
