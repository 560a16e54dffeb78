"""Your own data: parquet, CSV or JSON lines with ids, texts and labels."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import polars.selectors as cs

from plant.corpus.documents import SourceDocuments, canonical, some
from plant.corpus.splits import canonical_name
from plant.corpus.tables import alike, check_type, is_plain, load_table
from plant.ground.errors import InputError
from plant.ground.settings import OwnTable

log = logging.getLogger("plant")

SEPARATORS = (",", ";", "|", "\t", " ")
"""Texts that people write between labels."""
MOVED = 0.1
"""Share of first parts that come later in another cell, or the reverse: above it, the sign stands between labels."""


def read(dataset: OwnTable, path: Path | None) -> SourceDocuments:
    """Read one file (with or without a split column), or one file for each split.

    Labels are a list, or one string that is cut at `label_separator`. Without a column of ids, documents are numbered
    from 1 (in one file for each split: train1, val1, ...). A document without labels is kept here; the corpus drops and
    counts it. There is a warning if a column `split` is not read, or if labels look like lists that are not cut.

    Raises:
        InputError: a file or column is missing, a file cannot be read, a column has a wrong type, or an id or a text is
            missing.
    """
    if path is not None:
        return SourceDocuments(_read_one(path, dataset, split=None))
    files = dataset.files or {}
    return SourceDocuments(pl.concat([_read_one(Path(path), dataset, split=name) for name, path in files.items()]))


def _read_one(path: Path, dataset: OwnTable, *, split: str | None) -> pl.DataFrame:
    table = load_table(path)
    columns = {
        "document_id": dataset.id_column,
        "group_id": dataset.group_column or dataset.id_column,
        "text": dataset.text_column,
        "labels": dataset.labels_column,
        "split": dataset.split_column,
    }
    wanted = {name: column for name, column in columns.items() if column is not None}
    if dataset.split_column is None and split is None:
        _warn_of_a_split_column(table.columns, dataset, path=path)
    for column in wanted.values():
        if column not in table.columns:
            raise InputError(
                str(path), expected=f"a column {column!r}", got=f"{len(table.columns)} columns, none of this name",
                fix=f"{alike(column, table.columns)}Name it in the dataset's config.",
            )  # fmt: skip
    if not len(table):
        raise InputError(str(path), expected="documents", got="an empty table", fix="Check the file.")
    frame = table.select(pl.col(column).alias(name) for name, column in wanted.items())
    frame = frame.with_columns(cs.float().fill_nan(None))
    _check_types(frame, wanted, path=path)
    frame = frame.with_columns(_labels(frame["labels"], dataset, path=path))
    number = pl.format("{}{}", pl.lit(split or ""), pl.int_range(1, pl.len() + 1))
    frame = frame.with_columns(number.alias(name) for name in ("document_id", "group_id") if name not in wanted)
    if split is not None:
        frame = frame.with_columns(split=pl.lit(split))
    frame = canonical(frame).with_columns(pl.col("document_id", "group_id").str.strip_chars())
    if split is None and dataset.split_column is not None:
        split_names = frame["split"].fill_null("")
        names = {name: canonical_name(name, where=str(path)) for name in split_names.unique()}
        frame = frame.with_columns(split=split_names.replace_strict(names, return_dtype=pl.String))
    _check_complete(frame, path=path)
    return frame


def _warn_of_a_split_column(columns: Sequence[str], dataset: OwnTable, *, path: Path) -> None:
    listed = dataset.split.ids is not None or dataset.split.table is not None
    if not listed and any(column.strip().lower() == "split" for column in columns):
        log.warning(
            "warning: %s: the column split is not read, documents are dealt by the fractions of the config; "
            "`split_column: split` reads it", path,
        )  # fmt: skip


def _check_types(frame: pl.DataFrame, columns: Mapping[str, str], *, path: Path) -> None:
    """Refuse values that would become text only by printing them: lists, objects, bytes."""
    for name, column in columns.items():
        dtype = frame[name].dtype
        inner = getattr(dtype, "inner", dtype)
        fits, expected = {
            "text": (_is_text(dtype), "text"),
            "labels": (_is_text(inner), "a list of strings, or one string a document (numbers lose leading zeros),"),
        }.get(name, (is_plain(dtype), "one name a document"))
        check_type(frame[name], fits, expected, column, path=path)


def _is_text(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)


def _labels(labels: pl.Series, dataset: OwnTable, *, path: Path) -> pl.Series:
    """The labels as lists of strings."""
    if not isinstance(labels.dtype, pl.List | pl.Array | pl.Null):
        labels = labels.cast(pl.String).fill_null("")
        if printed := _printed_lists(labels):
            raise InputError(
                str(path), expected=f"labels with {dataset.label_separator!r} between them",
                got=f"lists printed as text, in brackets, in {printed} documents",
                fix="Write the labels without brackets, or the file as parquet or JSON lines.",
            )  # fmt: skip
        labels = labels.str.split(dataset.label_separator)
    lists = labels.cast(pl.List(pl.String)).fill_null([]).alias("labels")
    _warn_of_uncut_lists(lists, path=path)
    return lists


def _printed_lists(cells: pl.Series) -> int:
    """How many cells are lists that were printed. One with quotes is enough (`['a', 'b']`); without them (`[1, 2]`,
    `{a,b}`, `<a><b>`), all cells that are not empty must be in brackets, because a label may be."""
    quoted = int(cells.str.contains(r"""^\s*\[\s*['"].*\]\s*$""").sum())
    filled = cells.filter(cells.str.strip_chars() != "")
    bracketed = filled.str.contains(r"(?s)^\s*(\[.*\]|\{.*\}|<.*>)\s*$").all()
    return len(filled) if bracketed and not quoted else quoted


def _warn_of_uncut_lists(labels: pl.Series, *, path: Path) -> None:
    """Warn if no document has two labels, and cutting at another separator would give fewer different labels."""
    if labels.list.len().max() != 1:
        return
    whole = labels.explode().drop_nulls().str.strip_chars()
    whole = whole.filter(whole != "")
    for separator in SEPARATORS:
        parts = whole.str.split(separator).explode().str.strip_chars()
        cut = whole.str.contains(separator, literal=True).sum()
        if cut and separates(whole, separator, fewer=separator.isspace()):
            log.warning(
                "warning: %s: no document has more than one label; %d of %d labels hold %r, and cut there %d different "
                "labels become %d. If they are lists, cut them there (`label_separator`, where labels are one string)",
                path, cut, len(whole), separator, whole.n_unique(), parts.n_unique(),
            )  # fmt: skip
            return


def separates(cells: pl.Series, sign: str, *, fewer: bool = False) -> float:
    """How many documents a label has on average if cells are cut at a sign; 0 if the sign seems to belong to the names.

    In lists, a part comes before the sign in one cell and after it in another (`a,b` and `b,c`), or there are fewer
    parts than cells. In names neither is usual (`asthma, mild` and `fever, mild`).

    With `fewer`, only a smaller number of different labels counts.

    >>> separates(pl.Series(["a,b", "b", "c,d,a"]), ","), separates(pl.Series(["asthma, mild", "fever, mild"]), ",")
    (1.5, 0.0)
    """
    lists = cells.str.split(sign).list.eval(pl.element().str.strip_chars())
    parts, first, later = lists.explode(), lists.list.first(), lists.list.slice(1).explode().drop_nulls()
    fits = parts.n_unique() < cells.n_unique()
    if not fits and not fewer and len(later):
        moved = (float(one.is_in(other.implode()).sum()) / len(one) for one, other in ((later, first), (first, later)))
        fits = max(moved) > MOVED
    return len(parts) / parts.n_unique() if fits else 0.0


def _check_complete(frame: pl.DataFrame, *, path: Path) -> None:
    blank = frame["document_id"].fill_null("") == ""
    if blank.any():
        raise InputError(
            str(path), expected="an id for every document", got=f"{blank.sum()} without one", fix="Fill the id column."
        )
    ids = frame.filter(frame["text"].fill_null("").str.strip_chars() == "")["document_id"]
    if len(ids):
        raise InputError(
            str(path), expected="a text for every document", got=f"{len(ids)} without: {some(ids)}",
            fix="Fill the texts or leave these documents out.",
        )  # fmt: skip
