"""Divides documents into subsets so that every label has the same share in each."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import polars as pl

from plant.ground import seeds

ROUNDING = 1e-6
"""Tolerance in documents, because shares times counts are not exact."""


def stratify(groups: pl.Series, labels: pl.Series, *, shares: np.ndarray, seed: int) -> np.ndarray:
    """Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1), with groups as units.

    Subset j should get shares[j] of all documents, and shares[j] of the documents of each label. The label with the
    fewest documents left is dealt first. Each of its groups goes to the subset that lacks most documents of that label,
    then to the one that lacks most documents, then by chance. Groups without labels come last.

    Departure from the paper: a full subset takes no more groups while another one is not full. Without this rule, a
    corpus in which most documents have a label of their own would end up in the largest subset. With it, a subset
    exceeds its share by less than one group.

    Args:
        groups: group of each document.
        labels: list of different labels of each document.
        shares: non-negative, with sum 1.
        seed: seed of the order of the groups, and of ties.

    Returns:
        Subset of each document, int64[n].
    """
    random = seeds.generator(seed, "corpus", "split")
    # np.unique sorts the groups, so the order of the documents does not matter
    _, unit_of, unit_sizes = np.unique(groups.to_numpy(), return_inverse=True, return_counts=True)
    units = len(unit_sizes)
    order = random.permutation(units)
    unit_labels, members, totals = _contents(unit_of, labels, units, order)
    wanted = [float(share * len(groups)) for share in shares]
    wanted_labels = [[float(share * total) for share in shares] for total in totals]
    ties = random.permutation(np.flatnonzero(shares)).tolist()
    chosen = [-1] * units

    def deal(unit: int, wish: Sequence[float]) -> None:
        open_subsets = [j for j in ties if wanted[j] > ROUNDING] or ties
        best = max(open_subsets, key=lambda j: (wish[j], wanted[j]))
        chosen[unit] = best
        wanted[best] -= int(unit_sizes[unit])
        for label, count in unit_labels[unit]:
            wanted_labels[label][best] -= count
            totals[label] -= count
            heapq.heappush(queue, (totals[label], label))

    queue = [(total, label) for label, total in enumerate(totals)]
    heapq.heapify(queue)
    while queue:
        total, label = heapq.heappop(queue)
        if total != totals[label] or not total:  # the count has changed since this entry was pushed
            continue
        for unit in members[label]:
            if chosen[unit] < 0:
                deal(unit, wanted_labels[label])
    for unit in order:
        if chosen[unit] < 0:
            deal(int(unit), wanted)
    return np.array(chosen, dtype=np.int64)[unit_of]


def _contents(
    unit_of: np.ndarray, labels: pl.Series, units: int, order: np.ndarray
) -> tuple[list[list[tuple[int, int]]], list[list[int]], list[int]]:
    """(label, documents) pairs of each group; groups of each label, in random order; documents of each label."""
    pairs = pl.DataFrame({"unit": unit_of, "label": labels}).explode("label").drop_nulls("label")
    pairs = pairs.with_columns(pl.col("label").rank("dense").cast(pl.Int64) - 1)
    pairs = pairs.group_by("unit", "label").len().sort("unit", "label")
    number = pairs["label"].n_unique()
    unit_labels: list[list[tuple[int, int]]] = [[] for _ in range(units)]
    members: list[list[int]] = [[] for _ in range(number)]
    totals = [0] * number
    for unit, label, count in pairs.iter_rows():
        unit_labels[unit].append((label, count))
        totals[label] += count
    for unit in order.tolist():
        for label, _ in unit_labels[unit]:
            members[label].append(unit)
    return unit_labels, members, totals
