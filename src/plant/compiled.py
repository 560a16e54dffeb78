"""Loops that numba compiles at their first call; no compiler is needed on the user's machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit` that keeps the machine code on disk where it finds a place, and in memory only where it does not.

    numba looks for a place to write in this order: `NUMBA_CACHE_DIR`, `__pycache__` beside the source, the user's
    cache folder. In an installation that is read only (a container, say) and without a home it finds none, and its own
    `cache=True` fails at import; here each process then compiles anew, which takes a few seconds.

    Args:
        options: of `numba.njit`, such as fastmath or inline.

    >>> @njit()
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(**options)(function)

    return decorate
