"""A part of an existing corpus: other labels, other lists, or a smaller training split."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from plant.corpus import build, label_space
from plant.corpus.documents import SPLITS, SourceDocuments
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
        dataset: the config entry.
        whole: corpus folder of the dataset that `of` names.
        out: folder of the subset's corpus. Other files in it stay.

    Raises:
        InputError: the whole is missing, lists name documents that it does not have, or nothing is left.
    """
    counts: Counter[str] = Counter()
    files = {name: require_file(Path(whole) / f"{name}.parquet") for name in (*SPLITS, "labels")}
    table = pl.read_parquet(files["labels"])
    frame = pl.concat([pl.read_parquet(files[name]).with_columns(split=pl.lit(name)) for name in SPLITS])
    frame = frame.with_columns(label_space.restrict(frame["labels"], dataset.labels, counts).alias("labels"))
    documents = SourceDocuments(frame, dict(table.select("label", "description").drop_nulls().iter_rows()))
    documents = build.split_documents(documents, dataset, counts, keep_test=dataset.unlabelled == "keep_test")
    split_name, space_name = identity.read_names(Path(whole))
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
        private=dataset.credentialed or is_private(files["train"]),
        labels=None if listed or restricted else table["label"],
    )
