"""The best labels of each document. Scores are a dense array, or a sparse one in which stored zeros are scores.

Equal scores are ranked by label id, so that the result is the same on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plant.metrics.arrays import BLOCK, ordered_codes, scores_of_codes

if TYPE_CHECKING:
    import scipy.sparse as sp


def top_labels(scores: np.ndarray | sp.csr_array, k: int) -> np.ndarray:
    """The k best labels of each row, best first.

    Args:
        scores: (documents, labels). A label with the score -inf, or that a sparse array does not store, is never
            retrieved.

    Returns:
        (documents, k) label ids, int32; -1 if fewer than k labels have a score.

    >>> top_labels(np.array([[1.0, 3.0, 3.0, -np.inf]]), 4).tolist()
    [[1, 2, 0, -1]]
    """
    if not isinstance(scores, np.ndarray):
        return _top_stored(scores, k)
    documents, labels = scores.shape
    best = np.full((documents, k), -1, dtype=np.int32)
    width = min(k, labels)
    rows = max(1, BLOCK // max(1, labels))
    # One 64-bit key per score: (inverted score, label id). Keys are distinct, so the partition has no ties to break.
    ids = np.arange(labels, dtype=np.uint64)
    for start in range(0, documents, rows):
        codes = ordered_codes(scores[start : start + rows])
        keys = ((~codes).astype(np.uint64) << np.uint64(32)) | ids
        if width < labels:
            keys = np.partition(keys, width - 1, axis=1)[:, :width]
        keys.sort(axis=1)
        scored = scores_of_codes(~(keys >> np.uint64(32)).astype(np.uint32)) > -np.inf
        best[start : start + rows, :width] = np.where(scored, (keys & np.uint64(0xFFFFFFFF)).astype(np.int32), -1)
    return best


def top_entries(scores: np.ndarray | sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and score of the k best labels of each row; fewer if fewer have a score."""
    best = top_labels(scores, k)
    rows, places = np.nonzero(best >= 0)
    columns = best[rows, places].astype(np.int64)
    return rows, columns, scores_at(scores, rows, columns)


def scores_at(scores: np.ndarray | sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Scores at single places; -inf if a sparse array stores none."""
    if isinstance(scores, np.ndarray):
        return scores[rows, columns]
    stored, wanted = pair_ids(scores), _ids(rows, columns, scores.shape[1])
    order = np.argsort(stored)
    place = np.minimum(np.searchsorted(stored, wanted, sorter=order), max(0, stored.size - 1))
    if not stored.size:
        return np.full(wanted.size, -np.inf, dtype=np.float32)
    is_stored = stored[order[place]] == wanted
    return np.where(is_stored, scores.data[order[place]], -np.inf).astype(np.float32)


def pair_ids(array: sp.csr_array) -> np.ndarray:
    """row * number of columns + column, for each stored entry of a sparse array."""
    rows = np.repeat(np.arange(array.shape[0]), np.diff(array.indptr))
    return _ids(rows, array.indices, array.shape[1])


def stored_at(array: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Whether a sparse array stores an entry at single places.

    >>> import scipy.sparse as sp
    >>> stored_at(sp.csr_array([[0, 1], [1, 0]]), np.array([0, 0]), np.array([0, 1])).tolist()
    [False, True]
    """
    return np.isin(_ids(rows, columns, array.shape[1]), pair_ids(array))


def _ids(rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    return rows.astype(np.int64) * width + columns


def sorted_csr(entries: sp.coo_array) -> sp.csr_array:
    """CSR with ascending columns. Stored zeros stay: they are scores."""
    array = entries.tocsr()
    array.sort_indices()
    return array


def _top_stored(array: sp.csr_array, k: int) -> np.ndarray:
    rows = np.repeat(np.arange(array.shape[0]), np.diff(array.indptr))
    order = np.lexsort((array.indices, -array.data, rows))  # by row, descending score, label
    places = np.arange(rows.size) - array.indptr[rows]
    chosen = (places < k) & (array.data[order] > -np.inf)
    best = np.full((array.shape[0], k), -1, dtype=np.int32)
    best[rows[chosen], places[chosen]] = array.indices[order][chosen]
    return best
