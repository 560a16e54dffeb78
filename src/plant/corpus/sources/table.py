"""Your own data: parquet, CSV or JSON lines with an id, a text and labels."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from plant.corpus.documents import Documents, canonical, some
from plant.corpus.splits import canonical_name
from plant.errors import InputError
from plant.files import require_file
from plant.settings import Table


def read(dataset: Table) -> Documents:
    """Read one file (with or without a split column) or one file a split.

    Labels are a list, or one string cut at `label_separator`. A document without text is an error (its ids are
    named); one without labels is left to the corpus, which drops and counts it.

    Raises:
        InputError: a file or column is missing, a file cannot be read, an id or a text is missing.
    """
    if dataset.path is not None:
        frame = _read_one(Path(dataset.path), dataset, split=None)
    else:
        frame = pl.concat([_read_one(Path(path), dataset, split=name) for name, path in (dataset.files or {}).items()])
    return Documents(frame)


def _read_one(path: Path, dataset: Table, *, split: str | None) -> pl.DataFrame:
    table = load_table(require_file(path))
    group = dataset.group_column or dataset.id_column
    wanted = {
        "document_id": dataset.id_column,
        "group_id": group,
        "text": dataset.text_column,
        "labels": dataset.labels_column,
    }
    if dataset.split_column is not None:
        wanted["split"] = dataset.split_column
    for column in wanted.values():
        if column not in table.columns:
            raise InputError(
                str(path),
                expected=f"a column {column!r}",
                got=f"{len(table.columns)} columns, none of this name",
                fix=f"{_alike(column, table.columns)}Name it in the dataset's config.",
            )
    frame = table.select(pl.col(column).alias(name) for name, column in wanted.items())
    if not len(frame):
        raise InputError(str(path), expected="documents", got="an empty table", fix="Check the file.")
    frame = frame.with_columns(_labels(frame["labels"], dataset, path=path))
    frame = canonical(frame.with_columns(pl.lit(split).alias("split")) if split is not None else frame)
    if split is None and dataset.split_column is not None:
        frame = frame.with_columns(_split_names(frame["split"], path=path))
    _check_complete(frame, path=path)
    return frame


def _alike(column: str, columns: list[str]) -> str:
    """Points to a column that is spelt almost as in the config. Others are not shown: the header may hold a text."""
    close = [one for one in columns if difflib.SequenceMatcher(None, column.lower(), one.lower()).ratio() >= 0.8]
    return f"Did you mean {close[0]!r}? " if close else ""


def load_table(path: Path) -> pl.DataFrame:
    """A table of strings and lists, by the ending of its name.

    Raises:
        InputError: it cannot be read; no row is quoted.
    """
    name = path.name.removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            return pl.read_parquet(path)
        if name.endswith((".jsonl", ".ndjson", ".json")):
            return pl.read_ndjson(path, infer_schema_length=None)
        if name.endswith((".csv", ".tsv")):
            return pl.read_csv(path, infer_schema=False, separator="\t" if name.endswith(".tsv") else ",")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            str(path),
            expected=f"a readable {path.suffix} file",
            got=f"one that is empty, damaged or of another format ({type(error).__name__})",
            fix="Check it, and that its ending says its format.",
        ) from None  # it may quote a row
    raise InputError(
        str(path),
        expected="a .parquet, .csv, .tsv or .jsonl file (.gz allowed for text)",
        got=f"the ending {path.suffix!r}",
        fix="Convert or rename the file.",
    )


def text_columns(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """Columns of a table as strings without white space around them; a missing value is "".

    Raises:
        InputError: the file is missing or cannot be read, or a column is not there.
    """
    table = load_table(require_file(path))
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            str(path), expected=f"the columns {', '.join(names)}", got=f"no {' and no '.join(missing)}",
            fix="Name the columns so.",
        )  # fmt: skip
    return table.select(pl.col(name).cast(pl.String).fill_null("").str.strip_chars() for name in names)


def _labels(labels: pl.Series, dataset: Table, *, path: Path) -> pl.Series:
    if isinstance(labels.dtype, pl.List | pl.Array):
        return labels.cast(pl.List(pl.String)).fill_null([]).alias("labels")
    if labels.dtype == pl.Null:
        return labels.cast(pl.List(pl.String)).fill_null([]).alias("labels")
    if labels.dtype != pl.String:
        raise InputError(
            str(path),
            expected=f"{dataset.labels_column!r} as a list of strings, or as one string a document",
            got=f"the type {labels.dtype} (codes that are numbers lose their leading zeros)",
            fix="Write the labels as text.",
        )
    return labels.fill_null("").str.split(dataset.label_separator).alias("labels")


def _split_names(names: pl.Series, *, path: Path) -> pl.Series:
    canonical_names = {name: canonical_name(str(name), where=str(path)) for name in names.unique()}
    return names.replace_strict(canonical_names, return_dtype=pl.String)


def _check_complete(frame: pl.DataFrame, *, path: Path) -> None:
    blank = frame["document_id"].fill_null("").str.strip_chars() == ""
    if blank.any():
        raise InputError(
            str(path), expected="an id for every document", got=f"{blank.sum()} without one", fix="Fill the id column."
        )
    ids = frame.filter(frame["text"].fill_null("").str.strip_chars() == "")["document_id"]
    if len(ids):
        raise InputError(
            str(path),
            expected="a text for every document",
            got=f"{len(ids)} without: {some(ids)}",
            fix="Fill the texts or leave these documents out.",
        )
