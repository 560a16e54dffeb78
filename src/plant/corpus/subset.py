"""Part of a corpus that is already there: other labels, other lists, a smaller training split."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant.corpus import build, label_space
from plant.corpus.documents import SPLITS, Documents, canonical
from plant.ground import identity, settings
from plant.ground.files import is_private, require_file


def build_subset(dataset: settings.Subset, whole: Path, out: Path) -> None:
    """Write the corpus of a subset into `out`, from the corpus of the dataset that it is a part of.

    Order of the steps, as in `build_corpus`: restrict the labels by what all documents of the whole say (`keep`,
    `min_count`, `top`); take the split of the whole, or the one that `split.ids` or `split.table` lists (documents
    that are not listed are left out, fractions play no part); restrict the labels by what this split says; drop
    documents without labels (`unlabelled: keep_test` keeps those of test); cut the training split.

    Where neither lists nor labels are restricted, the split and the label space are those of the whole and keep
    their names, so that a draw of the training split is compared on the same labels and documents. The files can be
    read by their owner only where `credentialed` says so or where those of the whole can.

    Args:
        dataset: the config entry; its section `cleaning` is not read (the texts are cleaned).
        whole: corpus folder of the dataset that `of` names.
        out: folder of the subset's corpus; other files in it are left alone.

    Raises:
        InputError: the whole is missing, lists name documents that it does not hold, or nothing is left.
    """
    counts: Counter[str] = Counter()
    documents = _read(Path(whole))
    before = pl.read_parquet(require_file(Path(whole) / "labels.parquet"), columns=["label"])["label"]
    split_name, space_name = identity.read_names(Path(whole))
    frame = documents.frame.with_columns(
        label_space.restrict(documents.frame["labels"], dataset.labels, counts).alias("labels")
    )
    documents = build.split_documents(
        replace(documents, frame=frame), dataset, counts, keep_test=dataset.unlabelled == "keep_test"
    )
    listed = dataset.split.ids is not None or dataset.split.table is not None
    restricted = dataset.labels != settings.LabelSpace(name=dataset.labels.name)
    build.write(
        documents,
        dataset,
        counts,
        Path(out),
        names=(
            dataset.split.name or (None if listed else split_name),
            dataset.labels.name or (None if restricted else space_name),
        ),
        private=dataset.credentialed or is_private(Path(whole) / "train.parquet"),
        labels=None if listed or restricted else before,
    )


def _read(whole: Path) -> Documents:
    parts = [
        pl.read_parquet(require_file(whole / f"{name}.parquet")).with_columns(split=pl.lit(name)) for name in SPLITS
    ]
    table = pl.read_parquet(require_file(whole / "labels.parquet"), columns=["label", "description"]).drop_nulls()
    return Documents(canonical(pl.concat(parts)), dict(table.iter_rows()))
