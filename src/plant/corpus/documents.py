"""What every source returns: documents in one canonical frame. Also the rule for ids in messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

SPLITS = ("train", "val", "test")
ID = re.compile(r"[A-Za-z0-9._:-]{1,40}")

SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "group_id": pl.String(),
    "text": pl.String(),
    "labels": pl.List(pl.String()),
    "split": pl.String(),
}


@dataclass(frozen=True)
class SourceDocuments:
    """The documents of one source, before cleaning and splitting.

    Attributes:
        frame: columns of `SCHEMA`, one row for each document, in the order of the source. `group_id` is the patient, or
            the document itself if the source has no groups. `split` is train, val or test, or null if the source has no
            split.
        descriptions: label -> plain-text description, for some or all labels.
        dropped: reason -> ids of the source that are not documents. Published split lists may name them.
        notes: further counts for statistics.json.
    """

    frame: pl.DataFrame
    descriptions: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)


def canonical(data: pl.DataFrame | dict[str, list[Any]] | list[dict[str, Any]]) -> pl.DataFrame:
    """A frame with the columns, order and types of `SCHEMA`, from columns or rows. Without `split`, it is null."""
    if not isinstance(data, pl.DataFrame):
        data = pl.DataFrame(data, schema_overrides={"labels": SCHEMA["labels"]})
    if "split" not in data.columns:
        data = data.with_columns(split=pl.lit(None, dtype=pl.String))
    return data.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


def some(ids: Sequence[str] | pl.Series) -> str:
    """A few ids for an error message, or only their number. Every message that quotes data uses this function.

    A message may show ids, but never words of a text. If the config names the wrong column or file, there may be texts
    in place of ids. A value looks like an id if

    - it has at most 40 characters,
    - each is an ASCII letter, a digit, or one of `.` `_` `:` `-` (so there is no white space), and
    - it has at least as many digits as letters: "HIV", "cancer", "T2DM" and "COVID-19" are words.

    If one value does not look like an id, none is shown, because all come from the same column.

    >>> some(["100012", "S0004-0614200500", *"345678"])
    '100012, S0004-0614200500, 3, 4, 5 and 3 more'
    >>> some(["100012", "HIV"])
    '2 (not shown: not all of them look like ids)'
    """
    ids = [str(one) for one in ids]
    if not all(map(_is_id, ids)):
        return f"{len(ids)} (not shown: not all of them look like ids)"
    shown = ", ".join(ids[:5])
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more"


def _is_id(value: str) -> bool:
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    return ID.fullmatch(value) is not None and digits >= letters
