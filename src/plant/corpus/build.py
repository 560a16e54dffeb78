"""From a source to the corpus: clean, restrict the labels, split, check, write."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant.corpus import draws, label_space, report, sources, splits
from plant.corpus.cleaning import clean
from plant.corpus.descriptions import describe
from plant.corpus.documents import SPLITS, SourceDocuments, some
from plant.corpus.scripts import word_warnings
from plant.ground import settings
from plant.ground.errors import InputError
from plant.ground.files import write_arrays, write_json
from plant.ground.identity import digest
from plant.ground.staging import staged

log = logging.getLogger("plant")

OUTSIDE = "without_labels_of_the_label_space"


def build_corpus(dataset: settings.Dataset, out: Path, *, raw: Path | None = None) -> None:
    """Read a dataset and write all files of its corpus into the folder `out`, or none.

    1. Read the source and the descriptions.
    2. Clean the texts. Drop documents without text.
    3. Restrict the labels by the documents of all splits (`keep`, then `min_count`, then `top`). Drop documents without
       labels.
    4. Split. Restrict the labels by the split (`train_at_least`, `train_at_most`, `test_at_least`). Drop documents
       without labels.
    5. Cut the training split to `train_size` and the validation split to `val_size`. The label space is that of the
       whole splits, so it does not change with these sizes.

    `plant.corpus.subset` makes the subsets.

    Args:
        dataset: an entry of the config's `datasets`.
        out: its folder. Other files in it stay.
        raw: folder of the generated raw files, for a dataset with `generate`.

    Raises:
        InputError: something is wrong with the source, its labels or its split. Nothing is written then.
    """
    counts: Counter[str] = Counter()
    documents = split_documents(_prepare(dataset, raw, counts), dataset, counts)
    frame = documents.frame
    for warning in word_warnings(frame.filter(frame["split"] == "train")["text"]):
        log.warning("warning: training split: %s", warning)
    names = (dataset.split.name, dataset.labels.name)
    write(documents, dataset, counts, Path(out), names=names, private=dataset.credentialed)


def _check_ids(frame: pl.DataFrame) -> None:
    twice = frame.filter(frame["document_id"].is_duplicated())["document_id"].unique(maintain_order=True)
    if len(twice):
        raise InputError(
            "corpus", expected="every document id once", got=f"{len(twice)} repeated: {some(twice)}",
            fix="Make the ids unique (over all files).",
        )  # fmt: skip
    alone = int((frame["group_id"].fill_null("").str.strip_chars() == "").sum())
    if alone:
        raise InputError(
            "corpus", expected="a group (a patient) for every document", got=f"{alone} without one",
            fix="Fill the column of groups; in a table of your own, or leave `group_column` out.",
        )  # fmt: skip


def _prepare(dataset: settings.Dataset, raw: Path | None, counts: Counter[str]) -> SourceDocuments:
    """Read the source. Clean texts and labels. Drop documents without text or without labels."""
    documents = sources.read(dataset, raw=raw)
    if dataset.descriptions is not None:
        documents = describe(documents, Path(dataset.descriptions))
    frame, dropped = documents.frame, dict(documents.dropped)
    _check_ids(frame)
    frame = frame.with_columns(clean(frame["text"], dataset.cleaning).alias("text"))
    frame = _drop(frame, frame["text"].str.strip_chars() == "", "without_text", dropped)
    label = pl.element().str.strip_chars()
    labels = frame["labels"].list.eval(pl.when(label.str.len_chars() > 0).then(label)).list.drop_nulls()
    unique = labels.list.unique().list.sort()
    counts["repeated_labels_removed"] = int((labels.list.len() - unique.list.len()).sum())
    frame = frame.with_columns(unique.alias("labels"))
    frame = _drop(frame, _bare(frame), "without_labels", dropped)
    frame = frame.with_columns(label_space.restrict(frame["labels"], dataset.labels, counts).alias("labels"))
    frame = _drop(frame, _bare(frame), OUTSIDE, dropped)
    _check_some_left(frame, dropped)
    if dataset.split.ids is None and dataset.split.table is None:
        splits.check_left(documents.frame["split"], frame)
    return replace(documents, frame=frame, dropped=dropped)


def _bare(frame: pl.DataFrame) -> pl.Series:
    return frame["labels"].list.len() == 0


def _drop(frame: pl.DataFrame, bad: pl.Series, reason: str, dropped: dict[str, tuple[str, ...]]) -> pl.DataFrame:
    """The frame without the `bad` documents. Their ids are added to `dropped[reason]`."""
    dropped[reason] = (*dropped.get(reason, ()), *frame.filter(bad)["document_id"])
    return frame.filter(~bad)


def _check_some_left(frame: pl.DataFrame, dropped: dict[str, tuple[str, ...]]) -> None:
    if not len(frame):
        reasons = ", ".join(f"{len(ids)} {reason}" for reason, ids in dropped.items())
        raise InputError(
            "corpus", expected="documents with text and labels", got=f"none ({reasons})",
            fix="Check the source and the label restrictions.",
        )  # fmt: skip


def split_documents(
    documents: SourceDocuments, dataset: settings.Dataset, counts: Counter[str], *, keep_test: bool = False
) -> SourceDocuments:
    """Split, restrict the labels by the split, and drop the documents that have none left.

    The documents come in the order of the corpus: train, val, test, and in each split the order of the source. With
    `keep_test`, test documents without a label stay (choice C20).
    """
    dropped = dict(documents.dropped)
    known = [one for ids in dropped.values() for one in ids]
    frame = splits.assign(documents.frame, dataset.split, dropped=known)
    frame = _drop(frame, frame["split"].is_null(), "not_in_the_split_lists", dropped)
    frame = frame.with_columns(label_space.restrict_after_split(frame, dataset.labels, counts).alias("labels"))
    kept = (frame["split"] == "test") & keep_test
    frame = _drop(frame, _bare(frame) & ~kept, OUTSIDE, dropped)
    _check_some_left(frame, dropped)
    parts = {name: frame.filter(pl.col("split") == name) for name in SPLITS}
    if empty := [name for name, part in parts.items() if not len(part)]:
        raise InputError(
            "split", expected="documents in train, val and test", got=f"none in {', '.join(empty)}",
            fix="Give the split a fraction or a list, or more documents.",
        )  # fmt: skip
    return replace(documents, frame=pl.concat(parts.values()), dropped=dropped)


def write(
    documents: SourceDocuments,
    dataset: settings.Dataset,
    counts: Counter[str],
    out: Path,
    *,
    names: tuple[str | None, str | None],
    private: bool,
    labels: pl.Series | None = None,
) -> None:
    """Cut the training and validation splits and write all files of the corpus, or none.

    Args:
        documents: documents of the whole splits, in the order of the corpus.
        dataset: `train_size`, `val_size`, `draw`, `expected` and the seed of the split are read.
        counts: counts of the label cleaning.
        out: folder of the corpus.
        names: names of the split and of the label space, or None.
        private: only the owner can read the files.
        labels: the label space, sorted. None: the labels of the documents.
    """
    if labels is None:
        labels = documents.frame["labels"].explode().drop_nulls().unique().sort().alias("label")
    ids = (f"{split} {one}" for split, one in documents.frame.select("split", "document_id").iter_rows())
    identity = {  # before any cut
        "split": {"name": names[0], "digest": digest(ids)},
        "label_space": {"name": names[1], "digest": digest(labels)},
    }
    frame = draws.cut(documents.frame, dataset.train_size, draw=dataset.draw, seed=dataset.split.seed)
    frame = draws.cut(frame, dataset.val_size, draw=dataset.draw, seed=dataset.split.seed, split="val")
    arrays = report.label_arrays(frame, labels)
    statistics = report.statistics(frame, arrays["counts"]) | {
        **identity,
        "expected": report.expected(dataset.expected, frame, labels),
        "dropped_documents": {reason: len(ids) for reason, ids in documents.dropped.items()},
        "label_cleaning": dict(counts),
        "source": dict(documents.notes),
    }
    if repeated := statistics["test_texts_that_are_in_train"]:
        log.warning(
            "warning: %d test documents have the text of a training document; their scores are too good", repeated
        )
    with staged(out, private=private) as folder:
        for name in SPLITS:
            frame.filter(pl.col("split") == name).drop("split").write_parquet(folder / f"{name}.parquet")
        report.label_table(labels, arrays["counts"], documents.descriptions).write_parquet(folder / "labels.parquet")
        write_arrays(folder / "labels.safetensors", arrays)
        write_json(folder / "statistics.json", statistics)
