"""The k best tokens of every label, in two ways that give the same rows.

`polars_choice` is the plain way and serves every measure: count with polars, score every token that may be chosen, keep
the k best. `compiled_choice` is the fast way of MIG (`plant.kernels.relevance`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plant.ground.seeds import generator
from plant.ground.settings import Relevance
from plant.kernels.relevance import STEPS, Scoring, TokenLists, best_tokens
from plant.relevance.contingency import BLOCK, joint_counts
from plant.relevance.measures import MEASURES, PairCounts, is_positive, mig, n_log_n, rounding


@dataclass(frozen=True)
class Candidates:
    """The tokens that may be chosen: those that occur in enough training documents.

    Attributes:
        n_token: int64[V], training documents with each token (also of tokens that may not be chosen).
        order: int64, the tokens that may be chosen, by n_token descending, then token id.
        n_documents: N.
    """

    n_token: np.ndarray
    order: np.ndarray
    n_documents: int


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
    lists: TokenLists
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


def candidates(n_token: np.ndarray, n_documents: int, *, min_documents: int) -> Candidates:
    """Tokens in at least `min_documents` training documents (at least 1)."""
    order = np.lexsort((np.arange(len(n_token)), -n_token))
    return Candidates(n_token, order[n_token[order] >= max(min_documents, 1)], n_documents)


def chosen(
    training: Training, measure: str, settings: Relevance, *, compiled: bool = True, block: int = BLOCK
) -> Iterator[Chosen]:
    """The k best tokens of every label, in pieces of about `rows_in_memory` rows.

    Where there are fewer tokens than k, a label keeps them all; nothing comes where there is none.
    """
    if not len(training.candidates.order):
        return iter(())
    settings = settings.model_copy(update={"k": min(settings.k, len(training.candidates.order))})
    if compiled and MEASURES[measure].formula is mig:
        return compiled_choice(training, settings, rows=settings.rows_in_memory)
    return polars_choice(training, measure, settings, rows=settings.rows_in_memory, block=block)


def compiled_choice(training: Training, settings: Relevance, *, rows: int) -> Iterator[Chosen]:
    """The k tokens of highest MIG of every label, in pieces of at least `rows` rows (the last may be shorter)."""
    among = training.candidates
    total, table = among.n_documents, n_log_n(among.n_documents)
    scoring = Scoring(
        total, among.n_token.astype(np.uint32), among.order.astype(np.uint32), table,
        table[among.n_token] + table[total - among.n_token], rounding(total), settings.k, settings.sign == "positive",
        settings.min_documents, np.uint64(max(1, (len(among.n_token) - 1).bit_length())),
    )  # fmt: skip
    label = 0
    while label < len(training.names):
        label, *piece = best_tokens(training.lists, training.indptr, training.documents, scoring, label, rows)
        yield Chosen(*piece)


def polars_choice(training: Training, measure: str, settings: Relevance, *, rows: int, block: int) -> Iterator[Chosen]:
    """As `compiled_choice`, of any measure; `block` keys (label, document, token) are in memory at once."""
    pieces: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for label, counts in _label_counts(training, measure, block):
        pieces[label] = _best_of_label(label, counts, training, measure, settings)
        if sum(len(token) for token, *_ in pieces.values()) >= rows:
            yield _joined(pieces)
            pieces = {}
    if pieces:
        yield _joined(pieces)


def _label_counts(training: Training, measure: str, block: int) -> Iterator[tuple[int, PairCounts]]:
    """Counts of every token, label by label; labels without documents are left out."""
    among, indptr, documents = training.candidates, training.indptr, training.documents
    size = {"n_tokens": len(among.n_token), "block": block}
    joint = joint_counts(training.lists, indptr, documents, **size)
    occurrences = None
    if MEASURES[measure].occurrences:
        occurrences = joint_counts(_repeats(training), indptr, documents, **size)
    for label, n_label in enumerate(np.diff(indptr).tolist()):
        n_joint, said = next(joint), next(occurrences) if occurrences else None
        if n_label:
            in_all = None if said is None else int(said.sum())
            yield label, PairCounts(n_joint, among.n_token, n_label, among.n_documents, said, in_all)


def _repeats(training: Training) -> TokenLists:
    """All tokens of each document that count."""
    kept = training.counted[training.input_ids]
    before = np.concatenate(([0], np.cumsum(kept)))
    return TokenLists(training.input_ids[kept].astype(np.uint32), before[training.offsets])


def _best_of_label(
    label: int, counts: PairCounts, training: Training, measure: str, settings: Relevance
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Token, n_joint and relevance of the k best, in rank order."""
    entry, among = MEASURES[measure], training.candidates
    if entry.formula is None:
        draw = generator(settings.seed, "relevance", measure, training.names[label])
        token, relevance = random_tokens(among, k=settings.k, generator=draw)
    elif entry.described:
        said = training.described[label] if training.described else np.zeros(0, np.int64)
        token, relevance = described_relevance(counts, among, said, measure=measure, k=settings.k)
    else:
        token = among.order
        if settings.sign == "positive":
            token = token[is_positive(counts.of(token))]
        relevance = normalised(entry.formula(counts.of(token)))
    token, relevance = best(token, relevance, settings.k)
    return token, np.asarray(counts.n_joint)[token], relevance


def random_tokens(among: Candidates, *, k: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """k tokens drawn evenly from those that may be chosen, with relevances drawn from (0, 1].

    The control without information: neither the tokens nor their values depend on the label's counts.
    """
    token = np.sort(generator.choice(among.order, size=k, replace=False))
    return token, normalised(1.0 - generator.random(k))


def described_relevance(
    counts: PairCounts, among: Candidates, said: np.ndarray, *, measure: str, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a label's description and their relevance; none where the description says nothing.

    The most frequent other tokens fill up to k with relevance 0, so that Stage 1 has something to rank the described
    ones above.

    Args:
        counts: of every token.
        among: those that may be chosen; other tokens of the description are left out.
        said: token ids of the description, ascending and distinct.
        measure: whose formula scores them.
        k: tokens kept.
    """
    formula = MEASURES[measure].formula
    if formula is None:
        raise ValueError(f"{measure} has no formula")
    may = np.zeros(len(among.n_token), bool)
    may[among.order] = True
    token = said[may[said]]
    relevance = normalised(formula(counts.of(token)))
    if not relevance.any():
        return token[:0], relevance[:0]
    may[token] = False
    fill = among.order[may[among.order]][: max(0, k - len(token))]
    return np.concatenate((token, fill)), np.concatenate((relevance, np.zeros(len(fill), np.float32)))


def normalised(values: np.ndarray) -> np.ndarray:
    """Values (at least 0) over the largest of them, in steps of 2^-24; zeros where all are 0.

    The steps are those that float32 resolves at 1. They decide what a tie is: equal values that were summed
    in another order stay equal, on every machine.

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
