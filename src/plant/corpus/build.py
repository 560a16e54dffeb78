"""From a source to the corpus: clean, restrict the labels, split, check, write."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant import settings
from plant.corpus import report, splits
from plant.corpus.cleaning import clean
from plant.corpus.codes import check_label_list
from plant.corpus.documents import SPLITS, Documents, some
from plant.corpus.sources import codiesp, eurlex57k, mimic3, mimic4, table, xmc
from plant.corpus.staging import staged
from plant.errors import InputError
from plant.files import require_file, write_arrays, write_json

FILES = (*(f"{name}.parquet" for name in SPLITS), "labels.parquet", "labels.safetensors", "statistics.json")


def build_corpus(dataset: settings.Dataset, out: Path, *, raw: Path | None = None) -> None:
    """Read a dataset and write the corpus into `out`: the files of `FILES`, all of them or none.

    Order of the steps: read, clean, drop documents without text, restrict the labels (`keep`, then `min_count` over
    all documents of the source), drop documents without labels, split, cut the training split to `train_size`.
    The label space is that of all splits before the cut, so that it does not change with `train_size`.

    Args:
        dataset: an entry of the config's `datasets`.
        out: folder of the corpus; other files in it are left alone.
        raw: folder of the generated raw files, for a dataset with `generate`.

    Raises:
        InputError: whatever is wrong with the source, its labels or its split; nothing is written then.
    """
    counts: Counter[str] = Counter()
    documents = _prepare(read(dataset, raw=raw), dataset, counts)  # the raw texts are freed there
    dropped = dict(documents.dropped)
    frame = splits.assign(documents.frame, dataset.split, dropped=[one for ids in dropped.values() for one in ids])
    dropped["not_in_the_split_lists"] = tuple(frame.filter(pl.col("split").is_null())["document_id"])
    frame = frame.drop_nulls("split")
    labels = report.label_names(frame)
    frame = splits.cut_train(frame, dataset.train_size, seed=dataset.split.seed)
    documents = replace(documents, frame=_in_split_order(frame), dropped=dropped)
    _write(documents, labels, counts, Path(out), private=dataset.credentialed)


def read(dataset: settings.Dataset, *, raw: Path | None = None) -> Documents:
    """Read the source that `dataset` names into the canonical frame."""
    match dataset:
        case settings.Mimic3(path=None):
            if raw is None:
                raise InputError(
                    "build_corpus",
                    expected="`raw`, the folder of the generated files",
                    got="none",
                    fix="Run write_mimic3 first.",
                )
            return mimic3.read(dataset, Path(raw))
        case settings.Mimic3():
            return mimic3.read(dataset, Path(str(dataset.path)))
        case settings.Mimic4():
            return mimic4.read(dataset)
        case settings.CodiEsp():
            return codiesp.read(dataset)
        case settings.Eurlex57k():
            return eurlex57k.read(dataset)
        case settings.Xmc():
            return xmc.read(dataset)
        case settings.Table():
            return table.read(dataset)


def _check_ids(frame: pl.DataFrame) -> None:
    if not len(frame):
        raise InputError("corpus", expected="documents", got="none", fix="Check the source's path.")
    twice = frame.filter(frame["document_id"].is_duplicated())["document_id"].unique(maintain_order=True)
    if len(twice):
        raise InputError(
            "corpus",
            expected="every document id once",
            got=f"{len(twice)} repeated: {some(twice)}",
            fix="Make the ids unique (over all files).",
        )


def _prepare(documents: Documents, dataset: settings.Dataset, counts: Counter[str]) -> Documents:
    """Clean texts and labels; documents without text or without labels go to `dropped`."""
    _check_ids(documents.frame)
    texts = clean(documents.frame["text"], dataset.cleaning).alias("text")
    documents = replace(documents, frame=documents.frame.with_columns(texts))
    frame, dropped = documents.frame, dict(documents.dropped)
    frame = _drop(frame, frame["text"].str.strip_chars() == "", "without_text", dropped)
    tidy = pl.element().str.strip_chars()
    frame = frame.with_columns(pl.col("labels").list.eval(tidy.filter(tidy.str.len_chars() > 0)))
    unique = frame["labels"].list.unique().list.sort()
    counts["repeated_labels_removed"] = int((frame["labels"].list.len() - unique.list.len()).sum())
    frame = _drop(frame.with_columns(unique.alias("labels")), unique.list.len() == 0, "without_labels", dropped)
    frame = frame.with_columns(restrict_labels(frame["labels"], dataset.labels, counts).alias("labels"))
    frame = _drop(frame, frame["labels"].list.len() == 0, "without_labels_of_the_label_space", dropped)
    if not len(frame):
        reasons = ", ".join(f"{len(ids)} {reason}" for reason, ids in dropped.items())
        raise InputError(
            "corpus",
            expected="documents with text and labels",
            got=f"none ({reasons})",
            fix="Check the source and the label restrictions.",
        )
    return replace(documents, frame=frame, dropped=dropped)


def _drop(frame: pl.DataFrame, bad: pl.Series, reason: str, dropped: dict[str, tuple[str, ...]]) -> pl.DataFrame:
    dropped[reason] = tuple(frame.filter(bad)["document_id"])
    return frame.filter(~bad)


def restrict_labels(labels: pl.Series, space: settings.LabelSpace, counts: Counter[str]) -> pl.Series:
    """Drop the labels that `keep` does not name, then those on fewer than `min_count` documents.

    Args:
        labels: sorted lists without repetitions.
        space: the config section.
        counts: gets the number of labels dropped, and of those asked for that no document has.

    Raises:
        InputError: the file `keep` is missing, or none of its labels occurs.
    """
    if space.keep is None and space.min_count == 1:
        return labels
    rows = pl.DataFrame({"labels": labels}).with_row_index("row").explode("labels").drop_nulls("labels")
    present = rows["labels"].unique()
    if space.keep is not None:
        lines = require_file(Path(space.keep)).read_text(encoding="utf-8").splitlines()
        wanted = {line.strip() for line in lines if line.strip()}
        check_label_list(wanted, present, where=space.keep)
        counts["labels_asked_for_but_absent"] = len(wanted.difference(present))
        rows = rows.filter(pl.col("labels").is_in(sorted(wanted)))
        if not len(rows):
            raise InputError(
                space.keep,
                expected="labels of this corpus, one a line",
                got=f"{len(wanted)} labels, none of which occurs",
                fix="Check their spelling (dots, case).",
            )
    rows = rows.filter(pl.len().over("labels") >= space.min_count)
    counts["labels_dropped"] = len(present) - rows["labels"].n_unique()
    kept = rows.group_by("row").agg("labels")
    every = pl.DataFrame({"row": range(len(labels))}, schema={"row": pl.UInt32})
    joined = every.join(kept, on="row", how="left", maintain_order="left")["labels"]
    return joined.fill_null([]).list.sort()


def _in_split_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Train, val, test, each in the order of the source."""
    parts = [frame.filter(pl.col("split") == name) for name in SPLITS]
    empty = [name for name, part in zip(SPLITS, parts, strict=True) if not len(part)]
    if empty:
        raise InputError(
            "split",
            expected="documents in train, val and test",
            got=f"none in {', '.join(empty)}",
            fix="Give the split a fraction or a list, or more documents.",
        )
    return pl.concat(parts)


def _write(documents: Documents, labels: pl.Series, counts: Counter[str], out: Path, *, private: bool) -> None:
    frame = documents.frame
    arrays = report.label_arrays(frame, labels)
    statistics = report.statistics(frame, arrays["counts"]) | {
        "dropped_documents": {reason: len(ids) for reason, ids in documents.dropped.items()},
        "label_cleaning": dict(counts),
        "source": dict(documents.notes),
    }
    with staged(out, private=private) as folder:
        for name in SPLITS:
            frame.filter(pl.col("split") == name).drop("split").write_parquet(folder / f"{name}.parquet")
        report.label_table(labels, arrays["counts"], documents.descriptions).write_parquet(folder / "labels.parquet")
        write_arrays(folder / "labels.safetensors", arrays)
        write_json(folder / "statistics.json", statistics)
