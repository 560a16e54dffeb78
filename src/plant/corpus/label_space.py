"""Which labels are kept: before the split by counts of all documents, after it by counts of train and test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from plant.corpus.codes import check_label_list
from plant.corpus.tables import read_list
from plant.ground.errors import InputError
from plant.ground.settings import LabelFilter


def restrict(labels: pl.Series, space: LabelFilter, counts: Counter[str]) -> pl.Series:
    """The restrictions that need no split: `keep`, then `min_count`, then `top`, each on the labels that are left.

    Counts are over all documents. Of equally frequent labels, `top` keeps those that come first in the alphabet.

    Args:
        labels: sorted lists of different labels. Dropped labels are left out of them; lists may become empty.
        space: the config section.
        counts: `labels_dropped` and `labels_asked_for_but_absent` are set.
    """
    if space.keep is None and space.min_count == 1 and space.top is None:
        return labels
    every = labels.explode().drop_nulls().alias("label").value_counts(name="documents")
    kept = every
    if space.keep is not None:
        kept = kept.filter(pl.col("label").is_in(_wanted(Path(space.keep), every["label"], counts)))
    kept = kept.filter(pl.col("documents") >= space.min_count)
    if space.top is not None:
        kept = kept.sort("documents", "label", descending=[True, False]).head(space.top)
    counts["labels_dropped"] = len(every) - len(kept)
    return _only(labels, kept["label"])


def restrict_after_split(frame: pl.DataFrame, space: LabelFilter, counts: Counter[str]) -> pl.Series:
    """The restrictions by the numbers of training and test documents of a label.

    A label is kept if `train_at_least` <= train documents <= `train_at_most` and `test_at_least` <= test documents
    (MIMIC-III-few: 1, 5 and 1; choice C20).

    Args:
        frame: columns `labels` and `split`, before the training split is cut.
        space: the config section.
        counts: the number of dropped labels is added to `labels_dropped`.
    """
    if not (space.train_at_least or space.train_at_most or space.test_at_least):
        return frame["labels"]
    every = frame.select(pl.col("labels").alias("label"), "split").explode("label").drop_nulls("label")
    every = every.group_by("label").agg(
        train=(pl.col("split") == "train").sum(), test=(pl.col("split") == "test").sum()
    )
    at_most = space.train_at_most if space.train_at_most is not None else len(frame)
    kept = every.filter(
        pl.col("train").is_between(space.train_at_least, at_most), pl.col("test") >= space.test_at_least
    )
    counts["labels_dropped"] += len(every) - len(kept)
    return _only(frame["labels"], kept["label"])


def _only(labels: pl.Series, kept: pl.Series) -> pl.Series:
    """The lists with only the kept labels, in the same order."""
    one = pl.element()
    # a filter works list by list, which takes thirty times as long
    return labels.list.eval(pl.when(one.is_in(kept.implode())).then(one)).list.drop_nulls()


def _wanted(path: Path, present: pl.Series, counts: Counter[str]) -> list[str]:
    """The labels of the file `keep`. Raises InputError if none of them occurs."""
    wanted = set(read_list(path))
    check_label_list(wanted, present, where=str(path))
    absent = wanted.difference(present)
    counts["labels_asked_for_but_absent"] = len(absent)
    if len(absent) == len(wanted):
        raise InputError(
            str(path), expected="labels of this corpus, one a line", got=f"{len(wanted)} labels, none of which occurs",
            fix="Check their spelling (dots, case).",
        )  # fmt: skip
    return sorted(wanted)
