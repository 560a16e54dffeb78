"""What a split and a label space are called, and what they are: scores on two of them are never compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plant.ground.files import read_json


@dataclass(frozen=True)
class Named:
    """A split or a label space.

    Attributes:
        name: of the published one, as the config says; None where it says nothing.
        digest: of its contents; two that hold the same have the same.
    """

    name: str | None
    digest: str


def digest(names: Iterable[str]) -> str:
    """SHA-256 of a sequence of names (labels, document ids), in hexadecimal. Their order counts.

    >>> digest(["a", "b"]) == digest(["ab"]), digest(["a", "b"]) == digest(["b", "a"])
    (False, False)
    """
    state = hashlib.sha256()
    for name in names:
        coded = name.encode("utf-8")
        state.update(f"{len(coded)}:".encode() + coded)  # the length keeps names apart, whatever they hold
    return state.hexdigest()


def read_names(corpus: Path) -> tuple[str | None, str | None]:
    """Names of the split and of the label space of a corpus; None each where it does not say."""
    path = Path(corpus) / "statistics.json"
    found = read_json(path) if path.is_file() else {}
    return found.get("split", {}).get("name"), found.get("label_space", {}).get("name")
