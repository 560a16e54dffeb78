"""Labels as numbers, and what the corpus says about itself (aggregates only)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from plant.corpus.documents import SPLITS


def label_names(frame: pl.DataFrame) -> pl.Series:
    """All labels of the frame, sorted; the position of a label is its id."""
    return frame["labels"].explode().drop_nulls().unique().sort().alias("label")


def label_arrays(frame: pl.DataFrame, labels: pl.Series) -> dict[str, np.ndarray]:
    """The label lists as a CSR matrix.

    Returns:
        `indptr` int64[N+1]; `indices` int32, label ids, ascending in a row; `split_sizes` int64[3];
        `counts` int64[3, L], documents of each label in train, val, test.
    """
    lengths = frame["labels"].list.len().to_numpy()
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    ids = pl.DataFrame({"label": labels, "id": np.arange(len(labels), dtype=np.int32)})
    flat = frame.select(pl.col("labels").explode().alias("label")).join(
        ids, on="label", how="left", maintain_order="left"
    )
    indices = flat["id"].to_numpy().astype(np.int32)
    sizes = np.array([(frame["split"] == name).sum() for name in SPLITS], dtype=np.int64)
    edges = indptr[np.concatenate([[0], np.cumsum(sizes)])]
    counts = np.stack([np.bincount(indices[a:b], minlength=len(labels)) for a, b in pairwise(edges)])
    return {"indptr": indptr, "indices": indices, "split_sizes": sizes, "counts": counts.astype(np.int64)}


def label_table(labels: pl.Series, counts: np.ndarray, descriptions: Mapping[str, str]) -> pl.DataFrame:
    """The table labels.parquet: label, description, n_train, n_val, n_test; a row's number is the label's id."""
    columns = {f"n_{name}": pl.Series(counts[i].astype(np.uint32)) for i, name in enumerate(SPLITS)}
    titles = pl.Series([descriptions.get(label) for label in labels], dtype=pl.String)
    return pl.DataFrame({"label": labels, "description": titles, **columns})


def statistics(frame: pl.DataFrame, counts: np.ndarray) -> dict[str, Any]:
    """Aggregates of the corpus: nothing that belongs to one document."""
    train, val, test = counts
    return {
        "labels": int(counts.shape[1]),
        "splits": {name: _split(frame.filter(pl.col("split") == name), counts[i]) for i, name in enumerate(SPLITS)},
        "labels_in_val_absent_from_train": int(((val > 0) & (train == 0)).sum()),
        "labels_in_test_absent_from_train": int(((test > 0) & (train == 0)).sum()),
        "assignments_in_test_absent_from_train": int(test[train == 0].sum()),
        "labels_in_train_below_10_documents": int(((train > 0) & (train < 10)).sum()),
        "test_texts_that_are_in_train": _shared_texts(frame),
    }


def _split(part: pl.DataFrame, counts: np.ndarray) -> dict[str, Any]:
    words = part["text"].str.count_matches(r"\S+")
    return {
        "documents": len(part),
        "groups": part["group_id"].n_unique(),
        "labels_present": int((counts > 0).sum()),
        "assignments": int(counts.sum()),
        "labels_per_document": _summary(part["labels"].list.len()),
        "words_per_document": _summary(words),
    }


def _summary(values: pl.Series) -> dict[str, float]:
    quartiles = np.percentile(values.to_numpy(), [25, 50, 75])
    return {
        "mean": round(float(values.mean()), 3),  # type: ignore[arg-type]
        "quartile_1": float(quartiles[0]),
        "median": float(quartiles[1]),
        "quartile_3": float(quartiles[2]),
        "max": float(values.max()),  # type: ignore[arg-type]
    }


def _shared_texts(frame: pl.DataFrame) -> int:
    hashes = frame.select("split", pl.col("text").hash())
    train = hashes.filter(pl.col("split") == "train")["text"].unique()
    return int(hashes.filter(pl.col("split") == "test")["text"].is_in(train.implode()).sum())
