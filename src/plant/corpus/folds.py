"""Folds of documents for cross-fitting; a group (a patient) is never torn."""

from __future__ import annotations

import numpy as np

from plant.ground.errors import InputError
from plant.ground.seeds import generator


def deal_folds(groups: np.ndarray, folds: int, seed: int, *, purpose: str, key: str) -> np.ndarray:
    """A fold for each document: groups in a random order, each to the fold with the fewest documents so far.

    Args:
        groups: (N,) name of each document's group.
        folds: at least 1.
        seed: names the random order; it does not depend on the order of the documents.
        purpose: what is cross-fitted: each has an order of its own.
        key: of the config, for the error.

    Returns:
        (N,) int64, 0 <= fold < folds.

    Raises:
        InputError: fewer groups than folds.
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
