"""Which documents are in train, val and test: published lists, or a random split that keeps patients together."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from plant.corpus.documents import SPLITS, some
from plant.corpus.stratification import stratify
from plant.corpus.tables import read_list, text_columns
from plant.ground.errors import InputError, nearest
from plant.ground.settings import Split

log = logging.getLogger("plant")

NAMES = {
    "dev": "val", "development": "val", "valid": "val", "validation": "val", "trn": "train", "training": "train",
    "tst": "test",
}  # fmt: skip
"""Other names in use."""


def canonical_name(name: str, *, where: str) -> str:
    """train, val or test for the names in use, such as dev."""
    name = name.strip().lower()
    name = NAMES.get(name, name)
    if name not in SPLITS:
        raise InputError(
            where, expected=f"split names train, val and test (or {', '.join(NAMES)})",
            got="another name" if name else "an empty cell", fix=f"{nearest(name, SPLITS)} Rename or fill them.",
        )  # fmt: skip
    return name


def published(split: Split) -> dict[str, str] | None:
    """The published lists as document id -> split. None: the config names no list.

    A whole number loses the ending `.0` that a data frame with missing values gives it.

    Raises:
        InputError: a file or a column is missing, or an id is listed twice (in one split or in two).
    """
    if split.ids is None and split.table is None:
        return None
    where = _where(split)
    if split.table is not None:
        rows = text_columns(Path(split.table), ("_id", "split")).iter_rows()
        pairs = [(one, canonical_name(name, where=where)) for one, name in rows]
    else:
        pairs = [(one, str(name)) for name, path in (split.ids or {}).items() for one in _read_ids(Path(path))]
    table = pl.DataFrame(pairs, {"id": pl.String, "split": pl.String}, orient="row")
    table = table.with_columns(_whole(table["id"]).alias("id"))
    again = table.filter(pl.col("id").is_duplicated())["id"].unique(maintain_order=True)
    if len(again):
        got = f"ids listed again: {some(again)}"
        raise InputError(where, expected="every id once, in one split", got=got, fix="Remove them.")
    return dict(table.iter_rows())


def _whole(ids: pl.Series) -> pl.Series:
    """Ids without the ending `.0` of whole numbers."""
    return ids.str.replace(r"^(\d+)\.0$", "$1")


def _where(split: Split) -> str:
    """The files of the published lists."""
    return split.table or ", ".join((split.ids or {}).values())


def _read_ids(path: Path) -> list[str]:
    lines = read_list(path)
    several = sum(len(line.split()) > 1 for line in lines)
    if not lines or several:  # texts in place of ids must not be shown in an error
        got = f"several words in {several} of {len(lines)} lines" if lines else "an empty file"
        raise InputError(str(path), expected="one document id a line", got=got, fix="Check the path.")
    return [line.strip('"') for line in lines]


def assign(frame: pl.DataFrame, split: Split, *, dropped: Sequence[str] = ()) -> pl.DataFrame:
    """Fill the column `split`.

    1. If the config names published lists, they decide. Documents that are not listed get null. A whole number is the
       same with and without the ending `.0`.
    2. Else the split of the source decides, if it has one.
    3. A split without documents so far is held out of train. The fractions of the config are scaled to train and the
       missing splits. Without lists and without a split of the source, this divides all documents.

    Lists may name the ids of the source in `dropped`, which are not documents.

    Raises:
        InputError: lists name ids that the source does not have, all documents of a listed split were dropped, or a
            group is in two splits.
    """
    lists = published(split)
    if lists is not None:
        ids, others = _whole(frame["document_id"]), _whole(pl.Series(dropped, dtype=pl.String))
        if unknown := sorted(set(lists).difference(ids, others)):
            raise InputError(
                _where(split), expected="ids of documents that the source holds",
                got=f"{len(unknown)} unknown of {len(lists)} ids: {some(unknown)}",
                fix="Check that lists and source belong together (benchmark, version, type of id).",
            )  # fmt: skip
        listed = [lists.get(one) for one in ids]
        frame = frame.with_columns(split=pl.Series(listed, dtype=pl.String))
        check_left(lists.values(), frame)
    elif frame["split"].null_count() == len(frame):
        frame = frame.with_columns(split=pl.lit("train"))
    if "train" not in frame["split"]:
        got = f"only {', '.join(frame['split'].drop_nulls().unique())}"
        raise InputError("split", expected="a training split", got=got, fix="Name training documents.")
    frame = _hold_out(frame, split)
    _check_groups(frame)
    return frame


def check_left(named: Iterable[str | None], frame: pl.DataFrame) -> None:
    """Raise an InputError if no document is left of a split that was named: train would be divided to fill it."""
    if lost := [name for name in SPLITS if name in set(named).difference(frame["split"])]:
        raise InputError(
            "split", expected=f"documents with text and labels in {', '.join(lost)}",
            got="none: all that are named for it were dropped",
            fix="Give them labels, or name no documents for it; a part of train takes its place then.",
        )  # fmt: skip


def _hold_out(frame: pl.DataFrame, split: Split) -> pl.DataFrame:
    """Divide the training documents into train and the splits that are missing."""
    targets = [name for name in SPLITS if name == "train" or name not in frame["split"]]
    if len(targets) == 1:
        return frame
    shares = np.array([getattr(split, name) for name in targets])
    if not shares.sum():
        fix = "Give the missing splits a fraction, or a file."
        raise InputError("split", expected=f"fractions for {', '.join(targets)}", got="all of them 0", fix=fix)
    rows = frame.filter(pl.col("split") == "train")
    dealt = stratify(rows["group_id"], rows["labels"], shares=shares / shares.sum(), seed=split.seed)
    if targets == ["train", "test"]:
        log.warning(
            "warning: the split names validation documents and no test documents; %d of its %d training documents "
            "become the test split", (dealt == 1).sum(), len(rows),
        )  # fmt: skip
    column = np.array(frame["split"].to_list(), dtype=object)
    column[column == "train"] = np.array(targets, dtype=object)[dealt]
    return frame.with_columns(split=pl.Series(column.tolist(), dtype=pl.String))


def _check_groups(frame: pl.DataFrame) -> None:
    """Raise an InputError if documents of one group (a patient) are in several splits."""
    splits = frame.drop_nulls("split").group_by("group_id").agg(pl.col("split").n_unique())
    torn = splits.filter(pl.col("split") > 1)["group_id"].sort()
    if len(torn):
        raise InputError(
            "split", expected="all documents of a group (a patient) in one split",
            got=f"{len(torn)} group(s) in more than one: {some(torn)}",
            fix="Correct the lists or the column of splits, or name none of them: the pipeline splits by group.",
        )  # fmt: skip
