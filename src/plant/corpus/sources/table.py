"""Your own data: parquet, CSV or JSON lines with an id, a text and labels."""

from __future__ import annotations

import difflib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from plant.corpus.documents import Documents, canonical, some
from plant.corpus.sources.lines import decoded, delimited, json_objects
from plant.corpus.splits import canonical_name
from plant.ground.errors import InputError
from plant.ground.files import require_file
from plant.ground.settings import Table

log = logging.getLogger("plant")

SEPARATORS = (",", ";", "|", "\t", " ")
"""What people put between labels."""


def read(dataset: Table) -> Documents:
    """Read one file (with or without a split column) or one file a split.

    Labels are a list, or one string cut at `label_separator`. Ids are read without white space around them. A
    document without text is an error (its ids are named); one without labels is left to the corpus, which drops and
    counts it. A `split` column that is not read, and labels that look like uncut lists, are warned of.

    Raises:
        InputError: a file or column is missing, a file cannot be read, a column is of another type than it must be,
            an id or a text is missing.
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
    frame = frame.with_columns(cs.float().fill_nan(None))
    if not len(frame):
        raise InputError(str(path), expected="documents", got="an empty table", fix="Check the file.")
    _check_types(frame, wanted, path=path)
    if split is None and dataset.split_column is None:
        _warn_of_a_split_column(table.columns, dataset, path=path)
    frame = frame.with_columns(_labels(frame["labels"], dataset, path=path))
    frame = canonical(frame.with_columns(pl.lit(split).alias("split")) if split is not None else frame)
    frame = frame.with_columns(pl.col("document_id", "group_id").str.strip_chars())
    if split is None and dataset.split_column is not None:
        frame = frame.with_columns(_split_names(frame["split"], path=path))
    _check_complete(frame, path=path)
    return frame


def _alike(column: str, columns: list[str]) -> str:
    """Points to a column that is spelt almost as in the config. Others are not shown: the header may hold a text."""
    close = [one for one in columns if difflib.SequenceMatcher(None, column.lower(), one.lower()).ratio() >= 0.8]
    return f"Did you mean {close[0]!r}? " if close else ""


def load_table(path: Path) -> pl.DataFrame:
    """A table of strings and lists, by the ending of its name. A column of JSON values of several types holds objects.

    Raises:
        InputError: it cannot be read; no row is quoted.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        return _parquet(path)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        numbered = ((number, line) for number, line in enumerate(decoded(path), start=1) if line.strip())
        rows = list(json_objects(numbered, path))
        names = dict.fromkeys(key for row in rows for key in row)
        return pl.DataFrame([_json_column(name, [row.get(name) for row in rows]) for name in names])
    if name.endswith((".csv", ".tsv")):
        header, cells = delimited(path, "\t" if name.endswith(".tsv") else ",")
        if twice := len(header) - len(set(header)):
            raise InputError(
                str(path), expected="every column once", got=f"{twice} again in the header", fix="Rename them."
            )
        return pl.DataFrame(cells, schema=dict.fromkeys(header, pl.String), orient="row")
    raise InputError(
        str(path),
        expected="a .parquet, .csv, .tsv or .jsonl file (.gz allowed for text)",
        got=f"the ending {path.suffix!r}",
        fix="Convert or rename the file.",
    )


def _parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            str(path),
            expected=f"a readable {path.suffix} file",
            got=f"one that is empty, damaged or of another format ({type(error).__name__})",
            fix="Check it, and that its ending says its format.",
        ) from None  # it may quote a row


def _json_column(name: str, values: list[Any]) -> pl.Series:
    """polars would make one type of several: of a list beside a string the string `["a"]`."""
    kinds = {_kind(value) for value in values} - {"NoneType", "list of nothing"}
    plain = len(kinds) <= 1 and not any(mark in kind for kind in kinds for mark in ("dict", "of list", "+"))
    return pl.Series(name, values, dtype=None if plain else pl.Object)


