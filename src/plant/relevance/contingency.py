"""Joint counts of token presence and label over the training documents.

For a block of labels: the distinct tokens of each label's documents are gathered, each becomes the key
`label * V + token`, the keys are sorted, and runs of equal keys are counted. No hash join and no grouping
(measurements: sort and run lengths are six times cheaper than grouping here). Memory is bounded by the
number of keys a block, not by the corpus.

Whoever replaces the counting (a compiled kernel) replaces `joint_counts`; nothing else knows how it is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

BLOCK = 4_000_000
"""Keys (label, document, token) that are in memory at once."""
_KEY_LIMIT = 2**32


@dataclass(frozen=True)
class TokenLists:
    """The tokens of each document, as one column of lists.

    Attributes:
        lists: List(UInt32), one row a document.
        sizes: int64[N], tokens in each list.
        n_tokens: V, the size of the vocabulary.
    """

    lists: pl.Series
    sizes: np.ndarray
    n_tokens: int

    @property
    def n_documents(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True)
class JointCounts:
    """What one block of labels has in common with the tokens; only pairs that occur together.

    Attributes:
        first: id of the first label of the block.
        indptr: int64[labels in the block + 1], where each label's entries begin.
        token: int64, ascending within a label.
        count: int64 >= 1. Documents of the label with the token, or occurrences of the token in them,
            as the lists that were counted hold distinct tokens or all of them.
    """

    first: int
    indptr: np.ndarray
    token: np.ndarray
    count: np.ndarray

    def row(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and counts of one label (by its id)."""
        begin, end = self.indptr[label - self.first], self.indptr[label - self.first + 1]
        return self.token[begin:end], self.count[begin:end]


def token_lists(
    input_ids: np.ndarray, offsets: np.ndarray, *, counted: np.ndarray, distinct: bool, block: int = BLOCK
) -> TokenLists:
    """Lists of the tokens that count, a document a row.

    Args:
        input_ids: int32[offsets[-1]], tokens of all documents one after another.
        offsets: int64[N + 1], where each document begins.
        counted: bool[V], False for tokens that never count (special tokens).
        distinct: True keeps each token once a document, ascending; False keeps repeats, in text order.
        block: tokens that are sorted at once.
    """
    n_tokens = len(counted)
    if distinct:
        pieces = [
            _distinct(input_ids, offsets[first : last + 1], counted)
            for first, last in spans(np.diff(offsets), block, most=_KEY_LIMIT // max(n_tokens, 1))
        ]
        sizes = np.concatenate([piece[0] for piece in pieces]) if pieces else np.zeros(0, np.int64)
        values = np.concatenate([piece[1] for piece in pieces]) if pieces else np.zeros(0, np.uint32)
    else:
        kept = counted[input_ids]
        before = np.concatenate(([0], np.cumsum(kept)))
        sizes = np.diff(before[offsets])
        values = input_ids[kept].astype(np.uint32)
    begins = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    array = pa.LargeListArray.from_arrays(pa.array(begins), pa.array(values))
    return TokenLists(pl.Series("tokens", array, dtype=pl.List(pl.UInt32)), sizes, n_tokens)


def _distinct(input_ids: np.ndarray, offsets: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Size and values of the sorted distinct tokens of a few documents."""
    tokens = input_ids[offsets[0] : offsets[-1]]
    documents = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    kept = counted[tokens]
    keys, _ = _runs(documents[kept] * len(counted) + tokens[kept])
    return np.bincount(keys // len(counted), minlength=len(offsets) - 1), (keys % len(counted)).astype(np.uint32)


def document_frequency(lists: TokenLists) -> np.ndarray:
    """n_token: int64[V], documents that contain each token. `lists` must hold distinct tokens."""
    return np.bincount(lists.lists.explode(empty_as_null=False).to_numpy(), minlength=lists.n_tokens)


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


def label_spans(
    lists: TokenLists, indptr: np.ndarray, documents: np.ndarray, block: int = BLOCK
) -> list[tuple[int, int]]:
    """Blocks of labels [first, last) whose keys fit into `block` and into 32 bits."""
    ends = np.concatenate(([0], np.cumsum(lists.sizes[documents], dtype=np.int64)))
    return list(spans(np.diff(ends[indptr]), block, most=_KEY_LIMIT // max(lists.n_tokens, 1)))


def joint_counts(
    lists: TokenLists, indptr: np.ndarray, documents: np.ndarray, *, first: int, last: int, block: int = BLOCK
) -> JointCounts:
    """Count every token in the documents of the labels first..last-1.

    n_joint(l, t) = sum over documents d of label l of (how often t is in list d)

    Args:
        lists: distinct tokens (n_joint) or all tokens (occurrences) of each document.
        indptr, documents: of `label_documents`.
        first, last: the block of labels; `label_spans` makes blocks that fit.
        block: keys in memory at once. A label with more keys is counted in pieces, which are added.
    """
    chosen = documents[indptr[first] : indptr[last]]
    label = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
    pieces = [
        _count(lists, chosen[begin:end], label[begin:end])
        for begin, end in spans(lists.sizes[chosen], block, most=max(len(chosen), 1))
    ]
    keys, counts = _added(pieces)
    begins = np.searchsorted(keys, np.arange(last - first + 1) * lists.n_tokens)
    return JointCounts(first, begins, keys % lists.n_tokens, counts)


def _count(lists: TokenLists, documents: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tokens = lists.lists.gather(documents).explode(empty_as_null=False)
    base = np.repeat((label * lists.n_tokens).astype(np.uint32), lists.sizes[documents])
    return _runs(tokens + pl.Series(base))


def _added(pieces: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Add the counts of equal keys of several pieces."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys, place = np.unique(np.concatenate([keys for keys, _ in pieces]), return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, place, np.concatenate([counts for _, counts in pieces]))
    return keys, counts


def _runs(keys: pl.Series | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, ascending, and how often each occurs."""
    runs = pl.Series(keys).cast(pl.UInt32).sort().rle()
    return (
        runs.struct.field("value").to_numpy().astype(np.int64),
        runs.struct.field("len").to_numpy().astype(np.int64),
    )
