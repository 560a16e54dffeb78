"""Documents to be labelled, one after the other: a text, CSV, JSON lines, parquet, or standard input.

A file is never read whole, so memory does not grow with it. No error quotes a text.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, get_args

from plant.corpus.tables import alike, check_separator, json_object
from plant.ground.errors import InputError
from plant.ground.files import require_file

Kind = Literal["text", "csv", "tsv", "jsonl", "parquet"]
ENDINGS: dict[str, Kind] = {
    ".txt": "text", ".md": "text", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet",
}  # fmt: skip
ID_COLUMN = "id"
"""Where the names of documents are if nobody says otherwise; then they may be missing."""
ROWS = 256
"""Rows of a parquet file that are in memory at once."""
LONGEST = 1_000_000
"""Characters of a text. A longer one is refused: it is a mistake more often than a document."""


class Document(NamedTuple):
    """One text with its name."""

    id: str
    text: str


@dataclass(frozen=True)
class Source:
    """Documents in order, and how far the reader has come.

    Attributes:
        documents: each once.
        total: size of the source, in bytes or rows; None where it is not known.
        done: how much of it has been read.
    """

    documents: Iterator[Document]
    total: int | None
    done: Callable[[], int]


def check_text(text: object, where: str) -> str:
    """The text, if it can be labelled.

    Raises:
        InputError: it is no text, is empty or too long; it is not quoted.
    """
    if not isinstance(text, str):
        raise InputError(where, expected="a text", got=type(text).__name__, fix="Write it as a string.")
    if not text.strip() or len(text) > LONGEST:
        raise InputError(
            where, expected=f"1 to {LONGEST:,} characters", got=f"{len(text) if text.strip() else 0:,}",
            fix="Leave empty texts out, and cut longer ones into documents.",
        )  # fmt: skip
    return text


def open_documents(file: str, *, kind: str | None, text_column: str, id_column: str) -> Source:
    """The documents of a file, or of standard input (`-`).

    Args:
        file: its path.
        kind: one of `Kind`. None: by the ending of the name; standard input is one text.
        text_column, id_column: of a table or of JSON objects. Where `id` is missing, documents are numbered from 1.

    Raises:
        InputError: the file is missing, of an unknown kind, damaged, or has no such column; a text is empty or too
            long. Some of these come when the reader has come so far.
    """
    chosen = kind or ("text" if file == "-" else ENDINGS.get(Path(file).suffix.lower()))
    if chosen not in get_args(Kind):
        raise InputError(
            file, expected=f"a file of the kind {', '.join(get_args(Kind))}",
            got=f"the ending {Path(file).suffix!r}" if kind is None else repr(kind),
            fix="Name the kind with --input. To label a text itself, pipe it in: echo TEXT | plant predict MODEL -",
        )  # fmt: skip
    if chosen == "parquet":
        return _parquet(file, text_column, id_column)
    raw: IO[bytes] = sys.stdin.buffer if file == "-" else require_file(Path(file)).open("rb")
    lines = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    if chosen == "text":
        # one character more than the longest text is enough to refuse it
        text = next(_utf8(iter(lambda: lines.read(LONGEST + 1), ""), file), "")
        rows: Iterator[Mapping[str, Any]] = iter([{text_column: text, id_column: Path(file).stem}])
    elif chosen == "jsonl":
        rows = _json_lines(lines, file)
    else:
        rows = _delimited(lines, file, separator="\t" if chosen == "tsv" else ",")
    documents = _named(rows, file, text_column, id_column)
    if file == "-":
        return Source(documents, None, lambda: 0)
    return Source(documents, Path(file).stat().st_size, lambda: lines.buffer.tell())


def _named(rows: Iterator[Mapping[str, Any]], file: str, text_column: str, id_column: str) -> Iterator[Document]:
    number = 0
    for number, row in enumerate(rows, 1):
        if text_column not in row:
            raise _no_column(file, text_column, row, "Name it with --text-column.")
        if number == 1 and id_column != ID_COLUMN and id_column not in row:  # it was asked for by name
            raise _no_column(file, id_column, row, "Without --id-column the documents are numbered.")
        given = row.get(id_column)
        name = str(number if given in (None, "") else given)
        yield Document(name, check_text(row[text_column], f"{file}, document {name}"))
    if not number:
        raise InputError(file, expected="documents", got="none", fix="Check the file.")


def _no_column(file: str, name: str, row: Mapping[str, Any], fix: str) -> InputError:
    fix = alike(name, map(str, row)) + fix
    return InputError(file, expected=f"a column {name!r}", got=f"{len(row)} others", fix=fix)


def _utf8(lines: Iterator[str], file: str) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError:
        raise InputError(
            file, expected="text in UTF-8", got="bytes of another encoding (Latin-1?)", fix="Save the file as UTF-8."
        ) from None


def _json_lines(lines: Iterator[str], file: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(_utf8(lines, file), 1):
        if line.strip():
            yield json_object(line, f"{file}, line {number}")


def _delimited(lines: Iterator[str], file: str, *, separator: str) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(sys.maxsize)  # texts may be long
    reader = csv.DictReader(_utf8(lines, file), delimiter=separator, strict=True)
    try:
        header = list(reader.fieldnames or [])
        check_separator(header, separator, f"{file}, line 1")
        if twice := len(header) - len(set(header)):
            raise InputError(file, expected="every column once", got=f"{twice} again in the header", fix="Rename them.")
        for row in reader:
            if None in row or None in row.values():
                raise csv.Error
            yield row
    except csv.Error:
        raise InputError(
            f"{file}, line {reader.line_num}", expected="as many cells as the header has, and closed quotes",
            got="another row", fix='Quote texts with separators or line ends; a quote inside is written twice ("").',
        ) from None  # fmt: skip


def _parquet(file: str, text_column: str, id_column: str) -> Source:
    from pyarrow.parquet import ParquetFile

    with _undamaged(file):
        opened = ParquetFile(require_file(Path(file)))
    names, rows_read = [name for name in (text_column, id_column) if name in opened.schema_arrow.names], 0

    def rows() -> Iterator[Mapping[str, Any]]:
        nonlocal rows_read
        columns = names if {text_column, id_column} <= {*names, ID_COLUMN} else None  # all, for the error to name them
        with _undamaged(file):
            for batch in opened.iter_batches(ROWS, columns=columns):
                for row in batch.to_pylist():
                    rows_read += 1
                    yield row

    return Source(_named(rows(), file, text_column, id_column), opened.metadata.num_rows, lambda: rows_read)


@contextmanager
def _undamaged(file: str) -> Iterator[None]:
    """Reading of a parquet file: what pyarrow cannot read is one clear error."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            file, expected="a parquet file", got=f"a damaged one ({type(error).__name__})", fix="Write it again."
        ) from None
