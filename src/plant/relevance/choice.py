"""The k best tokens of every label, in two ways that give the same rows.

`plain_choice` serves every measure: it counts, scores every token that may be chosen, and keeps the k best.
`compiled_choice` is the fast way of MIG for large tables (`plant.kernels.relevance`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plant.ground.seeds import generator
from plant.ground.settings import Relevance
from plant.relevance.contingency import TokenLists, distinct_tokens, joint_counts
from plant.relevance.measures import MEASURES, Formula, PairCounts, is_positive, mig, n_log_n, rounding

STEPS = 2**24
"""Relevance is a whole number of 2^-24, the steps that float32 resolves at 1. They decide what a tie is: equal values
that were summed in another order stay equal, on every machine."""
LARGE = 100_000_000
"""Triples (label, document, token) from which the compiled way is taken: below, compiling costs more than it saves."""


@dataclass(frozen=True)
class Training:
    """What a table is made from: the training split only.

    Attributes:
        names, words: label names and token strings, by id.
        input_ids, offsets: tokens of the documents, as in `corpus.reader.Tokens`.
        counted: bool[V], False for special tokens.
        indptr, documents: the documents of each label, of `contingency.label_documents`.
        min_documents: tokens in fewer documents may not be chosen.
        described: token ids of each label's description, of `described.described_tokens`; for that measure only.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]
    input_ids: np.ndarray
    offsets: np.ndarray
    counted: np.ndarray
    indptr: np.ndarray
    documents: np.ndarray
    min_documents: int
    described: tuple[np.ndarray, ...] | None = None

    @property
    def n_documents(self) -> int:
        """N"""
        return len(self.offsets) - 1

    @cached_property
    def lists(self) -> TokenLists:
        """Distinct tokens of each document."""
        return distinct_tokens(self.input_ids, self.offsets, self.counted)

    @cached_property
    def n_token(self) -> np.ndarray:
        """int64[V], documents with each token (also of tokens that may not be chosen)."""
        return np.bincount(self.lists.tokens, minlength=len(self.counted))

    @cached_property
    def order(self) -> np.ndarray:
        """int64, the tokens that may be chosen, by n_token descending, then token id."""
        order = np.argsort(-self.n_token, kind="stable")
        return order[self.n_token[order] >= max(self.min_documents, 1)]

    def repeated(self) -> TokenLists:
        """All tokens of each document that count."""
        kept = self.counted[self.input_ids]
        before = np.concatenate(([0], np.cumsum(kept)))
        return TokenLists(self.input_ids[kept].astype(np.uint32), before[self.offsets])


@dataclass(frozen=True)
class Chosen:
    """The chosen tokens of some labels: labels ascending, each label's tokens in rank order."""

    labels: np.ndarray  # int64[m]
    lengths: np.ndarray  # int64[m], tokens of each
    token: np.ndarray  # ids
    n_joint: np.ndarray
    relevance: np.ndarray  # float32 in [0, 1]


def chosen(training: Training, measure: str, settings: Relevance, *, compiled: bool | None = None) -> Iterator[Chosen]:
    """The k best tokens of every label, in pieces of about `rows_in_memory` rows (a piece ends with a label).

    If there are fewer than k tokens, a label keeps them all. If there is none, nothing is yielded.

    Args:
        training: the documents.
        measure: one of `measures.MEASURES`.
        settings: k, sign, rows_in_memory, and the seed of `random`.
        compiled: whether MIG takes the compiled way; None decides by the size of the table.
    """
    if not len(training.order):
        return iter(())
    settings = settings.model_copy(update={"k": min(settings.k, len(training.order))})
    if compiled is None:
        compiled = int(np.diff(training.lists.begins)[training.documents].sum()) > LARGE
    if compiled and MEASURES[measure].formula is mig:
        return compiled_choice(training, settings)
    return plain_choice(training, measure, settings)


def compiled_choice(training: Training, settings: Relevance) -> Iterator[Chosen]:
    """The k tokens of highest MIG of every label. All pieces but the last have at least `rows_in_memory` rows."""
    from plant.kernels.relevance import Scoring, best_tokens  # loads numba

    total, n_token, table = training.n_documents, training.n_token, n_log_n(training.n_documents)
    scoring = Scoring(
        total, n_token.astype(np.uint32), training.order.astype(np.uint32), table,
        table[n_token] + table[total - n_token], rounding(total), settings.k, settings.sign == "positive",
        training.min_documents, np.uint64(max(1, (len(n_token) - 1).bit_length())), STEPS,
    )  # fmt: skip
    label = 0
    while label < len(training.names):
        label, *piece = best_tokens(
            *training.lists, training.indptr, training.documents, scoring, label, settings.rows_in_memory
        )
        yield Chosen(*piece)


