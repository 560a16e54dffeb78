"""The labels as numbers, and the statistics of a corpus (aggregates only)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from plant.corpus.documents import SPLITS
from plant.ground.settings.corpus import Expected

CEILINGS = (1, 3, 5, 8, 15)
"""Values of k in the ceilings of precision at k."""


def label_arrays(frame: pl.DataFrame, labels: pl.Series) -> dict[str, np.ndarray]:
    """The label lists as the arrays of `plant.corpus.reader.Labels`. The position of a label in `labels` is its id."""
    lengths = frame["labels"].list.len().to_numpy()
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    ids = pl.DataFrame({"label": labels, "id": np.arange(len(labels), dtype=np.int32)})
    flat = frame.select(pl.col("labels").explode().alias("label"))
    indices = flat.join(ids, on="label", how="left", maintain_order="left")["id"].to_numpy().astype(np.int32)
    sizes = np.array([(frame["split"] == name).sum() for name in SPLITS], dtype=np.int64)
    edges = indptr[np.concatenate([[0], np.cumsum(sizes)])]
    counts = np.stack([np.bincount(indices[a:b], minlength=len(labels)) for a, b in pairwise(edges)])
    return {"indptr": indptr, "indices": indices, "split_sizes": sizes, "counts": counts.astype(np.int64)}


def label_table(labels: pl.Series, counts: np.ndarray, descriptions: Mapping[str, str]) -> pl.DataFrame:
    """The table labels.parquet: label, description, n_train, n_val, n_test. The number of a row is the label's id."""
    columns = {f"n_{name}": pl.Series(counts[i].astype(np.uint32)) for i, name in enumerate(SPLITS)}
    titles = pl.Series([descriptions.get(label) for label in labels], dtype=pl.String)
    return pl.DataFrame({"label": labels, "description": titles, **columns})


def statistics(frame: pl.DataFrame, counts: np.ndarray) -> dict[str, Any]:
    """Aggregates of the corpus. No number belongs to a single document. `counts` are those of `label_arrays`."""
    train, val, test = counts
    sizes = frame.select(
        "split", "group_id", pl.col("text").hash(), n_labels=pl.col("labels").list.len(),
        n_words=pl.col("text").str.count_matches(r"\S+"),
    )  # fmt: skip
    splits = {name: sizes.filter(pl.col("split") == name) for name in SPLITS}
    shared = splits["test"]["text"].is_in(splits["train"]["text"].unique().implode())
    return {
        "labels": int(counts.shape[1]),
        "all": _part(sizes, counts.sum(axis=0)),
        "splits": {name: _part(part, counts[i]) for i, (name, part) in enumerate(splits.items())},
        "labels_in_val_absent_from_train": int(((val > 0) & (train == 0)).sum()),
        "labels_in_test_absent_from_train": int(((test > 0) & (train == 0)).sum()),
        "assignments_in_test_absent_from_train": int(test[train == 0].sum()),
        "labels_in_train_below_10_documents": int(((train > 0) & (train < 10)).sum()),
        "test_texts_that_are_in_train": int(shared.sum()),
        "ceilings": _ceilings(splits["test"]["n_labels"].to_numpy()),
    }


def _ceilings(n_labels: np.ndarray) -> dict[str, float]:
    """The largest possible precision at k: mean(min(|Y|, k) / k) over the documents that have labels."""
    lengths = n_labels[n_labels > 0]
    return {f"p@{k}": float((np.minimum(lengths, k) / k).mean()) if len(lengths) else 0.0 for k in CEILINGS}


def _part(sizes: pl.DataFrame, counts: np.ndarray) -> dict[str, Any]:
    return {
        "documents": len(sizes),
        "groups": sizes["group_id"].n_unique(),
        "labels_present": int((counts > 0).sum()),
        "assignments": int(counts.sum()),
        "labels_per_document": summary(sizes["n_labels"].to_numpy()),
        "words_per_document": summary(sizes["n_words"].to_numpy()),
        "documents_per_label": round(float(counts.mean()), 3),  # over the label space, as in the paper's Table 8
    }


def summary(values: np.ndarray) -> dict[str, float]:
    """Mean, quartiles and maximum."""
    quartile_1, median, quartile_3 = np.percentile(values, [25, 50, 75]).tolist()
    mean, largest = round(float(values.mean()), 3), float(values.max())
    return {"mean": mean, "quartile_1": quartile_1, "median": median, "quartile_3": quartile_3, "max": largest}


def expected(sizes: Expected, frame: pl.DataFrame, labels: pl.Series) -> dict[str, list[int]]:
    """[published, ours] for every size that the config gives. The log has a warning for each that differs."""
    ours = {name: int((frame["split"] == name).sum()) for name in SPLITS} | {"labels": len(labels)}
    pairs = {name: [getattr(sizes, name), size] for name, size in ours.items() if getattr(sizes, name) is not None}
    for name, (published, size) in pairs.items():
        if published != size:
            what = "labels" if name == "labels" else f"{name} documents"
            logging.getLogger("plant").warning("warning: %s: %d published, %d found", what, published, size)
    return pairs
