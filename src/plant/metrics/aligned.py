"""Scores of several systems for the same pairs of a document and a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from plant.metrics.scores import Scores
from plant.metrics.top import pair_ids, scores_at, sorted_csr


@dataclass(frozen=True)
class AlignedScores:
    """Scores of systems for the same pairs.

    Attributes:
        scores: for each system a float32 array, all of one shape; -inf: the system has no score.
        where: rows and columns of the pairs, sorted by row; None: the scores are (N, L) arrays.
        shape: (N, L).
    """

    scores: tuple[np.ndarray, ...]
    where: tuple[np.ndarray, np.ndarray] | None
    shape: tuple[int, int]

    def filled(self, values: np.ndarray) -> np.ndarray | scipy.sparse.csr_array:
        """The scores (N, L) that have these values at the pairs; sparse if only some pairs are known."""
        if self.where is None:
            return values
        return sorted_csr(scipy.sparse.coo_array((values, self.where), shape=self.shape))


def align(systems: Sequence[Scores]) -> AlignedScores:
    """All pairs, if every system has all its scores; else the top K labels of each document under any system.

    A label that a system does not have among its top K gets the system's K-th score, the upper bound.

    Args:
        systems: comparable scores (`require_comparable`), one or more.
    """
    shape = systems[0].truth.shape
    dense = [system.dense for system in systems if system.dense is not None]
    if len(dense) == len(systems):
        return AlignedScores(tuple(dense), None, shape)
    keys = np.unique(np.concatenate([pair_ids(system.retrieved) for system in systems]))
    rows, columns = np.divmod(keys, shape[1])
    values = (np.maximum(scores_at(system.retrieved, rows, columns), system.bound[rows]) for system in systems)
    return AlignedScores(tuple(values), (rows, columns), shape)
