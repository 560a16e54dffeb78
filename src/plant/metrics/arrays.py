"""What all metrics share: the types of their arguments, and division where the denominator may be 0."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array: TypeAlias = np.ndarray
Sparse: TypeAlias = sp.csr_array
Weights: TypeAlias = np.ndarray | None
"""How often each document is drawn: (N,) in one resample, (N, B) in B of them; None: each once."""


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike, undefined: float = 0.0) -> Any:
    """numerator / denominator of equal shapes, `undefined` where the denominator is not positive.

    >>> ratio([1.0, 2.0], [2.0, 0.0], np.nan).tolist()
    [0.5, nan]
    """
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    out = np.full(numerator.shape, undefined)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)[()]
