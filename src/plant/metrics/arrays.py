"""Shared by all metrics: types of arguments, division, and scores as integers that sort fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # a bare GPU machine trains without scipy (tests/gpu)
    import scipy.sparse as sp

Array: TypeAlias = np.ndarray
Sparse: TypeAlias = "sp.csr_array"
BLOCK = 4_000_000
"""Number of scores that are sorted at once (about 150 MB)."""
Weights: TypeAlias = np.ndarray | None
"""How often each document is drawn: (N,) for one resample, (N, B) for B of them. None: each document once."""


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike, undefined: float = 0.0) -> Any:
    """numerator / denominator of equal shapes; `undefined` if the denominator is not positive.

    >>> ratio([1.0, 2.0], [2.0, 0.0], np.nan).tolist()
    [0.5, nan]
    """
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    out = np.full(numerator.shape, undefined)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)[()]


def mean_of(values: Array, counted: Array) -> Array:
    """Mean of (L,) or (L, B) over the labels that are counted (booleans of the same shape); NaN without one.

    >>> float(mean_of(np.array([0.5, np.nan, 1.0]), np.array([True, False, True])))
    0.75
    """
    return ratio(np.where(counted, values, 0.0).sum(axis=0), counted.sum(axis=0), np.nan)


def ordered_codes(scores: np.ndarray) -> np.ndarray:
    """Unsigned 32-bit integers in the order of the (float32) scores; equal scores have equal codes.

    >>> np.diff(ordered_codes(np.array([-np.inf, -1.0, -0.0, 0.0, 3.0])).astype(float)).clip(0, 1).tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    bits = (np.asarray(scores, dtype=np.float32) + np.float32(0)).view(np.uint32)  # + 0 turns -0 into 0
    return np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000))


def scores_of_codes(codes: np.ndarray) -> np.ndarray:
    """Inverse of `ordered_codes`."""
    codes = np.asarray(codes, dtype=np.uint32)
    return np.where(codes >> 31, codes & np.uint32(0x7FFFFFFF), ~codes).view(np.float32)
