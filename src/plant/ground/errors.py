"""One kind of error for all faults that a user can correct."""

import difflib
import re
from collections.abc import Iterable
from functools import partial

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal: control characters except tab and newline, and changes of text direction."""


def printable(text: str) -> str:
    r"""A text with its control characters escaped.

    >>> printable("\x1b[2Jgone")
    '\\x1b[2Jgone'
    """
    return CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


class InputError(Exception):
    """Bad input. The message says where, what was expected, what came, and what to do next.

    Scripts print it without a traceback. It never contains document text.
    """

    def __init__(self, where: str, *, expected: str, got: str, fix: str) -> None:
        self.where, self.expected, self.got, self.fix = where, expected, got, fix
        super().__init__(printable(f"{where}: expected {expected}, got {got}. {fix}"))

    def __reduce__(self) -> tuple:
        return partial(InputError, self.where, expected=self.expected, got=self.got, fix=self.fix), ()


class Interrupted(Exception):
    """The process was asked to end and has saved its state. The message says how far it got."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that points from a misspelt name to the nearest known one.

    >>> nearest("sead", ["seed", "epochs"])
    "Did you mean 'seed'?"
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known: {', '.join(known) or 'none'}."
