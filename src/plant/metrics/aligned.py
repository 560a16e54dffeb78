"""Scores of several systems for the same (document, label) pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from plant.metrics.scores import Scores
from plant.metrics.top import pair_ids, scores_at, sorted_csr


@dataclass(frozen=True)
class Pairs:
    """Scores of systems for the same pairs.

    Attributes:
        scores: one array a system, all of one shape, float32; -inf where the system has no score.
        where: rows and columns of the pairs, in the order of rows; None: the scores are (N, L) arrays.
        shape: (N, L).
    """

    scores: tuple[np.ndarray, ...]
    where: tuple[np.ndarray, np.ndarray] | None
    shape: tuple[int, int]

    def filled(self, values: np.ndarray) -> np.ndarray | sp.csr_array:
        """One value a pair as scores: (N, L), or sparse where only some pairs are known."""
        if self.where is None:
            return values
        return sorted_csr(sp.coo_array((values, self.where), shape=self.shape))


def align(systems: Sequence[Scores]) -> Pairs:
    """The scores of all pairs, where every system keeps them all.

    Where the label set is too large for that, the pairs are the top K labels of each document under any system; a
    label that a system does not rank there gets that system's K-th score, the most that it can have.

    Args:
        systems: comparable scores (`require_comparable`), one or more.
    """
    shape = systems[0].truth.shape
    dense = [system.dense for system in systems if system.dense is not None]
    if len(dense) == len(systems):
        return Pairs(tuple(dense), None, shape)
    keys = np.unique(np.concatenate([pair_ids(system.retrieved) for system in systems]))
    rows, columns = np.divmod(keys, shape[1])
    values = (np.maximum(scores_at(system.retrieved, rows, columns), system.bound[rows]) for system in systems)
    return Pairs(tuple(values), (rows, columns), shape)
