"""The k tokens of largest mutual information with each label, one label after the other.

    MIG = [sum of n log n over the four cells - over the four margins + N log N] / N    (appendix B.1)

Plain function: `relevance.choice.plain_choice`, which counts by a sparse product, scores with `relevance.measures.mig`
and keeps the top k. The rows are the same, bit for bit.

docs/evidence/speed.md says what it buys. It is taken for large tables only: to compile it takes 12 seconds, once on a
machine.

Memory: a few arrays as long as the vocabulary, and the rows of one call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plant.kernels.compiled import njit


class Scoring(NamedTuple):
    """How tokens are scored and chosen."""

    n_documents: int
    n_token: np.ndarray  # uint32[V], documents with each token
    order: np.ndarray  # uint32, tokens that may be chosen, by n_token descending
    table: np.ndarray  # float64[N + 1], n log n
    margin: np.ndarray  # float64[V], n log n of n_token and of N - n_token
    noise: float  # mutual information up to this is 0
    k: int  # tokens kept a label
    positive: bool  # only tokens that are more frequent with the label
    least: int  # tokens in fewer documents are never chosen
    bits: np.uint64  # of a key that hold the token
    steps: int  # relevance is a whole number of 1 / steps


class _Scratch(NamedTuple):
    """Work space of one label."""

    joint: np.ndarray  # uint32[V], documents of the label with the token; 0 between labels
    touched: np.ndarray  # uint32[V + 1], the tokens with such documents, in no order
    value: np.ndarray  # float64[V], their mutual information, -1 where they may not be chosen
    keys: np.ndarray  # uint64[V + k], step and token: ascending keys are falling relevances


@njit()
def best_tokens(
    tokens: np.ndarray, begins: np.ndarray, indptr: np.ndarray, documents: np.ndarray, scoring: Scoring, first: int,
    rows: int,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The k best tokens of the labels from `first` on, until there are `rows` rows or no label is left.

    Args:
        tokens, begins: distinct tokens of each document, a `relevance.contingency.TokenLists`.
        indptr, documents: the documents of each label, of `relevance.contingency.label_documents`.
        scoring: of `relevance.choice`.
        first, rows: as above.

    Returns:
        The label after the last; then of each label with documents its id and its number of rows (int64), and of
        each row token (uint32), n_joint (uint32) and relevance (float32).
    """
    words, n_labels, k = len(scoring.n_token), len(indptr) - 1, scoring.k
    scratch = _Scratch(
        np.zeros(words, np.uint32), np.empty(words + 1, np.uint32), np.empty(words), np.empty(words + k, np.uint64)
    )
    labels, lengths = np.empty(n_labels - first, np.int64), np.empty(n_labels - first, np.int64)
    token, n_joint = np.empty(rows + k, np.uint32), np.empty(rows + k, np.uint32)
    relevance = np.empty(rows + k, np.float32)
    label, listed, written = first, 0, 0
    while label < n_labels and written < rows:
        holders = documents[indptr[label] : indptr[label + 1]]
        if len(holders):
            met = _count(tokens, begins, holders, scratch)
            _score(met, len(holders), scoring, scratch)
            keys = _choose(met, len(holders), scoring, scratch)
            for key in keys:
                token[written] = key & ((np.uint64(1) << scoring.bits) - np.uint64(1))
                n_joint[written] = scratch.joint[token[written]]
                relevance[written] = np.float32(scoring.steps - np.int64(key >> scoring.bits)) / np.float32(
                    scoring.steps
                )
                written += 1
            labels[listed], lengths[listed] = label, len(keys)
            listed += 1
            scratch.joint[scratch.touched[:met]] = 0
        label += 1
    return label, labels[:listed], lengths[:listed], token[:written], n_joint[:written], relevance[:written]


@njit()
def _count(tokens: np.ndarray, begins: np.ndarray, holders: np.ndarray, scratch: _Scratch) -> int:
    """Count the tokens in a label's documents; the number of distinct ones."""
    joint, touched, met = scratch.joint, scratch.touched, 0
    for document in holders:
        for token in tokens[begins[document] : begins[document + 1]]:
            touched[met] = token  # stays only if met moves on
            met += joint[token] == 0
            joint[token] += np.uint32(1)
    return met


@njit()
def _score(met: int, n_label: int, scoring: Scoring, scratch: _Scratch) -> None:
    """Mutual information of the tokens that were met."""
    for i in range(met):
        token = scratch.touched[i]
        joint, in_all = np.int64(scratch.joint[token]), np.int64(scoring.n_token[token])
        scratch.value[i] = _mig(joint, token, n_label, scoring)
        more = scoring.n_documents * joint > n_label * in_all
        if in_all < scoring.least or (scoring.positive and not more):
            scratch.value[i] = -1.0


@njit()
def _mig(joint: int, token: int, label: int, scoring: Scoring) -> float:
    """`measures.mig`, its sums in the same order."""
    table, total, in_all = scoring.table, scoring.n_documents, np.int64(scoring.n_token[token])
    cells = table[joint] + table[label - joint] + table[in_all - joint] + table[total - label - in_all + joint]
    margins = scoring.margin[token] + (table[label] + table[total - label])
    value = (cells - margins + table[total]) / total
    return value if value > scoring.noise else 0.0


@njit()
def _choose(met: int, n_label: int, scoring: Scoring, scratch: _Scratch) -> np.ndarray:
    """Keys of the k best tokens, best first.

    Tokens that the label never meets have a value too, which does not decrease with their frequency. So they are tried
    by falling frequency, until one is below k others.
    """
    keys, k, largest = scratch.keys, scoring.k, max(0.0, scratch.value[:met].max()) if met else 0.0
    if not scoring.positive:
        for token in scoring.order:  # the most frequent one that was not met
            if scratch.joint[token] == 0:
                largest = max(largest, _mig(0, token, n_label, scoring))
                break
    scale, n = largest if largest > 0 else 1.0, 0
    for i in range(met):
        keys[n] = _key(scratch.value[i] / scale, scratch.touched[i], scoring)
        n += scratch.value[i] >= 0  # no branch
    if n > k:
        keys[:k], n = np.partition(keys[:n], k - 1)[:k], k
    if scoring.positive:
        return np.sort(keys[:n])
    kept, least = n, np.uint64(2**64 - 1)  # the key that a token must not exceed, but for its id
    if kept == k:
        least = keys[:k].max()
    for token in scoring.order:
        if scratch.joint[token] > 0:
            continue
        keys[n] = _key(_mig(0, token, n_label, scoring) / scale, token, scoring)
        if keys[n] >> scoring.bits > least >> scoring.bits:
            break
        n += 1
        if n - kept == k:
            least = min(least, keys[n - 1])
    return np.sort(keys[:n])[:k]


@njit()
def _key(share: float, token: int, scoring: Scoring) -> np.uint64:
    """Ascending keys are falling relevances, and ascending token ids where those are equal."""
    return (np.uint64(scoring.steps - np.int64(np.rint(share * scoring.steps))) << scoring.bits) | np.uint64(token)
