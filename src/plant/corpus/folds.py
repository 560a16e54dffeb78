"""Folds of documents for cross-fitting. All documents of a group (a patient) are in one fold."""

from __future__ import annotations

import numpy as np

from plant.ground.errors import InputError
from plant.ground.seeds import generator


def deal_folds(groups: np.ndarray, folds: int, seed: int, *, purpose: str, key: str) -> np.ndarray:
    """A fold for each document. In random order, each group goes to the fold with the fewest documents so far.

    Args:
        groups: (N,) name of the group of each document.
        folds: number of folds, at least 1.
        seed: seed of the random order, which does not depend on the order of the documents.
        purpose: what is cross-fitted. Each purpose has its own order.
        key: key of the config, for the error.

    Returns:
        (N,) int64, 0 <= fold < folds.

    Raises:
        InputError: there are fewer groups than folds.
    """
    names, group, sizes = np.unique(np.asarray(groups).astype(str), return_inverse=True, return_counts=True)
    if len(names) < folds:
        raise InputError(
            key, expected=f"at most {len(names)}, the groups of documents", got=str(folds),
            fix="Lower it, or give more documents.",
        )  # fmt: skip
    dealt, filled = np.zeros(len(names), np.int64), np.zeros(folds, np.int64)
    for place in generator(seed, purpose, "folds").permutation(len(names)):
        dealt[place] = np.argmin(filled)
        filled[dealt[place]] += sizes[place]
    return dealt[group]
