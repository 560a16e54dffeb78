"""Published archives: the files of a zip, a tar or the unpacked folder, read in the same way."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from plant.ground.errors import InputError
from plant.ground.files import absence


def read_files(
    path: Path, wanted: Callable[[PurePosixPath], bool], *, expected: str, fix: str
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """(path inside, content) of the files that `wanted` accepts, in the order of the archive.

    Args:
        path: a folder, a zip or a tar, packed in any way.
        wanted: says by its path whether a file is read.
        expected: what `path` should be, for the error.
        fix: where it can be had, for the error.

    Raises:
        InputError: there is nothing, or the archive is damaged.
    """
    try:
        for name, read in _members(path):
            inside = PurePosixPath(name)
            if not _is_litter(inside) and wanted(inside):
                yield inside, read()
    except (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        got = absence(path) if not path.exists() else f"a damaged or other file ({error})"
        raise InputError(str(path), expected=expected, got=got, fix=fix) from error


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
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


def _is_litter(path: PurePosixPath) -> bool:
    """Whether macOS left the file in the archive, under the name of a real one.

    >>> _is_litter(PurePosixPath("__MACOSX/train/._32000D0001.json")), _is_litter(PurePosixPath("train/1.json"))
    (True, False)
    """
    return "__MACOSX" in path.parts or path.name.startswith("._")
