"""Published archives: the files of a zip, a tar or an unpacked folder, read in the same way."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from plant.ground.errors import InputError
from plant.ground.files import absence

DAMAGED = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError)
"""What Python raises on a damaged archive."""


def read_files(
    path: Path, wanted: Callable[[PurePosixPath], bool], *, expected: str, fix: str
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """(path inside, content) of the files that `wanted` accepts, in the order of the archive.

    `path` is a folder, a zip or a tar with any compression. Files that macOS adds under the name of a real one
    (__MACOSX, ._name) are left out.

    Raises:
        InputError: there is nothing, or the archive is damaged. It says what was `expected` and what is the `fix`.
    """
    try:
        for name, read in _members(path):
            inside = PurePosixPath(name)
            added = "__MACOSX" in inside.parts or inside.name.startswith("._")
            if not added and wanted(inside):
                yield inside, read()
    except DAMAGED as error:
        got = absence(path) if not path.exists() else f"a damaged or other file ({error})"
        raise InputError(str(path), expected=expected, got=got, fix=fix) from error


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name of each file, and a function that reads it."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), file.read_bytes
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    yield info.filename, lambda info=info: packed.read(info)  # type: ignore[misc]
    else:
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                if (content := tar.extractfile(member)) is not None:
                    yield member.name, content.read
