"""A part of an existing corpus: other labels, other lists, or a smaller training split."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant.corpus import build, label_space
from plant.corpus.documents import SPLITS, SourceDocuments, canonical
from plant.ground import identity, settings
from plant.ground.files import is_private, require_file


def build_subset(dataset: settings.Subset, whole: Path, out: Path) -> None:
    """Write the corpus of a subset into `out`, from the corpus of the whole dataset.

    The steps are those of `build_corpus`, without cleaning. The split is that of the whole, or the one that `split.ids`
    or `split.table` lists. Documents that are not listed are dropped. Fractions are not used. With `unlabelled:
    keep_test`, test documents without labels stay.

    If neither lists nor labels are restricted, the split and the label space are those of the whole and keep their
    names. Smaller training splits are then compared on the same labels and test documents. Only the owner can read the
    files if `credentialed` is true, or if only the owner can read the whole.

    Args:
        dataset: the config entry. Its section `cleaning` is not read.
        whole: corpus folder of the dataset that `of` names.
        out: folder of the subset's corpus. Other files in it stay.

    Raises:
        InputError: the whole is missing, lists name documents that it does not have, or nothing is left.
    """
    counts: Counter[str] = Counter()
    documents = _read(Path(whole))
    before = pl.read_parquet(require_file(Path(whole) / "labels.parquet"), columns=["label"])["label"]
    split_name, space_name = identity.read_names(Path(whole))
    labels = label_space.restrict(documents.frame["labels"], dataset.labels, counts).alias("labels")
    documents = replace(documents, frame=documents.frame.with_columns(labels))
    keep_test = dataset.unlabelled == "keep_test"
    documents = build.split_documents(documents, dataset, counts, keep_test=keep_test)
    listed = dataset.split.ids is not None or dataset.split.table is not None
    restricted = dataset.labels != settings.LabelFilter(name=dataset.labels.name)
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


def _read(whole: Path) -> SourceDocuments:
    parts = [
        pl.read_parquet(require_file(whole / f"{name}.parquet")).with_columns(split=pl.lit(name)) for name in SPLITS
    ]
    table = pl.read_parquet(require_file(whole / "labels.parquet"), columns=["label", "description"]).drop_nulls()
    return SourceDocuments(canonical(pl.concat(parts)), dict(table.iter_rows()))
