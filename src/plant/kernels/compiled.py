"""Loops that numba compiles at their first call; no compiler is needed on the user's machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit` that keeps the machine code on disk where it finds a place, and in memory only where it does not.

    numba looks for a place to write in this order: `NUMBA_CACHE_DIR`, `__pycache__` beside the source, the user's
    cache folder. In an installation that is read only (a container, say) and without a home it finds none, and its own
    `cache=True` fails at import; here each process then compiles anew, which takes a few seconds.

    What is kept is pickled, and reading a pickle runs what its writer put there. So a folder is used only if it belongs
    to the user and not everybody may write to it (the group is the user's affair).

    >>> @njit()
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            compiled = numba.njit(cache=True, **options)(function)
            folder = Path(compiled.stats.cache_path).stat()
            own = folder.st_uid == os.getuid() and not folder.st_mode & 0o002
        except RuntimeError:  # there is no place
            own = False
        return compiled if own else numba.njit(**options)(function)

    return decorate
