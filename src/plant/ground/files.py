"""Read and write files. A file appears whole under its name, or not at all."""

import errno
import glob
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from plant.ground.errors import InputError, printable

STALE_SECONDS = 3600
NO_ROOM = {
    errno.ENOSPC: "Free some space",
    errno.EDQUOT: "Free some of the quota",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f)",
    errno.EROFS: "Make the file system writable, or name another `results`",
    errno.EACCES: "Make the folder writable, or name another `results`",
}
DAMAGED = "Delete it and run again: the rule that makes it will write it anew."
_WRITTEN: dict[Path, None] = {}


def written() -> list[Path]:
    """Files and folders that this process wrote and that still exist, in order: the outputs of a job."""
    return [path for path in _WRITTEN if path.exists()]


def record(target: Path) -> None:
    """Note that this process wrote a file or folder."""
    _WRITTEN[Path(target)] = None


MAPPED_FROM = 2**20
"""Arrays of at least this number of bytes are mapped, not copied."""
DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "U8": np.uint8}


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on success it is renamed to `target` in one step.

    A file or a folder may be written there. After an exception it is removed, and `target` is unchanged. What a killed
    process left is removed by the next process that writes the same target, if it is older than an hour.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
        with suppress(FileNotFoundError):  # another process was faster
            if time.time() - stale.stat().st_mtime > STALE_SECONDS:
                remove(stale)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        if partial.is_dir():
            remove(target)
        sync(partial)
        partial.replace(target)
        sync(target.parent, deep=False)
        record(target)
    except Exception as error:
        raise_room_error(error, target)
        raise
    finally:
        remove(partial)


def sync(path: Path, *, deep: bool = True) -> None:
    """Wait until a file, or a folder and (`deep`) all its contents, is on the disk."""
    for one in (path, *(path.rglob("*") if deep and path.is_dir() else ())):
        handle = os.open(one, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def raise_room_error(error: Exception, target: Path) -> None:
    """Raise an OSError if the error of a library means that a disk is full or read-only; else return."""
    for number in NO_ROOM:  # polars, safetensors and tokenizers have errors of their own
        if f"(os error {number})" in str(error):
            raise OSError(number, os.strerror(number), str(target)) from error


def explain(error: OSError, outputs: Sequence[Path]) -> InputError | None:
    """An error that says what to do about an error of the operating system. None: there is no known answer.

    The error may name a temporary file; the `outputs` of the job are those that the user knows.
    """
    if isinstance(error, FileNotFoundError):
        path = re.search(r"'(.+?)'|\(os error 2\): (.+)", str(error))  # as Python and pyarrow say it, or as polars
        return InputError(
            path[path.lastindex or 0] if path else str(error), expected="a file", got="nothing there",
            fix="If it vanished while the job ran, run the same command again: what is missing is made anew.",
        )  # fmt: skip
    if error.errno not in NO_ROOM:
        return None
    place = Path(error.filename) if error.filename else None
    around = [place in (path, *path.parents) or place.is_relative_to(path.parent) for path in outputs] if place else []
    if error.errno == errno.EACCES and place and not any(around):  # it is no output, and not around, in or beside one
        return unreadable(place)
    return InputError(
        ", ".join(map(str, outputs)), expected="to write", got=repr(os.strerror(error.errno)),
        fix=f"{NO_ROOM[error.errno]}; nothing half-written was kept. Then run the same command again.",
    )  # fmt: skip


def unreadable(path: Path) -> InputError:
    """The error for a file that exists but may not be read."""
    return InputError(
        str(path), expected="to read it", got=repr(os.strerror(errno.EACCES)), fix="Change its owner or its mode."
    )


def is_private(path: Path) -> bool:
    """Whether only the owner has access. Outputs from such a file must be private too."""
    return Path(path).stat().st_mode & 0o077 == 0


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(target: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically. NaN and infinity are an error."""
    with atomic_path(target) as partial:
        partial.write_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def write_text(target: Path, text: str) -> None:
    """Write text as UTF-8, atomically. Control characters are escaped (see `printable`)."""
    with atomic_path(target) as partial:
        partial.write_text(printable(text), encoding="utf-8")


def read_json(source: Path) -> Any:
    """The content of a JSON file.

    Raises:
        InputError: it is missing or is no JSON.
    """
    try:
        return json.loads(require_file(source).read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON or of UTF-8
        raise InputError(
            str(source), expected="JSON", got=f"a damaged file ({type(error).__name__})",
            fix=DAMAGED,
        ) from error  # fmt: skip


def write_arrays(target: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays as one safetensors file, atomically."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with atomic_path(target) as partial:
        save_file(contiguous, partial, metadata=dict(metadata or {}))
        usual_mode(partial)


def usual_mode(path: Path) -> None:
    """Give a file the mode that `open` would give it. safetensors makes files that only their owner can read."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def read_arrays(source: Path) -> dict[str, np.ndarray]:
    """Read all arrays of a safetensors file. Large arrays are mapped, so that memory holds only the parts in use.

    A change to an array stays in this process.

    Raises:
        InputError: the file is missing or is not a safetensors file.
    """
    path = require_file(source)
    try:
        with safe_open(path, framework="numpy") as handle:
            mapped = _mapped_arrays(path)
            return {name: mapped[name] if name in mapped else handle.get_tensor(name) for name in handle.keys()}
    except SafetensorError as error:
        raise InputError(
            str(path), expected="a safetensors file", got=f"an unreadable one ({error})", fix=DAMAGED
        ) from error


def _mapped_arrays(path: Path) -> dict[str, np.ndarray]:
    """The large arrays of a safetensors file. Its format: size of the header, header (JSON), and the arrays."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    arrays = {}
    for name, entry in header.items():
        begin, end = entry.get("data_offsets", (0, 0))
        if end - begin >= MAPPED_FROM and entry["dtype"] in DTYPES:
            dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"])
            arrays[name] = np.asarray(np.memmap(path, dtype, mode="c", offset=8 + size + begin, shape=shape))
    return arrays


def write_table(target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows (all with the same keys) as parquet, atomically."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist([dict(row) for row in rows])
    with atomic_path(target) as partial:
        parquet.write_table(table, partial)


def write_with(target: Path, write: Callable[[Path], object]) -> None:
    """Call `write(path)`. `target` appears when the call has returned."""
    with atomic_path(target) as partial:
        write(partial)


def absence(path: Path) -> str:
    """For an error: why there is no file or folder at a path."""
    return "a link that leads nowhere, or in a circle" if path.is_symlink() else "nothing there"


def require_file(source: Path) -> Path:
    """Return `source` as a Path; raise an InputError if it is no file."""
    path = Path(source)
    if not path.is_file():
        raise InputError(
            str(path), expected="a file", got="a folder" if path.is_dir() else absence(path), fix="Check the path."
        )
    return path
