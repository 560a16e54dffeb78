"""The best labels of each document, from all scores or from those that a sparse array stores.

Equal scores are ranked by label id (`f1.top_labels`), so that every result is the same on every machine.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from plant.metrics.f1 import top_labels


def top_stored(array: sp.csr_array, k: int) -> np.ndarray:
    """As `f1.top_labels`, of the scores that a sparse array stores."""
    order, rows, places = _by_rank(array)
    chosen = (places < k) & (array.data[order] > -np.inf)
    best = np.full((array.shape[0], k), -1, dtype=np.int32)
    best[rows[chosen], places[chosen]] = array.indices[order][chosen]
    return best


def top_entries(scores: np.ndarray | sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and score of the k best labels of each row (fewer where fewer have a score)."""
    best = top_labels(scores, k) if isinstance(scores, np.ndarray) else top_stored(scores, k)
    rows, places = np.nonzero(best >= 0)
    columns = best[rows, places].astype(np.int64)
    return rows, columns, scores_at(scores, rows, columns)


def scores_at(scores: np.ndarray | sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Scores at single places; -inf where a sparse array stores none."""
    if isinstance(scores, np.ndarray):
        return scores[rows, columns]
    entries = scores.tocoo()
    stored = entries.coords[0].astype(np.int64) * scores.shape[1] + entries.coords[1]
    order = np.argsort(stored)
    wanted = rows.astype(np.int64) * scores.shape[1] + columns
    place = np.minimum(np.searchsorted(stored, wanted, sorter=order), max(0, stored.size - 1))
    if not stored.size:
        return np.full(wanted.size, -np.inf, dtype=np.float32)
    found = stored[order[place]] == wanted
    return np.where(found, entries.data[order[place]], -np.inf).astype(np.float32)


def sorted_csr(entries: sp.coo_array) -> sp.csr_array:
    """CSR with ascending columns; keeps stored zeros (they are scores)."""
    array = entries.tocsr()
    array.sort_indices()
    return array


def _by_rank(array: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An order of the entries by (row, value descending, column), and the row and the place in it of each."""
    rows = np.repeat(np.arange(array.shape[0]), np.diff(array.indptr))
    order = np.lexsort((array.indices, -array.data, rows))
    return order, rows, np.arange(rows.size) - array.indptr[rows]
