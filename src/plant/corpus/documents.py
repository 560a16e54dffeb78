"""What every source hands over: one canonical frame, whatever the raw format was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

SPLITS = ("train", "val", "test")

SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "group_id": pl.String(),
    "text": pl.String(),
    "labels": pl.List(pl.String()),
    "split": pl.String(),
}


@dataclass(frozen=True)
class Documents:
    """The documents of one source, before cleaning and splitting.

    Attributes:
        frame: columns of `SCHEMA`, one row a document, in the order of the source. `group_id` is the patient (or
            the document itself where the source has no groups); `split` is train, val, test, or null where the
            source does not say.
        descriptions: `label` -> plain-text description, for some or all labels.
        dropped: ids that the source holds but that cannot be documents, by reason. Known to the split lists, so
            that an id without codes is not taken for an unknown one.
        notes: further counts for statistics.json.
    """

    frame: pl.DataFrame
    descriptions: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)


def canonical(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring a frame to the columns, order and types of `SCHEMA`; a missing `split` becomes null."""
    if "split" not in frame.columns:
        frame = frame.with_columns(split=pl.lit(None, dtype=pl.String))
    return frame.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


def some(ids: list[str] | pl.Series, *, most: int = 5) -> str:
    """A few ids for an error message.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    ids = [str(one) for one in ids]
    shown = ", ".join(ids[:most])
    return shown if len(ids) <= most else f"{shown} and {len(ids) - most} more"
