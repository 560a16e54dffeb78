"""Write several files together, and files that only their owner can read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plant.ground.files import raise_room_error, record, sync


@contextmanager
def owner_only(private: bool) -> Iterator[None]:
    """If `private`: in this block, new files get mode 0600 and new folders 0700."""
    if not private:
        yield
        return
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def staged(out: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary folder inside `out`. Its files move to `out` when the block ends without an error.

    Other files in `out` stay. With `private`, only the owner can read the new files.
    """
    folder = Path(out) / f".partial.{os.getpid()}"
    with owner_only(private):
        try:
            for stale in Path(out).glob(".partial.*"):  # of a run that was killed
                shutil.rmtree(stale, ignore_errors=True)
            folder.mkdir(parents=True)
            yield folder
            sync(folder)
            for file in sorted(folder.iterdir()):
                file.replace(Path(out) / file.name)
                record(Path(out) / file.name)
            sync(Path(out), deep=False)
        except Exception as error:
            raise_room_error(error, Path(out))
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
