"""Counts of (label, token) pairs over the training documents, a block of labels at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

from plant.corpus.reader import Tokens

BLOCK = 4_000_000
"""Tokens, or triples (label, document, token), that are counted at once. It bounds the memory."""


class TokenLists(NamedTuple):
    """Token ids of each document: uint32[begins[-1]] one after another, and int64[N + 1]."""

    tokens: np.ndarray
    begins: np.ndarray


def distinct_tokens(
    input_ids: np.ndarray, offsets: np.ndarray, counted: np.ndarray, *, block: int = BLOCK
) -> TokenLists:
    """The distinct tokens of each document, ascending.

    `input_ids` and `offsets` are as in `corpus.reader.Tokens`. `counted` (bool[V]) is False for tokens that never count
    (special tokens). `block` tokens are in memory at once.

    >>> distinct_tokens(np.array([3, 1, 3, 0]), np.array([0, 3, 4]), np.array([True, True, True, True]))
    TokenLists(tokens=array([1, 3, 0], dtype=uint32), begins=array([0, 2, 3]))
    """
    n_tokens, lengths = len(counted), np.diff(offsets)
    tokens, found = [np.zeros(0, np.uint32)], np.zeros(len(lengths), np.int64)
    for first, last in spans(lengths, block, most=max(1, len(lengths))):
        ids = input_ids[offsets[first] : offsets[last]]
        document = np.repeat(np.arange(last - first), lengths[first:last])
        keys = np.sort((document * n_tokens + ids)[counted[ids]])
        keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique hashes integers, which takes 40 times as long
        document, token = np.divmod(keys, n_tokens)
        tokens.append(token.astype(np.uint32))
        found[first:last] = np.bincount(document, minlength=last - first)
    return TokenLists(np.concatenate(tokens), np.concatenate(([0], np.cumsum(found))))


def presence(tokens: Tokens, rows: slice, vocabulary: int) -> scipy.sparse.csr_array:
    """(documents, V) float32: 1 if a document of these rows holds the token."""
    offsets, input_ids = tokens.part(rows)
    present, begins = distinct_tokens(input_ids, offsets, np.ones(vocabulary, bool))
    ones = np.ones(len(present), np.float32)
    return scipy.sparse.csr_array((ones, present.astype(np.int32), begins), shape=(len(begins) - 1, vocabulary))


def label_documents(indptr: np.ndarray, indices: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """The documents of each label, as (indptr int64[L + 1], documents int64), ascending within a label.

    It is the transpose of a CSR list (`indptr`, `indices`) of the labels of each document.

    >>> label_documents(np.array([0, 2, 3]), np.array([0, 2, 2]), 3)
    (array([0, 1, 1, 3]), array([0, 0, 1]))
    """
    documents = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    begins = np.concatenate(([0], np.cumsum(np.bincount(indices, minlength=n_labels))))
    return begins, documents[np.argsort(indices, kind="stable")]


def spans(sizes: np.ndarray, block: int, *, most: int) -> Iterator[tuple[int, int]]:
    """Cut a sequence into consecutive runs [first, last) whose sizes add up to at most `block`.

    An item larger than `block` is a run of its own; no run has more than `most` items.

    >>> list(spans(np.array([3, 3, 9, 1, 1]), 6, most=10))
    [(0, 2), (2, 3), (3, 5)]
    """
    ends = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    first = 0
    while first < len(sizes):
        last = int(np.searchsorted(ends, ends[first] + block, side="right")) - 1
        last = min(max(last, first + 1), first + most, len(sizes))
        yield first, last
        first = last


def joint_counts(
    lists: TokenLists, indptr: np.ndarray, documents: np.ndarray, *, n_tokens: int, block: int = BLOCK
) -> Iterator[np.ndarray]:
    """For each label in turn, int64[V]: how often each token is in the lists of the label's documents.

    It is a row of the product of two sparse matrices: labels by documents, and documents by tokens. With lists of
    distinct tokens the counts are n_joint; with lists of all tokens they are occurrences. `indptr` and `documents` are
    of `label_documents`. `block` triples (label, document, token) are counted at once.
    """
    sizes = np.diff(lists.begins)
    of_labels = _counting(documents.astype(np.int32), indptr, len(sizes))
    of_documents = _counting(lists.tokens.view(np.int32), lists.begins, n_tokens)
    ends = np.concatenate(([0], np.cumsum(sizes[documents])))[indptr]
    for first, last in spans(np.diff(ends), block, most=len(ends)):
        product = of_labels[first:last] @ of_documents
        for begin, end in pairwise(product.indptr):
            counts = np.zeros(n_tokens, np.int64)
            counts[product.indices[begin:end]] = product.data[begin:end]
            yield counts


def _counting(indices: np.ndarray, indptr: np.ndarray, columns: int) -> scipy.sparse.csr_array:
    """Lists as the rows of a sparse matrix of ones; an item that is listed twice counts twice."""
    return scipy.sparse.csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=(len(indptr) - 1, columns))