def _kind(value: Any) -> str:
    """The type of a JSON value.

    >>> _kind("a"), _kind(["a", 1]), _kind([])
    ('str', 'list of int + str', 'list of nothing')
    """
    if not isinstance(value, list):
        return type(value).__name__
    parts = {type(part).__name__ for part in value if part is not None}
    return f"list of {' + '.join(sorted(parts)) or 'nothing'}"


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
    for name in names:
        _check_type(table[name], _is_plain(table[name].dtype), "text", name, path=path)
    return table.select(pl.col(name).cast(pl.String).fill_null("").str.strip_chars() for name in names)


def _check_types(frame: pl.DataFrame, columns: Mapping[str, str], *, path: Path) -> None:
    """Refuse what could only be turned into text by writing out its form: lists, objects, bytes."""
    for name, column in columns.items():
        dtype = frame[name].dtype
        if name == "text":
            _check_type(frame[name], _is_text(dtype), "text", column, path=path)
        elif name == "labels":
            inner = getattr(dtype, "inner", dtype)
            plain = _is_text(inner) or inner.is_integer()
            _check_type(frame[name], plain, "a list of strings, or one string a document,", column, path=path)
        else:
            _check_type(frame[name], _is_plain(dtype), "one name a document", column, path=path)


def _is_text(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)


def _is_plain(dtype: pl.DataType) -> bool:
    return not dtype.is_nested() and dtype not in (pl.Binary, pl.Object)


def _check_type(values: pl.Series, fits: bool, expected: str, column: str, *, path: Path) -> None:
    if fits:
        return
    inner = getattr(values.dtype, "inner", None)
    got = f"{values.dtype.base_type()}" + (f" of {inner.base_type()}" if inner is not None else "")
    if values.dtype == pl.Object:
        got = ", ".join(f"{kind} ({number} documents)" for kind, number in Counter(map(_kind, values)).items())
    raise InputError(
        str(path), expected=f"{expected} in the column {column!r}", got=got, fix="Write all cells in the same way."
    )


def _warn_of_a_split_column(columns: Sequence[str], dataset: Table, *, path: Path) -> None:
    listed = dataset.split.ids is not None or dataset.split.table is not None
    if not listed and any(column.strip().lower() == "split" for column in columns):
        log.warning(
            "warning: %s: the column split is not read, documents are dealt by the fractions of the config; "
            "`split_column: split` reads it", path,
        )  # fmt: skip


def _labels(labels: pl.Series, dataset: Table, *, path: Path) -> pl.Series:
    if labels.dtype.is_integer():
        raise InputError(
            str(path),
            expected=f"{dataset.labels_column!r} as a list of strings, or as one string a document",
            got=f"the type {labels.dtype} (codes that are numbers lose their leading zeros)",
            fix="Write the labels as text.",
        )
    if not isinstance(labels.dtype, pl.List | pl.Array | pl.Null):
        printed = int(labels.cast(pl.String).str.contains(r"""^\s*\[\s*['"].*\]\s*$""").sum())
        if printed:
            raise InputError(
                str(path),
                expected=f"labels with {dataset.label_separator!r} between them",
                got=f"lists printed as text, with brackets and quotes, in {printed} documents",
                fix="Write the labels without brackets, or the file as parquet or JSON lines.",
            )
        labels = labels.cast(pl.String).fill_null("").str.split(dataset.label_separator)
    lists = labels.cast(pl.List(pl.String)).fill_null([]).alias("labels")
    _warn_of_uncut_lists(lists, path=path)
    return lists


def _warn_of_uncut_lists(labels: pl.Series, *, path: Path) -> None:
    """Warn where no document has two labels and another separator would make fewer labels of the same strings."""
    if labels.list.len().max() != 1:
        return
    whole = labels.explode().drop_nulls().str.strip_chars()
    whole = whole.filter(whole != "")
    for separator in SEPARATORS:
        parts = whole.str.split(separator).explode().str.strip_chars()
        cut = whole.str.contains(separator, literal=True).sum()
        if cut and parts.n_unique() < whole.n_unique():
            log.warning(
                "warning: %s: no document has more than one label; %d of %d labels hold %r, and cut there %d different "
                "labels become %d. If they are lists, cut them there (`label_separator`, where labels are one string)",
                path, cut, len(whole), separator, whole.n_unique(), parts.n_unique(),
            )  # fmt: skip
            return


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
