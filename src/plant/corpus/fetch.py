"""Downloads public files: checks them, unpacks them safely, and notes where they came from."""

from __future__ import annotations

import hashlib
import http.client
import logging
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from plant.corpus.sources._archive import DAMAGED
from plant.ground.errors import InputError
from plant.ground.files import NO_ROOM, atomic_path, write_json
from plant.ground.settings import Download

BLOCK = 1 << 20
"""Bytes copied at once, so that no file is in memory as a whole."""
WAIT = 60
"""Seconds without an answer until a server counts as not reachable."""


def fetch(download: Download, target: Path) -> None:
    """Download a public file (or an archive, which is unpacked) to `target`.

    If `target` exists, nothing is done. A file appears in one step after its checksum was compared, and the folder of
    an archive after all of it was unpacked. `<target>.source.json` notes the url, SHA-256, size, date and licence. If
    the config has no checksum, a warning prints the SHA-256 of the download.

    Raises:
        InputError: there is no network or no such file (the error says where to put the file by hand), the transfer was
            cut, the checksum differs, or the archive is damaged or would write outside its folder. Nothing is left on
            the disk then.
    """
    target = Path(target)
    log = logging.getLogger("plant")
    if target.exists():
        log.info("%s exists already and is not downloaded", target)
        return
    log.info("downloading %s (licence: %s)", download.url, download.licence or "see its source")
    with atomic_path(target) as partial:
        file = partial.with_suffix(".archive.partial") if download.unpack else partial
        try:
            size, sha256 = _transfer(download, file, target)
            if download.unpack:
                _unpack(file, partial, download)
        finally:
            if download.unpack:
                file.unlink(missing_ok=True)
    if download.sha256 is None:
        ask = "warning: %s: not checked. Copy its checksum into the config, `downloads`: sha256: %s"
        log.warning(ask, download.url, sha256)
    note = {"url": download.url, "sha256": sha256, "bytes": size, "licence": download.licence}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(target.with_name(f"{target.name}.source.json"), note | {"checked": bool(download.sha256), "date": date})


def _transfer(download: Download, partial: Path, target: Path) -> tuple[int, str]:
    """Write the url into a file. Returns its size in bytes and its SHA-256."""
    try:
        request = urllib.request.Request(download.url, headers={"User-Agent": "plant-xmtc"})
        with urllib.request.urlopen(request, timeout=WAIT) as answer, partial.open("wb") as file:
            promised = answer.headers.get("Content-Length")
            page = answer.headers.get_content_type() == "text/html"
            shutil.copyfileobj(answer, file, BLOCK)
    except urllib.error.HTTPError as error:
        got = f"the answer {error.code} {error.reason}"
        raise InputError(download.url, expected="a file", got=got, fix=_by_hand(download, target)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if getattr(error, "errno", None) in NO_ROOM:  # of this machine: no download would help
            raise
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        got = f"none ({type(reason).__name__}: {reason})"
        raise InputError(download.url, expected="a file", got=got, fix=_by_hand(download, target)) from None
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
            fix=f"The file was changed by its publisher, or damaged on the way. {_by_hand(download, target)}",
        )  # fmt: skip
    if page and not target.name.endswith((".html", ".htm")):
        raise InputError(download.url, expected="a file", got="a web page in its place", fix=_by_hand(download, target))
    return size, sha256


def _by_hand(download: Download, target: Path) -> str:
    checked = f" (SHA-256 {download.sha256})" if download.sha256 else ""
    how = "unpack it into the folder" if download.unpack else "put it at"
    return (
        f"On a machine with a network, download it{checked}, then {how} {target}. The pipeline uses a file that exists."
    )


def _unpack(archive: Path, folder: Path, download: Download) -> None:
    """Unpack a zip or tar into a new folder: files and folders only, and none outside it."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(folder)  # it makes no links, and drops `..` and what makes a name absolute
            return
        with tarfile.open(archive) as tar:  # its own filter came with Python 3.11.4, which Debian 12 lacks
            members = [member for member in tar if not member.isdir()]
            while tar.fileobj is not None and tar.fileobj.read(BLOCK):
                pass  # read to the end, because tarfile does not notice that the end of an archive is missing
            _check_members(members, download)
            for member in members:
                path, content = folder / member.name, tar.extractfile(member)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file, BLOCK)  # type: ignore[arg-type]
    except (*DAMAGED, RuntimeError) as error:
        if getattr(error, "errno", None) in NO_ROOM:
            raise
        raise InputError(
            download.url, expected="a zip or tar archive", got=f"a damaged or other file ({type(error).__name__})",
            fix="Run it again; leave `unpack` out where the file is no archive.",
        ) from error  # fmt: skip


def _check_members(members: list[tarfile.TarInfo], download: Download) -> None:
    """Refuse names that lead out of the folder, and what is not a file (links, devices)."""
    paths = {member.name: PurePosixPath(member.name) for member in members}
    bad = [name for name, path in paths.items() if path.is_absolute() or ".." in path.parts]
    bad += [member.name for member in members if not member.isfile()]
    if bad:
        raise InputError(
            download.url, expected="an archive of files that stay in its folder",
            got=f"links, devices, or names that lead out of it: {', '.join(bad[:5])}",
            fix="Do not use it: it is not what its source published.",
        )  # fmt: skip
