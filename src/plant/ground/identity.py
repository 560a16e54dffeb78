"""Name and digest of a split and of a label set. Scores on different ones are never compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from plant.ground.files import read_json


def digest(names: Iterable[str]) -> str:
    """SHA-256 of a sequence of names (labels, document ids), in hexadecimal. The order matters.

    >>> digest(["a", "b"]) == digest(["ab"]), digest(["a", "b"]) == digest(["b", "a"])
    (False, False)
    """
    state = hashlib.sha256()
    for name in names:
        coded = name.encode("utf-8")
        state.update(f"{len(coded)}:".encode() + coded)  # the length separates the names
    return state.hexdigest()


def read_names(corpus: Path) -> tuple[str | None, str | None]:
    """Names of the split and of the label set of a corpus. None: the corpus gives no name."""
    path = Path(corpus) / "statistics.json"
    statistics = read_json(path) if path.is_file() else {}
    return statistics.get("split", {}).get("name"), statistics.get("label_space", {}).get("name")
