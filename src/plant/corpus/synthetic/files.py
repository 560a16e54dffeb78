"""Writing raw files so that the same content gives the same bytes."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from plant.ground.files import atomic_path


@contextmanager
def packed_text(path: Path) -> Iterator[TextIO]:
    """A gzipped text file, without a name or a time inside."""
    with (
        atomic_path(path) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as text,
    ):
        yield text


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], *, quoting: int) -> None:
    """A gzipped table; `quoting` is one of the constants of the module csv."""
    with packed_text(path) as text:
        writer = csv.writer(text, quoting=quoting, lineterminator="\n")  # type: ignore[arg-type]
        writer.writerow(header)
        writer.writerows(rows)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A plain text file, every line ended by a newline."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="") as text:
        text.writelines(f"{line}\n" for line in lines)


def one_line(text: str) -> str:
    """The text with single spaces for all white space."""
    return " ".join(text.split())
