"""Smaller splits: at random, or with every label in proportion. A larger draw holds every smaller one."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from plant.ground import seeds
from plant.ground.errors import InputError


def cut(
    frame: pl.DataFrame,
    size: int | None,
    *,
    draw: Literal["random", "stratified"],
    seed: int,
    split: Literal["train", "val"] = "train",
) -> pl.DataFrame:
    """Keep `size` documents of a split, without replacement; a larger size holds every smaller one.

    Args:
        frame: columns `document_id`, `labels` and `split`; the rows of other splits are kept.
        size: documents; None: all of them.
        draw: `random`, or `stratified`, which spreads every label as it is spread over the whole split (choice C21).
        seed: of the draw.
        split: that is cut. The test split never is: scores of two test splits are not comparable.

    Raises:
        InputError: the split has fewer documents.
    """
    if size is None:
        return frame
    rows = np.flatnonzero((frame["split"] == split).to_numpy())
    if size > len(rows):
        expected = f"at most the {len(rows)} {'training' if split == 'train' else 'validation'} documents"
        fix = "Lower it, or leave it out to keep all."
        raise InputError(f"{split}_size", expected=expected, got=str(size), fix=fix)
    if draw == "random":
        leave = seeds.generator(seed, "corpus", f"{split}_size").permutation(rows)[size:]
    else:
        whole = frame[rows]
        leave = np.delete(rows, stratified(whole["document_id"], whole["labels"], size, seed=seed))
    keep = np.ones(len(frame), dtype=bool)
    keep[leave] = False
    return frame.filter(pl.Series(keep))


def stratified(ids: pl.Series, labels: pl.Series, size: int, *, seed: int) -> np.ndarray:
    """Positions of `size` documents that hold every label in about the proportion in which all documents hold it.

    The documents are divided into two halves that hold every label equally often, as far as can be; the halves
    again, and so on. Read from left to right this is one fixed order, and a draw is its start: draws are nested,
    whatever their sizes. Only the halves in which the draw ends are divided, so the work is that of two divisions
    of all documents.

    Args:
        ids: distinct; the order in which documents come plays no part.
        labels: label list of each document, without repetitions.
        size: 0 <= size <= number of documents.
        seed: of the halves.

    Returns:
        Positions, ascending, int64[size].
    """
    indptr, indices = _csr(ids, labels)
    rest, taken, path = np.arange(len(ids)), [], "halves"
    while 0 < size < len(rest):
        left, right = _halves(rest, indptr, indices, seeds.generator(seed, "corpus", "train_size", path))
        if size < len(left):
            rest, path = left, f"{path}0"
        else:
            taken.append(left)
            rest, path, size = right, f"{path}1", size - len(left)
    chosen = np.concatenate([*taken, rest[:size]])
    return np.sort(ids.arg_sort().to_numpy().astype(np.int64)[chosen])


def _csr(ids: pl.Series, labels: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Label numbers of the documents in the order of their ids: indptr int64[n + 1], indices int64."""
    pairs = pl.DataFrame({"document": ids.rank("ordinal") - 1, "label": labels}).explode("label").drop_nulls("label")
    pairs = pairs.with_columns(pl.col("label").rank("dense") - 1).sort("document", "label")
    lengths = np.bincount(pairs["document"].to_numpy(), minlength=len(ids))
    return np.concatenate([[0], np.cumsum(lengths)]), pairs["label"].to_numpy().astype(np.int64)


def _halves(
    documents: np.ndarray, indptr: np.ndarray, indices: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Two halves in which every label is about equally frequent; of an odd number, the left one has one more.

    The documents are paired at random. Of each pair one goes left and one right, the way round that keeps
    sum_l D_l^2 / c_l small, where D_l is how much more often label l is on the left so far and c_l how many of the
    documents have it (the greedy form of discrepancy minimisation; Spencer 1977, Alweiss, Liu and Sawhney 2021).
    Dividing by c_l puts rare labels first: the second of two documents goes opposite the first.
    """
    order = random.permutation(documents)
    rows = [indices[indptr[document] : indptr[document + 1]] for document in order]
    weight = 1.0 / np.maximum(np.bincount(np.concatenate(rows), minlength=1), 1)
    excess = np.zeros(len(weight))
    swaps = random.random(len(order) // 2) < 0.5  # for pairs of which either way is as good
    for pair in range(len(swaps)):
        first, second = rows[2 * pair], rows[2 * pair + 1]
        pull = float(excess[first] @ weight[first] - excess[second] @ weight[second])
        if pull:
            swaps[pair] = pull > 0
        sign = -1.0 if swaps[pair] else 1.0
        excess[first] += sign
        excess[second] -= sign
    left = 2 * np.arange(len(swaps)) + swaps
    right = 2 * np.arange(len(swaps)) + ~swaps
    return np.concatenate([order[left], order[2 * len(swaps) :]]), order[right]
