"""Tables and lists in files: parquet, feather, CSV, TSV, JSON lines. No error quotes a row, which may hold a text."""

from __future__ import annotations

import csv
import difflib
import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.errors import InputError
from plant.ground.files import require_file


def text_lines(path: Path) -> Iterator[str]:
    """Lines of a plain or gzipped UTF-8 file, with their ends, and without a byte order mark.

    A line ends at a newline only, because texts may hold other separators.

    Raises:
        InputError: the file cannot be read to its end, or a line is not UTF-8.
    """
    number = 1
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{path}, line {number}", expected="text in UTF-8", got="bytes of another encoding (Latin-1?)",
            fix="Save the file as UTF-8.",
        ) from None  # fmt: skip
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            str(path), expected="a complete text file", got=f"a damaged one ({type(error).__name__})",
            fix="Download it again.",
        ) from error  # fmt: skip


def read_list(path: Path) -> list[str]:
    """The lines of a list (ids, labels), without white space around them. Blank lines are left out.

    Raises:
        InputError: the file is missing or is not UTF-8.
    """
    return [line.strip() for line in text_lines(require_file(path)) if line.strip()]


def json_object(line: str, where: str) -> dict[str, Any]:
    """The object of one line of JSON lines. `where` is its file and line.

    Raises:
        InputError: the line is no JSON object, or holds half of a surrogate pair, which cannot be written.
    """
    try:
        entry = json.loads(line)
        if "\\ud" in line.lower():
            json.dumps(entry, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InputError(
            where, expected="one JSON object a line", got="none, or a piece of one",
            fix="Write each object on one line, without a list around them; else download the file again.",
        )  # fmt: skip
    return entry


def json_objects(path: Path, keys: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of each line, which must have all `keys`. Blank lines are left out.

    Raises:
        InputError: a line is not a JSON object, or lacks a key.
    """
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        entry = json_object(line, f"{path}, line {number}")
        if missing := [key for key in keys if key not in entry]:
            raise InputError(
                f"{path}, line {number}", expected=f"the keys {', '.join(keys)}",
                got=f"none called {', '.join(missing)}", fix="Check `format` of the dataset.",
            )  # fmt: skip
        yield number, entry


def load_table(path: Path) -> pl.DataFrame:
    """A table in the format that the ending of its name says.

    Text files give strings and lists. JSON values of several types stay Python objects.

    Raises:
        InputError: the file is missing or cannot be read.
    """
    name = require_file(path).name.removesuffix(".gz")
    if name.endswith((".parquet", ".feather")):
        return _binary(path)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        rows = [row for _, row in json_objects(path)]
        if not rows:
            raise InputError(str(path), expected="JSON objects", got="an empty file", fix="Check the file.")
        names = dict.fromkeys(key for row in rows for key in row)
        return pl.DataFrame([_json_column(name, [row.get(name) for row in rows]) for name in names])
    if name.endswith((".csv", ".tsv")):
        return _delimited(path, "\t" if name.endswith(".tsv") else ",")
    raise InputError(
        str(path), expected="a .parquet, .feather, .csv, .tsv or .jsonl file (.gz allowed for text)",
        got=f"the ending {path.suffix!r}", fix="Convert or rename the file.",
    )  # fmt: skip


def _binary(path: Path) -> pl.DataFrame:
    try:
        scan = pl.scan_parquet if path.suffix == ".parquet" else pl.scan_ipc
        return scan(path, glob=False).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            str(path), expected=f"a readable {path.suffix} file",
            got=f"one that is empty, damaged or of another format ({type(error).__name__})",
            fix="Check it, and that its ending says its format.",
        ) from None  # fmt: skip


def _json_column(name: str, values: list[Any]) -> pl.Series:
    """A column of JSON values. Mixed types stay objects, because polars would turn a list beside a string into text."""
    kinds = {_kind(value) for value in values} - {"NoneType", "list of nothing"}
    plain = len(kinds) <= 1 and not any(mark in kind for kind in kinds for mark in ("dict", "of list", "+"))
    return pl.Series(name, values, dtype=None if plain else pl.Object)


def _kind(value: Any) -> str:
    """The type of a JSON value, such as `str` or `list of int + str`."""
    if not isinstance(value, list):
        return type(value).__name__
    parts = {type(part).__name__ for part in value if part is not None}
    return f"list of {' + '.join(sorted(parts)) or 'nothing'}"


def _delimited(path: Path, separator: str) -> pl.DataFrame:
    """A CSV or TSV table with every cell as text. Python's reader knows the line of an error, and polars does not."""
    csv.field_size_limit(sys.maxsize)  # texts may be long
    reader = csv.reader(text_lines(path), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    first = 1  # line on which the current row starts
    try:
        for row in reader:
            if row:
                if not rows:
                    check_separator(row, separator, f"{path}, line {first}")
                rows.append(row)
                _check_length(row, rows[0], f"{path}, line {first}")
            first = reader.line_num + 1
    except csv.Error:  # its own message asks for an option of Python's reader
        raise InputError(
            f"{path}, line {first}", expected="newlines between the rows, and closed quotes",
            got="a carriage return alone, a quote that is not closed, or text behind a closing quote",
            fix="Save it with the line ends of Unix or Windows. Quote texts that hold a carriage return, and write a "
            'quote inside a text twice ("").',
        ) from None  # fmt: skip
    if not rows:
        raise InputError(str(path), expected="a table with a header", got="an empty file", fix="Check the file.")
    header, *cells = rows
    if twice := len(header) - len(set(header)):
        raise InputError(
            str(path), expected="every column once", got=f"{twice} again in the header", fix="Rename them."
        )
    return pl.DataFrame(cells, schema=dict.fromkeys(header, pl.String), orient="row")


def check_separator(header: list[str], separator: str, where: str) -> None:
    """Refuse a header that is one name for a table, and several names with another sign between them."""
    other = next((sign for sign in ";\t,|" if len(header) == 1 and len(header[0].split(sign)) > 1), None)
    if other is not None:
        raise InputError(
            where, expected=f"{separator!r} between the columns", got=f"{other!r}",
            fix="Save the table as UTF-8 CSV with commas, or with tabs and the ending .tsv.",
        )  # fmt: skip


def _check_length(row: list[str], header: list[str], where: str) -> None:
    if len(row) != len(header):
        cause = "a line end" if len(row) < len(header) else "a separator"
        raise InputError(
            where, expected=f"{len(header)} cells, as in the header", got=str(len(row)),
            fix=f"The usual cause is {cause} inside a text that is not in quotes: quote the text.",
        )  # fmt: skip


def text_columns(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """Columns of a table as strings without white space around them. A missing value is "".

    Raises:
        InputError: the file is missing or cannot be read, or a column is not there.
    """
    table = load_table(path)
    if missing := [name for name in names if name not in table.columns]:
        raise InputError(
            str(path), expected=f"the columns {', '.join(names)}",
            got=f"{len(table.columns)} columns, no {' and no '.join(missing)}", fix="Name the columns so.",
        )  # fmt: skip
    for name in names:
        check_type(table[name], is_plain(table[name].dtype), "text", name, path=path)
    return table.select(pl.col(name).cast(pl.String).fill_null("").str.strip_chars() for name in names)


def alike(column: str, columns: Iterable[str]) -> str:
    """Points to a column with almost the same name. Other columns are not shown, because a header may hold a text."""
    close = [one for one in columns if difflib.SequenceMatcher(None, column.lower(), one.lower()).ratio() >= 0.8]
    return f"Did you mean {close[0]!r}? " if close else ""


def is_plain(dtype: pl.DataType) -> bool:
    """Whether values are single and have a name: no list, no object, no bytes, no span of time."""
    return not dtype.is_nested() and dtype not in (pl.Binary, pl.Object, pl.Duration)


def check_type(values: pl.Series, fits: bool, expected: str, column: str, *, path: Path) -> None:
    """Raise an error if the type of a column does not fit. The error counts the types of mixed JSON values."""
    if fits:
        return
    inner = getattr(values.dtype, "inner", None)
    got = f"{values.dtype.base_type()}" + (f" of {inner.base_type()}" if inner is not None else "")
    if values.dtype == pl.Object:
        got = ", ".join(f"{kind} ({number} documents)" for kind, number in Counter(map(_kind, values)).items())
    raise InputError(
        str(path), expected=f"{expected} in the column {column!r}", got=got, fix="Write all cells in that way."
    )
