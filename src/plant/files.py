"""Writing so that nobody ever reads half a file."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from plant.errors import InputError


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a path beside `target`; on success it takes the target's name in one step.

    A file or a folder may be written to the yielded path. On any exception what was written is
    removed and `target` is left as it was.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        if partial.is_dir() and target.exists():
            shutil.rmtree(target)
        partial.replace(target)
    finally:
        if partial.is_dir():
            shutil.rmtree(partial)
        else:
            partial.unlink(missing_ok=True)


def write_json(target: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically. NaN and infinity are refused by `json`."""
    with atomic_path(target) as partial:
        partial.write_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def read_json(source: Path) -> Any:
    return json.loads(require_file(source).read_text(encoding="utf-8"))


def write_arrays(target: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays as one safetensors file, atomically."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with atomic_path(target) as partial:
        save_file(contiguous, partial, metadata=dict(metadata or {}))
        usual_mode(partial)


def usual_mode(path: Path) -> None:
    """Give a file the mode that `open` would have given it: safetensors makes every file its owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def read_arrays(source: Path) -> dict[str, np.ndarray]:
    """Read every array of a safetensors file; the pages are mapped, not copied, where they can be.

    Raises:
        InputError: the file is missing or is not a safetensors file.
    """
    path = require_file(source)
    try:
        with safe_open(path, framework="numpy") as handle:
            return {name: handle.get_tensor(name) for name in handle.keys()}
    except SafetensorError as error:
        raise InputError(
            str(path),
            expected="a safetensors file",
            got=f"an unreadable one ({error})",
            fix="Delete it and run again: the rule that makes it will write it anew.",
        ) from error


def write_table(target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows (all with the same keys) as parquet, atomically."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist([dict(row) for row in rows])
    with atomic_path(target) as partial:
        parquet.write_table(table, partial)


def write_with(target: Path, write: Callable[[Path], object]) -> None:
    """Call `write(path)` so that `target` appears only when it has returned."""
    with atomic_path(target) as partial:
        write(partial)


def require_file(source: Path) -> Path:
    """Return `source` as a Path, or say that it is missing."""
    path = Path(source)
    if not path.is_file():
        raise InputError(
            str(path),
            expected="a file",
            got="a folder" if path.is_dir() else "nothing there",
            fix="Check the path in the config.",
        )
    return path
