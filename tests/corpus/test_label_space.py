"""Restrictions of the labels: each against a plain count, and the order in which they are applied."""

from __future__ import annotations

from collections import Counter

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plant.corpus.label_space import restrict, restrict_after_split
from plant.ground.settings import LabelFilter

ROWS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=4).map(sorted), min_size=1, max_size=20)
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def series(rows: list[list[str]]) -> pl.Series:
    return pl.Series(rows, dtype=pl.List(pl.String))


def without(rows: list[list[str]], kept: set[str]) -> list[list[str]]:
    return [[label for label in own if label in kept] for own in rows]


@QUIET
@given(ROWS, st.integers(1, 4), st.integers(1, 5))
def test_min_count_comes_before_top_and_ties_go_by_name(rows, min_count, top):
    counts = Counter(label for own in rows for label in own)
    frequent = sorted((label for label in counts if counts[label] >= min_count), key=lambda j: (-counts[j], j))
    told: Counter[str] = Counter()
    got = restrict(series(rows), LabelFilter(min_count=min_count, top=top), told)
    assert got.to_list() == without(rows, set(frequent[:top]))
    assert told["labels_dropped"] == len(counts) - len(frequent[:top])


def test_keep_comes_before_the_counts(tmp_path):
    """`top` counts only what `keep` left: without it, `b` would be the most frequent label."""
    (tmp_path / "keep").write_text("a\n c \n\nnever\n")
    rows = [["a", "b"], ["a", "b"], ["b", "c"]]
    told: Counter[str] = Counter()
    assert restrict(series(rows), LabelFilter(keep=str(tmp_path / "keep"), top=1), told).to_list() == [["a"], ["a"], []]
    assert told == {"labels_asked_for_but_absent": 1, "labels_dropped": 2}


@QUIET
@given(
    st.lists(st.tuples(ROWS.map(lambda rows: rows[0]), st.sampled_from(["train", "val", "test"])), min_size=1),
    st.integers(0, 2),
    st.none() | st.integers(1, 4),
    st.integers(0, 2),
)
def test_restrictions_on_the_split_are_those_of_a_plain_count(documents, at_least, at_most, test_at_least):
    rows, split = [own for own, _ in documents], [name for _, name in documents]
    train = Counter(label for own, name in documents if name == "train" for label in own)
    test = Counter(label for own, name in documents if name == "test" for label in own)
    every = {label for own in rows for label in own}
    limit = len(documents) if at_most is None else at_most
    kept = {j for j in every if at_least <= train[j] <= limit and test[j] >= test_at_least}
    frame = pl.DataFrame({"labels": series(rows), "split": split})
    space = LabelFilter(train_at_least=at_least, train_at_most=at_most, test_at_least=test_at_least)
    assert restrict_after_split(frame, space, Counter()).to_list() == without(rows, kept)
