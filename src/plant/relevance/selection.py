"""The top k tokens of a label, exactly, from the tokens that it meets.

MIG and chi-squared also score tokens that never occur with the label. There are too many of those to score
one by one, and no need: at n_joint = 0 a value depends on n_token alone and does not decrease with it, so
only the most frequent of them can be among the top k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from plant.relevance.measures import FORMULAS, Counts, is_positive

_STEPS = 2.0**24


@dataclass(frozen=True)
class Candidates:
    """The tokens that may be selected: those that occur in enough training documents.

    Attributes:
        n_token: int64[V], training documents with each token (also of tokens that may not be selected).
        order: int64[number of tokens that may be selected], by n_token descending, then token id.
        falling: int64, -n_token in that order (ascending, so that it can be searched).
        n_documents: N.
    """

    n_token: np.ndarray
    order: np.ndarray
    falling: np.ndarray
    n_documents: int


@dataclass(frozen=True)
class LabelCounts:
    """One label's counts.

    Attributes:
        n_label: its training documents, at least 1.
        token: int64[m], tokens that may be selected and occur in its documents, ascending.
        n_joint: int64[m].
        occurrences: int64[m], only for term frequency.
        label_occurrences: only for term frequency.
    """

    n_label: int
    token: np.ndarray
    n_joint: np.ndarray
    occurrences: np.ndarray | None = None
    label_occurrences: int | None = None


@dataclass(frozen=True)
class Selected:
    """The chosen tokens of one label, in rank order."""

    token: np.ndarray
    n_joint: np.ndarray
    relevance: np.ndarray


def candidates(n_token: np.ndarray, n_documents: int, *, min_documents: int) -> Candidates:
    """Tokens in at least `min_documents` training documents (at least 1)."""
    order = np.lexsort((np.arange(len(n_token)), -n_token))
    order = order[n_token[order] >= max(min_documents, 1)]
    return Candidates(n_token, order, -n_token[order], n_documents)


def normalised(values: np.ndarray, largest: float) -> np.ndarray:
    """Values over the label's largest one, in steps of 2^-24.

    The steps are those that float32 resolves at 1. They decide what a tie is: equal values that were summed
    in another order stay equal, on every machine.

    Args:
        values: float64, 0..largest.
        largest: the label's largest value. 0 (a label without information) gives zeros.

    Returns:
        float32 in [0, 1].

    >>> normalised(np.array([0.1 + 0.2, 0.3, 0.6]), 0.6)
    array([0.5, 0.5, 1. ], dtype=float32)
    """
    if largest <= 0:
        return np.zeros(len(values), np.float32)
    return (np.rint(values / largest * _STEPS) / _STEPS).astype(np.float32)


def top_tokens(
    label: LabelCounts, among: Candidates, *, measure: str, k: int, sign: Literal["both", "positive"] = "both"
) -> Selected:
    """The k tokens of highest relevance to one label; ties go to the smaller token id.

    Args:
        label: its counts.
        among: those that may be selected; at least k.
        measure: a name in `measures.FORMULAS`.
        k: tokens kept.
        sign: both keeps every token that scores; positive only tokens that are more frequent with the label.

    Returns:
        k tokens for sign both; at most k (perhaps none) for positive. A label whose values are all 0 gets
        the k smallest token ids with relevance 0.
    """
    values = FORMULAS[measure](_met(label, among))
    if sign == "positive":
        keep = is_positive(_met(label, among))
        largest = values[keep].max(initial=0.0)
        return _best(label.token[keep], label.n_joint[keep], normalised(values[keep], largest), k)
    absent, absent_values, largest = _absent(label, among, measure=measure, k=k, largest=values.max(initial=0.0))
    return _best(
        np.concatenate((label.token, absent)),
        np.concatenate((label.n_joint, np.zeros(len(absent), np.int64))),
        normalised(np.concatenate((values, absent_values)), largest),
        k,
    )


def random_tokens(label: LabelCounts, among: Candidates, *, k: int, generator: np.random.Generator) -> Selected:
    """k tokens drawn evenly from those that may be selected, with relevances drawn from (0, 1].

    The control without information: neither the tokens nor their values depend on the label's counts.
    """
    token = np.sort(generator.choice(among.order, size=k, replace=False))
    values = 1.0 - generator.random(k)
    return _best(token, _joint(label, token), normalised(values, values.max(initial=0.0)), k)


def idf_tokens(label: LabelCounts, among: Candidates, tokens: np.ndarray, *, k: int) -> Selected:
    """Some tokens that were given (those of the label's description), by inverse document frequency.

    r_lt = log(N / n_token) over the label's largest: the label's own documents have no part in it. The most frequent
    other tokens fill up to k with relevance 0, so that Stage 1 has something to rank the given ones above.

    Args:
        label: its counts, for the record.
        among: those that may be selected; others of `tokens` are left out.
        tokens: ids, ascending and distinct.
        k: tokens kept.

    Returns:
        k tokens; none where no given token may be selected or all are in every document.
    """
    may = np.zeros(len(among.n_token), bool)
    may[among.order] = True
    token = tokens[may[tokens]]
    values = np.log(among.n_documents / among.n_token[token])
    if not values.any():
        return _best(token[:0], token[:0], values[:0].astype(np.float32), k)
    may[token] = False
    fill = among.order[may[among.order]][: max(0, k - len(token))]
    relevance = np.concatenate((normalised(values, values.max()), np.zeros(len(fill), np.float32)))
    token = np.concatenate((token, fill))
    return _best(token, _joint(label, token), relevance, k)


def _joint(label: LabelCounts, token: np.ndarray) -> np.ndarray:
    """n_joint of any tokens."""
    if not len(label.token):
        return np.zeros(len(token), np.int64)
    place = np.minimum(np.searchsorted(label.token, token), len(label.token) - 1)
    return np.where(label.token[place] == token, label.n_joint[place], 0)


def _met(label: LabelCounts, among: Candidates) -> Counts:
    """Counts of the tokens that occur with the label."""
    return Counts(
        label.n_joint,
        among.n_token[label.token],
        label.n_label,
        among.n_documents,
        label.occurrences,
        label.label_occurrences,
    )


def _absent(
    label: LabelCounts, among: Candidates, *, measure: str, k: int, largest: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Tokens that never occur with the label and could be among its top k, their values, and the label's largest."""
    met = np.zeros(len(among.n_token), bool)
    met[label.token] = True
    reach = among.order[: k + len(label.token)]
    absent = reach[~met[reach]][:k]
    if not len(absent):
        return absent, np.zeros(0), largest

    def value(n_token: np.ndarray) -> np.ndarray:
        none = np.zeros(len(n_token), np.int64)
        return FORMULAS[measure](Counts(none, n_token, label.n_label, among.n_documents, none, label.label_occurrences))

    values = value(among.n_token[absent])
    largest = max(largest, float(values[0]))
    last = normalised(values[-1:], largest)
    tied = among.n_token[absent[normalised(values, largest) == last]]
    edge = _next_lower(among, tied[-1])
    if tied[0] > tied[-1] or (edge is not None and normalised(value(edge), largest) >= last):
        # equal values at unequal frequencies, perhaps beyond the edge, and ties go by token id: look at all
        absent = among.order[~met[among.order]]
        values = value(among.n_token[absent])
    return absent, values, largest


def _next_lower(among: Candidates, n_token: int) -> np.ndarray | None:
    """The largest n_token below the given one among the tokens, as an array of one; None where there is none."""
    place = np.searchsorted(among.falling, -n_token, side="right")
    return -among.falling[place : place + 1] if place < len(among.falling) else None


def _best(token: np.ndarray, n_joint: np.ndarray, relevance: np.ndarray, k: int) -> Selected:
    """The k of highest relevance; ties go to the smaller token id."""
    if len(token) > k:
        least = np.partition(relevance, len(relevance) - k)[len(relevance) - k]
        keep = np.flatnonzero(relevance >= least)
        token, n_joint, relevance = token[keep], n_joint[keep], relevance[keep]
    rank = np.lexsort((token, -relevance))[:k]
    return Selected(token[rank], n_joint[rank], relevance[rank])
