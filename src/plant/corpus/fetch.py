"""Public files from their homes: checked, unpacked safely, and with a note of where they came from."""

from __future__ import annotations

import hashlib
import http.client
import logging
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from plant.ground.errors import InputError
from plant.ground.files import atomic_path, write_json
from plant.ground.settings import Download

BLOCK = 1 << 20
"""Bytes copied at once: no file is ever held in memory."""
WAIT = 60
"""Seconds without an answer after which a server counts as out of reach."""


def fetch(download: Download, target: Path) -> None:
    """Bring a public file (or unpacked archive) to `target`, and note beside it where it came from and when.

    What is already there is left alone: nothing is fetched twice. A file appears in one step after its checksum is
    found right, and the folder of an archive after all of it is unpacked. The note is `<target>.source.json`: url,
    sha256 of what came, its size, the date, the licence. If the config has no checksum, a warning names the one that
    came.

    Args:
        download: an entry of the config's `downloads`.
        target: its path.

    Raises:
        InputError: no network or no such file (it says where to put the file by hand), a cut transfer, another
            checksum (both are named), a damaged archive, or one that would write outside its folder. Nothing is
            left behind then.
    """
    target = Path(target)
    log = logging.getLogger("plant")
    if target.exists():
        log.info("%s is already there: nothing is fetched", target)
        return
    log.info("fetching %s (licence: %s)", download.url, download.licence or "see its source")
    with atomic_path(target) as partial:
        came = partial.with_suffix(".archive.partial") if download.unpack else partial
        try:
            size, sha256 = _transfer(download, came, target)
            if download.unpack:
                _unpack(came, partial, download)
        finally:
            if download.unpack:
                came.unlink(missing_ok=True)
    if download.sha256 is None:
        log.warning(
            "%s: unchecked. Record what came in the config, under `downloads`: sha256: %s", download.url, sha256
        )
    note = {"url": download.url, "sha256": sha256, "bytes": size, "licence": download.licence}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(target.with_name(f"{target.name}.source.json"), note | {"checked": bool(download.sha256), "date": date})


def _transfer(download: Download, partial: Path, target: Path) -> tuple[int, str]:
    """Stream the url into a file. Returns its size in bytes and its SHA-256."""
    try:
        request = urllib.request.Request(download.url, headers={"User-Agent": "plant-xmtc"})
        with urllib.request.urlopen(request, timeout=WAIT) as answer, partial.open("wb") as file:
            promised = answer.headers.get("Content-Length")
            page = answer.headers.get_content_type() == "text/html"
            shutil.copyfileobj(answer, file, BLOCK)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InputError(download.url, expected="a file", got=_reason(error), fix=_by_hand(download, target)) from None
    size = partial.stat().st_size
    if promised is not None and size != int(promised):
        got = f"{size}: the transfer was cut"
        raise InputError(download.url, expected=f"{promised} bytes", got=got, fix="Run it again.")
    with partial.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if download.sha256 is not None and sha256 != download.sha256:
        raise InputError(
            download.url, expected=f"a file with the SHA-256 {download.sha256}",
            got=f"one with {sha256} ({size} bytes)",
            fix=f"The file has changed at its home, or the transfer was damaged. {_by_hand(download, target)}",
        )  # fmt: skip
    if page and not target.name.endswith((".html", ".htm")):
        raise InputError(download.url, expected="a file", got="a web page in its place", fix=_by_hand(download, target))
    return size, sha256


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the answer {error.code} {error.reason}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"none ({type(reason).__name__}: {reason})"


def _by_hand(download: Download, target: Path) -> str:
    checked = f" (SHA-256 {download.sha256})" if download.sha256 else ""
    how = "unpack it into the folder" if download.unpack else "put it at"
    return f"Where there is a network, download it{checked}, then {how} {target}; the pipeline takes what is there."


def _unpack(archive: Path, folder: Path, download: Download) -> None:
    """Unpack a zip or tar into a new folder: files and folders only, none of them outside it."""
    folder.mkdir()
    try:
        for name, stream in _members(archive, download):
            path = folder.joinpath(*PurePosixPath(name).parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            with stream, path.open("wb") as file:
                shutil.copyfileobj(stream, file, BLOCK)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, RuntimeError) as error:
        raise InputError(
            download.url, expected="a zip or tar archive", got=f"a damaged or other file ({type(error).__name__})",
            fix="Run it again; leave `unpack` out where the file is no archive.",
        ) from error  # fmt: skip


def _members(archive: Path, download: Download) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, content) of every file of an archive. All names are checked before the first file is given."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            files = [member for member in packed.infolist() if not member.is_dir()]
            links = [member.filename for member in files if (member.external_attr >> 16) & 0o170000 == 0o120000]
            _check_names([member.filename for member in files], links, download)
            for member in files:
                yield member.filename, packed.open(member)
        return
    with tarfile.open(archive) as tar:
        entries = [member for member in tar if not member.isdir()]
        while tar.fileobj is not None and tar.fileobj.read(BLOCK):
            pass  # to its end: tarfile itself takes a cut archive for one that ends early
        others = [member.name for member in entries if not member.isfile()]
        _check_names([member.name for member in entries], others, download)
        for entry in entries:
            content = tar.extractfile(entry)
            if content is not None:
                yield entry.name, content


def _check_names(names: list[str], others: list[str], download: Download) -> None:
    """Refuse names that lead out of the folder, and what is neither file nor folder (links, devices)."""
    bad = [name for name in names if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    bad += [name for name in names if "\\" in name or ":" in PurePosixPath(name).parts[0]]
    if bad or others:
        raise InputError(
            download.url, expected="an archive of files that stay in its folder",
            got=f"{'members that lead out of it' if bad else 'links or devices'}: {', '.join((bad or others)[:5])}",
            fix="Do not use it: it is not what its source published.",
        )  # fmt: skip
