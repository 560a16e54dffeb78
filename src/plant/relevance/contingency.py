"""Counts of (label, token) pairs over the training documents, with polars.

For a block of labels, every token of every document of a label becomes the key `label * V + token`. The keys are
sorted, and runs of equal keys are counted: six times cheaper than grouping. Memory is bounded by the keys of a block,
or of one label.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

from plant.kernels.relevance import TokenLists

BLOCK = 4_000_000
"""Keys (label, document, token) that are in memory at once."""
_KEY_LIMIT = 2**32  # keys are 32-bit


def label_documents(indptr: np.ndarray, indices: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """The documents of each label: the transpose of a CSR list of the labels of each document.

    Args:
        indptr: int64[N + 1].
        indices: int32[indptr[-1]], label ids.
        n_labels: L.

    Returns:
        (indptr int64[L + 1], documents int64), documents ascending within a label.

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

    Args:
        lists: distinct tokens of each document (the counts are n_joint), or all tokens (they are occurrences).
        indptr, documents: of `label_documents`.
        n_tokens: V.
        block: keys in memory at once.
    """
    column = pl.Series(pa.LargeListArray.from_arrays(pa.array(lists.begins), pa.array(lists.tokens)))
    sizes = np.diff(lists.begins)
    ends = np.concatenate(([0], np.cumsum(sizes[documents])))
    for first, last in spans(np.diff(ends[indptr]), block, most=max(1, _KEY_LIMIT // max(n_tokens, 1))):
        chosen = documents[indptr[first] : indptr[last]]
        label = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
        base = np.repeat((label * n_tokens).astype(np.uint32), sizes[chosen])
        runs = (column.gather(chosen).explode(empty_as_null=False) + pl.Series(base)).sort().rle()
        keys = runs.struct.field("value").to_numpy().astype(np.int64)
        counts = runs.struct.field("len").to_numpy()
        begins = np.searchsorted(keys, np.arange(last - first + 1) * n_tokens)
        for place in range(last - first):
            part = slice(begins[place], begins[place + 1])
            found = np.zeros(n_tokens, np.int64)
            found[keys[part] - place * n_tokens] = counts[part]
            yield found
