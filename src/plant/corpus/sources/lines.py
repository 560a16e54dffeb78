"""Text files read line by line, so that an error can say which line it is."""

from __future__ import annotations

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from plant.ground.errors import InputError
from plant.ground.files import require_file


def lines(path: Path) -> Iterator[bytes]:
    """Lines with their ends, of a plain or gzipped file, cut at newlines only (texts may hold other line separators).

    Raises:
        InputError: the file cannot be read to its end.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            str(path),
            expected="a complete text file",
            got=f"a damaged one ({type(error).__name__})",
            fix="Download it again.",
        ) from error


def decoded(path: Path) -> Iterator[str]:
    """The same as text, without a byte order mark at the start.

    Raises:
        InputError: see `lines`; or a line is not UTF-8.
    """
    for number, line in enumerate(lines(path), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"{path}, line {number}", expected="text in UTF-8", got="bytes of another encoding (Latin-1?)",
                fix="Save the file as UTF-8.",
            ) from None  # fmt: skip
        yield text


def read_list(path: Path) -> list[str]:
    """The lines of a list (ids, labels), without white space around them; blank ones are left out.

    Raises:
        InputError: the file is missing or is not UTF-8.
    """
    return [line.strip() for line in decoded(require_file(path)) if line.strip()]


def json_objects(numbered: Iterable[tuple[int, str]], path: Path, keys: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The object of each line.

    Args:
        numbered: lines with their numbers in the file.
        path: of the file, for errors.
        keys: that every object must have.

    Raises:
        InputError: a line is no JSON object, or lacks a key.
    """
    for number, line in numbered:
        try:
            entry = json.loads(line)
            if "\\ud" in line.lower():
                json.dumps(entry, ensure_ascii=False).encode()  # half a character cannot be written
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            raise InputError(
                f"{path}, line {number}", expected="one JSON object a line", got="none, or a piece of one",
                fix="Write each object on one line, without a list around them; else download the file again.",
            )  # fmt: skip
        if missing := [key for key in keys if key not in entry]:
            raise InputError(
                f"{path}, line {number}",
                expected=f"the keys {', '.join(keys)}",
                got=f"none called {', '.join(missing)}",
                fix="Check `format` of the dataset.",
            )
        yield entry


def delimited(path: Path, separator: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV or TSV table, every cell as text. Blank lines are left out.

    Raises:
        InputError: the file is empty or not UTF-8, a quote is not closed, or a row is not as long as the header.
    """
    csv.field_size_limit(sys.maxsize)  # texts may be long
    reader = csv.reader(decoded(path), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    first = 1  # line of the row
    try:
        for row in reader:
            if row:
                rows.append(row)
                if len(row) != len(rows[0]):
                    raise _uneven(f"{path}, line {first}", len(rows[0]), len(row))
            first = reader.line_num + 1
    except csv.Error:
        raise InputError(
            f"{path}, line {first}", expected="a table with closed quotes",
            got="a row with a quote that is not closed, or with text behind a closing quote",
            fix='Close the quote; a quote inside a text is written twice ("").',
        ) from None  # fmt: skip
    if not rows:
        raise InputError(str(path), expected="a table with a header", got="an empty file", fix="Check the file.")
    return rows[0], rows[1:]


def _uneven(where: str, expected: int, got: int) -> InputError:
    cause = "a line end" if got < expected else "a separator"
    return InputError(
        where, expected=f"{expected} cells, as in the header", got=str(got),
        fix=f"The usual cause is {cause} inside a text that is not in quotes: quote the text.",
    )  # fmt: skip
