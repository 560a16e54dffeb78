"""What archives of published corpora hold beside the corpus."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_litter(name: str) -> bool:
    """Whether a member is what some systems leave in archives, under the names of the real files.

    >>> is_litter("__MACOSX/dataset/train/._32000D0001.json"), is_litter("dataset/train/32000D0001.json")
    (True, False)
    """
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or parts[-1].startswith("._")
