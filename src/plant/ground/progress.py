"""How far a long loop is: a bar on a terminal, a plain line a minute in the log of a job."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
LINE = "{desc}: {n_fmt} of {total_fmt}, {elapsed} passed, {remaining} left, {rate_fmt}"


class _Lines(io.StringIO):
    """Standard error, with a line for each state of the bar: a log keeps what a terminal would overwrite."""

    def write(self, text: str) -> int:
        if line := text.strip():
            sys.stderr.write(f"{line}\n")
        return len(text)


def progress(items: Iterable[Item], name: str, *, total: int, initial: int = 0, seconds: float = 60) -> Iterator[Item]:
    """The items. Says how far it is, if the loop takes longer than `seconds`.

    Args:
        items: what the loop is over.
        name: of the loop.
        total: number of steps of the whole loop.
        initial: steps that were done before.
        seconds: between two lines of a log; a bar on a terminal moves ten times as often.
    """
    if sys.stderr.isatty():
        every, look = seconds / 10, dict[str, Any]()
    else:
        every, look = seconds, {"file": _Lines(), "bar_format": LINE, "maxinterval": max(seconds, 10)}
    return iter(tqdm(items, name, total, leave=False, initial=initial, delay=every, mininterval=every, **look))
