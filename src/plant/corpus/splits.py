"""Who is in train, val and test: published lists, or a seeded split that keeps patients together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from plant.corpus.documents import SPLITS, some
from plant.corpus.stratification import stratify
from plant.corpus.tables import read_list, text_columns
from plant.ground.errors import InputError, nearest
from plant.ground.settings import Split

NAMES = {"dev": "val", "valid": "val", "validation": "val", "trn": "train", "training": "train", "tst": "test"}


def canonical_name(name: str, *, where: str) -> str:
    """One of train, val, test for the names in use.

    >>> canonical_name("dev", where="example")
    'val'
    """
    name = name.strip().lower()
    name = NAMES.get(name, name)
    if name not in SPLITS:
        raise InputError(where, expected="split names train, val and test", got="others", fix=nearest(name, SPLITS))
    return name


def published(split: Split) -> dict[str, str] | None:
    """The published assignment, document id -> split, or None where the config names none.

    Raises:
        InputError: a file is missing, an id is listed twice (so also: in two splits), a column is missing.
    """
    if split.ids is None and split.table is None:
        return None
    if split.ids is not None:
        pairs = [(one, str(name)) for name, path in split.ids.items() for one in _read_ids(Path(path))]
    else:
        table = text_columns(Path(_where(split)), ("_id", "split"))
        pairs = [(one, canonical_name(name, where=_where(split))) for one, name in table.iter_rows()]
    again = [one for one, times in Counter(_bare(one) for one, _ in pairs).items() if times > 1]
    if again:
        got = f"ids listed again: {some(again)}"
        raise InputError(_where(split), expected="every id once, in one split", got=got, fix="Remove them.")
    return {_bare(one): name for one, name in pairs}


def _where(split: Split) -> str:
    """The files of the published lists."""
    return split.table or ", ".join((split.ids or {}).values())


def _bare(one: str) -> str:
    """An id without the `.0` that a data frame with missing values leaves."""
    return one.removesuffix(".0")


def _read_ids(path: Path) -> list[str]:
    lines = read_list(path)
    several = sum(len(line.split()) > 1 for line in lines)
    if not lines or several:  # a file of texts must not come to be quoted as ids
        got = f"several words in {several} of {len(lines)} lines" if lines else "an empty file"
        raise InputError(str(path), expected="one document id a line", got=got, fix="Check the path.")
    return [line.strip('"') for line in lines]


def assign(frame: pl.DataFrame, split: Split, *, dropped: Sequence[str] = ()) -> pl.DataFrame:
    """Fill the column `split` of the canonical frame.

    In this order: the published lists, where the config names them (documents that they do not name are left out,
    `split` null); else the source's own split; else the fractions. A split that lists or source do not have is
    held out of train by the fractions, renormalised over train and what is missing.

    Args:
        frame: canonical frame, document ids unique.
        split: the config section.
        dropped: ids that the source holds but that are no documents; lists may name them.

    Raises:
        InputError: lists name ids that the source does not hold, or a group is in two splits.
    """
    lists = published(split)
    if lists is not None:
        _check_known(lists, frame["document_id"], dropped, split)
        listed = [lists.get(one) for one in frame["document_id"]]
        frame = frame.with_columns(split=pl.Series(listed, dtype=pl.String))
    elif frame["split"].null_count() == len(frame):
        frame = frame.with_columns(split=pl.lit("train"))
    if "train" not in frame["split"]:
        got = f"only {', '.join(frame['split'].drop_nulls().unique())}"
        raise InputError("split", expected="a training split", got=got, fix="Name training documents.")
    frame = _hold_out(frame, split)
    check_groups(frame)
    return frame


def _check_known(lists: dict[str, str], ids: pl.Series, dropped: Sequence[str], split: Split) -> None:
    if unknown := sorted(set(lists).difference(ids).difference(dropped)):
        raise InputError(
            _where(split), expected="ids of documents that the source holds",
            got=f"{len(unknown)} unknown of {len(lists)} ids: {some(unknown)}",
            fix="Check that lists and source belong together (benchmark, version, type of id).",
        )  # fmt: skip


def _hold_out(frame: pl.DataFrame, split: Split) -> pl.DataFrame:
    """Deal the training documents to train and to the splits that are missing."""
    present = set(frame["split"].drop_nulls())
    fractions = {"train": split.train, "val": split.val, "test": split.test}
    targets = [name for name in SPLITS if name == "train" or name not in present]
    if len(targets) == 1:
        return frame
    rows = frame.with_row_index("row").filter(pl.col("split") == "train")
    shares = np.array([fractions[name] for name in targets])
    if not shares.sum():
        fix = "Give the missing splits a fraction, or a file."
        raise InputError("split", expected=f"fractions for {', '.join(targets)}", got="all of them 0", fix=fix)
    dealt = stratify(rows["group_id"], rows["labels"], shares=shares / shares.sum(), seed=split.seed)
    column = np.array(frame["split"].to_list(), dtype=object)
    column[rows["row"].to_numpy()] = np.array(targets, dtype=object)[dealt]
    return frame.with_columns(split=pl.Series(column.tolist(), dtype=pl.String))


def check_groups(frame: pl.DataFrame) -> None:
    """Raise where documents of one group (a patient) are in more than one split."""
    spread = frame.drop_nulls("split").group_by("group_id").agg(pl.col("split").n_unique())
    torn = spread.filter(pl.col("split") > 1)["group_id"].sort()
    if len(torn):
        raise InputError(
            "split", expected="all documents of a group (a patient) in one split",
            got=f"{len(torn)} group(s) in more than one: {some(torn)}",
            fix="Correct the lists, or let the pipeline split by group (no `ids`, no `table`).",
        )  # fmt: skip
