"""Downloads: what arrives is what was asked for, or one error and nothing on the disk."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import ValidationError

from plant.corpus.fetch import fetch
from plant.ground.errors import InputError
from plant.ground.settings import Download

CONTENT = bytes(range(256)) * 8000
"""Two blocks' worth."""
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Home(BaseHTTPRequestHandler):
    """A public home: /file is whole, /cut ends early, /page is a web page, all else is not there."""

    def do_GET(self) -> None:
        if self.path not in ("/file", "/cut", "/page"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/page" else "application/octet-stream")
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:1000] if self.path == "/cut" else CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    """Address of a local server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Home)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def download(url: str, **more: object) -> Download:
    known = {"sha256": SHA256} if url.startswith("http://") else {}
    return Download.model_validate({"url": url, "path": "unused"} | known | more)


def nothing_left(folder: Path) -> bool:
    return not folder.exists() or not any(folder.iterdir())


def test_a_file_comes_whole_and_is_noted_with_its_source(home, tmp_path):
    target = tmp_path / "data" / "file.bin"
    fetch(download(f"{home}/file", licence="MIT"), target)
    assert target.read_bytes() == CONTENT
    note = json.loads((tmp_path / "data/file.bin.source.json").read_text())
    date = datetime.fromisoformat(note.pop("date"))
    assert abs((datetime.now(UTC) - date).total_seconds()) < 60
    assert note == {"url": f"{home}/file", "sha256": SHA256, "bytes": len(CONTENT), "licence": "MIT", "checked": True}
    assert {file.name for file in target.parent.iterdir()} == {"file.bin", "file.bin.source.json"}


def test_without_a_known_checksum_the_one_that_came_is_noted_and_asked_to_be_recorded(tmp_path, caplog):
    (tmp_path / "home").write_bytes(CONTENT)
    fetch(download((tmp_path / "home").as_uri()), tmp_path / "out" / "file")
    note = json.loads((tmp_path / "out/file.source.json").read_text())
    assert (note["sha256"], note["checked"]) == (SHA256, False)
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning.startswith("warning: ")  # such lines of a log are shown on the screen
    assert f"Copy its checksum into the config, `downloads`: sha256: {SHA256}" in warning


def test_an_address_that_can_be_changed_on_the_way_needs_a_checksum():
    entry = {"url": "http://example.org/file", "path": "unused"}
    with pytest.raises(ValidationError, match="https://, or a sha256"):
        Download.model_validate(entry)
    assert Download.model_validate(entry | {"sha256": "0" * 64}).url == entry["url"]


def test_what_is_there_is_never_fetched_again(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("put here by hand")
    folder.mkdir()
    for target in (file, folder):
        fetch(download("http://127.0.0.1:9/nobody-answers", unpack=target.is_dir()), target)
    assert file.read_text() == "put here by hand"
    assert {one.name for one in tmp_path.rglob("*")} == {"file", "folder"}


@pytest.mark.parametrize(
    ("path", "more", "says"),
    [
        ("/file", {"sha256": "0" * 64}, "0{64}.* got one with " + SHA256),
        ("/cut", {}, f"expected {len(CONTENT)} bytes, got 1000: the transfer was cut"),
        ("/gone", {}, r"got the answer 404 Not Found\. .*put it at .*out/file"),
        ("/page", {}, "a web page in its place"),
        ("/file", {"unpack": True}, "expected a zip or tar archive"),
    ],
)
def test_what_cannot_be_right_is_refused_and_leaves_nothing(home, tmp_path, path, more, says):
    with pytest.raises(InputError, match=says):
        fetch(download(f"{home}{path}", **more), tmp_path / "out" / "file")
    assert nothing_left(tmp_path / "out")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/file", "nonsense"])
def test_without_a_network_one_error_says_where_to_put_the_file(tmp_path, url):
    sha256 = "a" * 64
    with pytest.raises(InputError, match=f"download it .SHA-256 {sha256}., then put it at .*out/file") as caught:
        fetch(download(url, sha256=sha256), tmp_path / "out" / "file")
    assert url in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(InputError, match="then unpack it into the folder"):
        fetch(download(url, unpack=True), tmp_path / "out" / "file")
    assert nothing_left(tmp_path / "out")


# --- archives -----------------------------------------------------------------------------------

NOISE = b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(4000))
FILES = {"top.txt": b"top", "folder/inner.txt": b"inner" * 1000, "folder/deep/empty.txt": b""}


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(files: dict[str, bytes], packing: str = "gz", **special: bytes) -> bytes:
    """A tar of files, and of members of other types by name. Links lead to /etc/passwd."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{packing}") as archive:  # type: ignore[call-overload]
        for name, kind in {"folder": tarfile.DIRTYPE, **special}.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def unpacked(tmp_path: Path) -> Callable[[bytes], Path]:
    """Fetch an archive with these bytes; returns the folder."""

    def run(content: bytes) -> Path:
        (tmp_path / "home").write_bytes(content)
        fetch(download((tmp_path / "home").as_uri(), unpack=True), tmp_path / "out" / "data")
        return tmp_path / "out" / "data"

    return run


