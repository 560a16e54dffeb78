"""Arrays that grow piece by piece into one safetensors file, so that memory holds a piece only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from plant.ground.files import DTYPES, atomic_path

_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


@contextmanager
def growing_arrays(
    target: Path, dtypes: Mapping[str, type], metadata: Mapping[str, str]
) -> Iterator[Callable[[str, np.ndarray], None]]:
    """Yield `append(name, values)`; when the block ends without an error the file appears, whole.

    Args:
        target: file to write, the same as `files.write_arrays` would write of the whole arrays. Until then the pieces
            lie in unnamed files in its folder.
        dtypes: of each array, one of `files.DTYPES`. All arrays have one dimension.
        metadata: strings for the file's header.
    """
    with atomic_path(Path(target)) as partial, ExitStack() as stack:
        parts = {name: stack.enter_context(TemporaryFile(dir=partial.parent)) for name in dtypes}

        def append(name: str, values: np.ndarray) -> None:
            parts[name].write(np.ascontiguousarray(values, dtype=dtypes[name]).data)

        yield append
        header: dict[str, object] = {"__metadata__": dict(metadata)}
        end = 0
        ordered = sorted(dtypes, key=lambda name: (-np.dtype(dtypes[name]).itemsize, name))  # keeps all aligned
        for name in ordered:
            dtype, begin, end = np.dtype(dtypes[name]), end, end + parts[name].tell()
            shape = [(end - begin) // dtype.itemsize]
            header[name] = {"dtype": _NAMES[dtype], "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with partial.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in ordered:
                parts[name].seek(0)
                shutil.copyfileobj(parts[name], file, 2**20)
