"""Resamples of the documents as weights, in the form in which many are summed at once.

W (N, B) says how often each of N documents is drawn in each of B resamples; a column of ones is the plain split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

FEW = 8  # resamples up to which NumPy is faster than loading the compiled code (half a second),
LARGE = 4_000_000  # unless there are more scores x resamples than this
WIDTH = 512  # resamples whose temporary arrays are made at once


@dataclass(frozen=True, eq=False)
class Resamples:
    """W, and for many resamples of whole numbers its bytes."""

    weights: np.ndarray
    """(N, B), not negative."""
    packed: np.ndarray | None
    """(chunks, N, width) bytes (`curves_kernel.pack`); None: sums are taken with NumPy."""

    @classmethod
    def of(cls, weights: np.ndarray | Resamples, *, labels: int) -> Resamples:
        """The weights of documents with L labels; packed where that pays and they are whole numbers up to 255."""
        if isinstance(weights, Resamples):
            return weights
        if weights.shape[1] <= FEW and weights.size * labels <= LARGE:
            return cls(weights, None)
        from plant.kernels.curves import pack  # loads the compiler

        return cls(weights, pack(weights))

    @property
    def number(self) -> int:
        """B."""
        return self.weights.shape[1]

    @cached_property
    def total(self) -> np.ndarray:
        """(B,) float64, the weight of all documents."""
        return self.weights.sum(axis=0, dtype=np.float64)

    @cached_property
    def limit(self) -> int:
        """Weights that can be added up in a byte."""
        return 255 // max(1, 0 if self.packed is None else int(self.packed.max()))

    def parts(self) -> Iterator[slice]:
        """Slices of at most WIDTH resamples."""
        return (slice(first, first + WIDTH) for first in range(0, self.number, WIDTH))

    def totals(self, array: sp.csr_array) -> np.ndarray:
        """(L, B) float64, for each column of a boolean (N, L) array the weight of the documents in it."""
        if self.packed is None:
            return plain_totals(array, self.weights)
        from plant.kernels.curves import totals

        lists = sp.csc_array(array, dtype=bool)
        lists.eliminate_zeros()
        sums = np.zeros((array.shape[1], self.number))
        totals(lists.indices.astype(np.int32), lists.indptr.astype(np.int64), self.packed, self.limit, sums)
        return sums


def plain_totals(array: sp.csr_array, weights: np.ndarray) -> np.ndarray:
    """`Resamples.totals` as a sparse product: the slow twin."""
    return np.asarray(sp.csr_array(array.T, dtype=weights.dtype) @ weights, dtype=np.float64)