@pytest.mark.parametrize("pack", [zipped, tarred, lambda files: tarred(files, "xz")])
def test_an_archive_is_unpacked_as_it_is(unpacked, pack):
    folder = unpacked(pack(FILES))
    found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert found == FILES
    assert {file.name for file in folder.parent.iterdir()} == {"data", "data.source.json"}


def test_a_zip_writes_inside_its_folder_only(unpacked, tmp_path):
    """zipfile drops what leads out of it."""
    folder = unpacked(zipped({"folder/../../outside": b"x", "/absolute": b"y"}))
    assert sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*")) == [
        "absolute", "folder", "folder/outside"
    ]  # fmt: skip
    assert not Path("/absolute").exists()
    assert {file.name for file in tmp_path.iterdir()} == {"home", "out"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (tarred({**FILES, "../outside": b"x"}), r"lead out of it: \.\./outside"),
        (tarred({**FILES, "/absolute": b"x"}), "lead out of it: /absolute"),
        (tarred(FILES, link=tarfile.SYMTYPE), "lead out of it: link"),
        (tarred(FILES, hard=tarfile.LNKTYPE), "lead out of it: hard"),
        (tarred(FILES, device=tarfile.CHRTYPE), "lead out of it: device"),
        (zipped(FILES)[:-40], "a damaged or other file"),
        (tarred({**FILES, "noise": NOISE})[:-8] + bytes(8), "a damaged or other file"),
        (tarred({**FILES, "noise": NOISE})[:40_000], "a damaged or other file"),
        (gzip.compress(b"no tar", mtime=0), "a damaged or other file"),
        (b"", "a damaged or other file"),
    ],
)
def test_a_bad_archive_is_refused_before_anything_is_outside_and_leaves_nothing(unpacked, tmp_path, content, says):
    with pytest.raises(InputError, match=says):
        unpacked(content)
    assert nothing_left(tmp_path / "out")
    assert not Path("/absolute").exists()
    assert {file.name for file in tmp_path.iterdir()} <= {"home", "out"}


@pytest.mark.parametrize("unpack", [False, True])
def test_a_full_disk_is_not_called_a_missing_network_or_a_damaged_archive(tmp_path, monkeypatch, unpack):
    copy, calls = shutil.copyfileobj, []

    def full(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) > unpack:  # the archive still finds room, its first file does not
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(*arguments)

    (tmp_path / "home").write_bytes(zipped(FILES))
    monkeypatch.setattr("plant.corpus.fetch.shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        fetch(download((tmp_path / "home").as_uri(), unpack=unpack), tmp_path / "out" / "file")
    assert nothing_left(tmp_path / "out")
