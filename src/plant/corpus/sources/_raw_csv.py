"""Large CSV tables, plain or gzipped, read as a stream. Every column is text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from plant.ground.errors import InputError

AGAIN = "Download it again and compare its checksum."
CUT = ("eof", "end of file", "truncated", "corrupt", "deflate")
"""What polars says of a .gz file that ends early."""


def find(folder: Path, places: Sequence[str]) -> Path | None:
    """The first of `places` (paths below `folder`, without ending) that exists as .csv or .csv.gz, in any case."""
    for place in places:
        parent = folder / Path(place).parent
        entries = {entry.name.lower(): entry for entry in parent.iterdir()} if parent.is_dir() else {}
        for ending in (".csv", ".csv.gz"):
            if (path := entries.get(Path(place).name.lower() + ending)) is not None:
                return path
    return None


def require(folder: Path, places: Sequence[str]) -> Path:
    """The same, or an error that names the first place."""
    if (path := find(folder, places)) is not None:
        return path
    raise InputError(
        str(folder), expected=f"{places[0]}.csv or {places[0]}.csv.gz",
        got="no such file there" if folder.is_dir() else "no such folder",
        fix="Check `path` of the dataset, and that `source` names the edition of the files (mimic3 or mimic4).",
    )  # fmt: skip


def scan(path: Path, columns: Mapping[str, str], *, edition: str) -> pl.LazyFrame:
    """A lazy table of some columns: name in the result -> name in the file, in upper or lower case."""
    _check_end(path)
    try:
        table = pl.scan_csv(path, infer_schema=False, glob=False)
        header = table.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None
    spelling = {name.strip().lower(): name for name in header}
    if missing := [column for column in columns.values() if column.lower() not in spelling]:
        raise InputError(
            str(path), expected=f"a {edition} table with the columns {', '.join(columns.values())}",
            got=f"one without {', '.join(missing)}",
            fix="Check that `source` names the edition of the files (mimic3 or mimic4), and that they are complete.",
        )  # fmt: skip
    return table.select(pl.col(spelling[column.lower()]).alias(name) for name, column in columns.items())


def _check_end(path: Path) -> None:
    """Refuse a plain file that ends inside a row. polars would fill the row with nulls or a part of a text."""
    if path.suffix == ".gz":  # it has a checksum of its own
        return
    quotes, last = 0, b""
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            quotes, last = quotes + block.count(b'"'), block[-1:]
    if quotes % 2 or last not in (b"", b"\n"):
        got = "one that ends inside a quoted text" if quotes % 2 else "one whose last line has no end"
        raise InputError(str(path), expected="a complete table", got=got, fix=AGAIN)


def collect(table: pl.LazyFrame, path: Path) -> pl.DataFrame:
    """Run a lazy query in bounded memory.

    All columns are read. Otherwise polars drops the surplus cells of a row. They would be a whole row, if the line end
    between two rows was lost.
    """
    try:
        return table.collect(engine="streaming", optimizations=pl.QueryOptFlags(projection_pushdown=False))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file that polars cannot read. Its own message is not shown, because it may quote a row."""
    text = str(error).lower()
    if "more fields" in text:
        got = "a row with more cells than the header (a line end was lost)"
    elif path.suffix == ".gz" and any(word in text for word in CUT):
        got = "an incomplete or damaged .gz (it ends early)"
    else:
        got = f"a file that cannot be read as CSV ({type(error).__name__})"
    return InputError(str(path), expected="a complete table", got=got, fix=AGAIN)
