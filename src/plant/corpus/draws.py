"""Smaller splits, drawn at random or with every label in proportion. A larger draw contains every smaller one."""

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
    """Keep `size` documents of a split (None: all), and all rows of other splits.

    `stratified`: every label keeps its share of the split (choice C21). The test split is never cut, because scores on
    two test splits cannot be compared.

    Raises:
        InputError: the split has fewer documents.
    """
    if size is None:
        return frame
    rows = np.flatnonzero((frame["split"] == split).to_numpy())
    if size > len(rows):
        name = "training" if split == "train" else "validation"
        raise InputError(
            f"{split}_size", expected=f"at most the {len(rows)} {name} documents", got=str(size),
            fix="Lower it, or leave it out to keep all.",
        )  # fmt: skip
    if draw == "random":
        leave = seeds.generator(seed, "corpus", f"{split}_size").permutation(rows)[size:]
    else:
        whole = frame[rows]
        leave = np.delete(rows, stratified(whole["document_id"], whole["labels"], size, seed=seed))
    keep = np.ones(len(frame), dtype=bool)
    keep[leave] = False
    return frame.filter(pl.Series(keep))


def stratified(ids: pl.Series, labels: pl.Series, size: int, *, seed: int) -> np.ndarray:
    """Positions of `size` documents in which every label has about the same share as in all documents.

    The documents are divided into two halves in which every label is about equally frequent. The halves are divided in
    the same way, and so on. From left to right, this gives one fixed order of the documents. A draw is the start of
    this order, so a larger draw contains every smaller one. Only a half that contains the end of the draw is divided,
    so the work is about that of dividing all documents twice.

    All ids are different, and so are the labels of a document. The order of the documents does not matter. Positions
    are in ascending order, int64[size].
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
    """The labels as a CSR matrix, with documents sorted by id: indptr int64[n + 1], indices int64."""
    pairs = pl.DataFrame({"document": ids.rank("ordinal") - 1, "label": labels}).explode("label").drop_nulls("label")
    pairs = pairs.with_columns(pl.col("label").rank("dense") - 1).sort("document", "label")
    lengths = np.bincount(pairs["document"].to_numpy(), minlength=len(ids))
    return np.concatenate([[0], np.cumsum(lengths)]), pairs["label"].to_numpy().astype(np.int64)


def _halves(
    documents: np.ndarray, indptr: np.ndarray, indices: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Two halves in which every label is about equally frequent. The left half may have one document more.

    The documents are paired at random. One document of each pair goes left and the other one right, so that
    sum_l D_l^2 / c_l stays small. D_l is the number of documents with label l on the left minus those on the right, and
    c_l is the number of all documents with label l. This is greedy discrepancy minimisation (Spencer 1977; Alweiss, Liu
    and Sawhney 2021). The division by c_l puts rare labels first: two documents with a label go to different halves.
    """
    order = random.permutation(documents)
    rows = [indices[indptr[document] : indptr[document + 1]] for document in order]
    weight = 1.0 / np.maximum(np.bincount(np.concatenate(rows), minlength=1), 1)
    excess = np.zeros(len(weight))
    swaps = random.random(len(order) // 2) < 0.5  # used if both ways are equally good
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