def plain_choice(training: Training, measure: str, settings: Relevance) -> Iterator[Chosen]:
    """As `compiled_choice`, of any measure."""
    pieces: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    rows = 0
    for label, counts in _label_counts(training, measure):
        token, relevance = _best_of_label(label, counts, training, measure, settings)
        pieces[label] = token, np.asarray(counts.n_joint)[token], relevance
        rows += len(token)
        if rows >= settings.rows_in_memory:
            yield _joined(pieces)
            pieces, rows = {}, 0
    if pieces:
        yield _joined(pieces)


def _label_counts(training: Training, measure: str) -> Iterator[tuple[int, PairCounts]]:
    """Counts of every token, label by label; labels without documents are left out."""
    lists = [training.lists, *([training.repeated()] if MEASURES[measure].occurrences else [])]
    counts = zip(
        *(joint_counts(some, training.indptr, training.documents, n_tokens=len(training.counted)) for some in lists),
        strict=True,
    )
    for label, (n_label, (n_joint, *said)) in enumerate(zip(np.diff(training.indptr).tolist(), counts, strict=True)):
        if n_label:
            occurrences = (said[0], int(said[0].sum())) if said else ()
            yield label, PairCounts(n_joint, training.n_token, n_label, training.n_documents, *occurrences)


def _best_of_label(
    label: int, counts: PairCounts, training: Training, measure: str, settings: Relevance
) -> tuple[np.ndarray, np.ndarray]:
    """Token and relevance of the k best, in rank order."""
    entry = MEASURES[measure]
    if entry.formula is None:
        draw = generator(settings.seed, "relevance", measure, training.names[label])
        token = np.sort(draw.choice(training.order, size=settings.k, replace=False))
        relevance = normalised(1.0 - draw.random(settings.k))  # from (0, 1]
    elif entry.described:
        said = training.described[label] if training.described else np.zeros(0, np.int64)
        token, relevance = described_relevance(counts, training.order, said, formula=entry.formula, k=settings.k)
    else:
        token = training.order
        if settings.sign == "positive" and entry.signed:
            token = token[is_positive(counts.of(token))]
        relevance = normalised(entry.formula(counts.of(token)))
    return best(token, relevance, settings.k)


def described_relevance(
    counts: PairCounts, order: np.ndarray, said: np.ndarray, *, formula: Formula, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens `said` in a label's description that may be chosen, and their relevance; none where it says nothing.

    The most frequent other tokens fill up to k with relevance 0, so that Stage 1 has something to rank the described
    ones above.
    """
    token = said[np.isin(said, order)]
    relevance = normalised(formula(counts.of(token)))
    if not relevance.any():
        return token[:0], relevance[:0]
    fill = order[~np.isin(order, token)][: max(0, k - len(token))]
    return np.concatenate((token, fill)), np.concatenate((relevance, np.zeros(len(fill), np.float32)))


def normalised(values: np.ndarray) -> np.ndarray:
    """Values (at least 0) over the largest of them, in steps of 2^-24; zeros where all are 0.

    >>> normalised(np.array([0.1 + 0.2, 0.3, 0.6]))
    array([0.5, 0.5, 1. ], dtype=float32)
    """
    largest = values.max(initial=0.0)
    if largest <= 0:
        return np.zeros(len(values), np.float32)
    return (np.rint(values / largest * STEPS) / STEPS).astype(np.float32)


def best(token: np.ndarray, relevance: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k tokens of highest relevance, best first; ties go to the smaller token id."""
    if len(token) > k:  # a partition first: a sort of all would take ten times as long
        least = np.partition(relevance, len(relevance) - k)[len(relevance) - k]
        token, relevance = token[relevance >= least], relevance[relevance >= least]
    rank = np.lexsort((token, -relevance))[:k]
    return token[rank], relevance[rank]


def _joined(pieces: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Chosen:
    lengths = [len(token) for token, *_ in pieces.values()]
    columns = (np.concatenate(column) for column in zip(*pieces.values(), strict=True))
    return Chosen(np.array(list(pieces)), np.array(lengths), *columns)
