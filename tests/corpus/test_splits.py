"""Splits: relations that must hold, and a plain form of the stratification."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.corpus.splits import assign, published
from plant.corpus.stratification import stratify
from plant.ground import seeds
from plant.ground.settings import Split

CORPORA = st.lists(
    st.tuples(st.integers(0, 12), st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)), min_size=1, max_size=25
)
SHARES = st.sampled_from([(0.7, 0.1, 0.2), (0.5, 0.5), (0.8, 0.0, 0.2), (1.0,)])


def frame_of(documents: list[tuple[int, list[str]]], split: list[str | None] | None = None) -> pl.DataFrame:
    rows = {
        "document_id": [f"d{i}" for i in range(len(documents))],
        "group_id": [f"g{group:02d}" for group, _ in documents],
        "labels": [labels for _, labels in documents],
        "split": split or [None] * len(documents),
    }
    return pl.DataFrame(rows, schema_overrides={"labels": pl.List(pl.String), "split": pl.String})


def plain_stratify(frame: pl.DataFrame, shares: np.ndarray, seed: int) -> list[int]:
    """Algorithm 1 word for word: all counts anew before every label."""
    random = seeds.generator(seed, "corpus", "split")
    names = sorted(set(frame["group_id"]))
    order = random.permutation(len(names))
    ties = [int(j) for j in random.permutation(np.flatnonzero(shares))]
    rows = {unit: [r for r, g in enumerate(frame["group_id"]) if g == name] for unit, name in enumerate(names)}
    labels = frame["labels"].to_list()
    left = [int(unit) for unit in order]
    chosen: dict[int, int] = {}

    def documents(unit: int, label: str) -> int:
        return sum(label in labels[row] for row in rows[unit])

    def want(j: int, label: str | None) -> float:
        dealt = [unit for unit, where in chosen.items() if where == j]
        if label is None:
            return shares[j] * len(frame) - sum(len(rows[unit]) for unit in dealt)
        everywhere = sum(documents(unit, label) for unit in rows)
        return shares[j] * everywhere - sum(documents(unit, label) for unit in dealt)

    def deal(unit: int, label: str | None) -> None:
        hungry = [j for j in ties if want(j, None) > 1e-6] or ties
        chosen[unit] = max(hungry, key=lambda j: (round(want(j, label), 9), round(want(j, None), 9)))
        left.remove(unit)

    while counts := {
        label: n
        for label in sorted({x for own in labels for x in own})
        if (n := sum(documents(unit, label) for unit in left))
    }:
        label = min(counts, key=lambda one: (counts[one], one))
        for unit in [unit for unit in left if documents(unit, label)]:
            deal(unit, label)
    for unit in list(left):
        deal(unit, None)
    return [chosen[names.index(group)] for group in frame["group_id"]]


@settings(max_examples=60, deadline=None)
@given(CORPORA, st.integers(0, 3))
def test_the_heap_gives_the_same_as_the_algorithm_word_for_word(documents, seed):
    frame, shares = frame_of(documents), np.array([0.5, 0.25, 0.25])  # exact in binary: no tie hangs on rounding
    dealt = stratify(frame["group_id"], frame["labels"], shares=shares, seed=seed)
    assert dealt.tolist() == plain_stratify(frame, shares, seed)


@settings(deadline=None)
@given(CORPORA, SHARES, st.integers(0, 3), st.randoms(use_true_random=False))
def test_groups_stay_whole_shares_are_held_and_the_order_of_documents_plays_no_part(documents, shares, seed, random):
    frame, weights = frame_of(documents), np.array(shares)
    dealt = stratify(frame["group_id"], frame["labels"], shares=weights, seed=seed)
    assert frame.with_columns(d=dealt).group_by("group_id").agg(pl.col("d").n_unique())["d"].max() == 1
    assert set(dealt.tolist()) <= set(np.flatnonzero(weights).tolist())
    largest = frame["group_id"].value_counts()["count"].max()
    assert (np.bincount(dealt, minlength=len(shares)) < weights * len(frame) + largest).all()
    order = random.sample(range(len(frame)), len(frame))
    again = stratify(frame["group_id"][order], frame["labels"][order], shares=weights, seed=seed)
    assert again.tolist() == dealt[order].tolist()


def test_the_source_keeps_its_splits_and_a_missing_one_is_held_out_of_train_only():
    split = ["train", "val", "test", "train"]
    assert assign(frame_of([(i, ["a"]) for i in range(4)], split), Split())["split"].to_list() == split
    documents = [(i, ["a" if i % 2 else "b"]) for i in range(90)]
    frame = assign(frame_of(documents, ["train"] * 60 + ["test"] * 30), Split(train=0.6, val=0.3, test=0.1))
    assert frame["split"][60:].to_list() == ["test"] * 30
    assert (frame["split"] == "val").sum() == 20  # .3 / (.6 + .3) of 60


def test_test_documents_that_are_drawn_from_train_are_said_where_validation_is_given(caplog):
    documents = [(i, ["a" if i % 2 else "b"]) for i in range(90)]
    frame = assign(frame_of(documents, ["train"] * 60 + ["val"] * 30), Split(train=0.6, val=0.3, test=0.1))
    drawn = (frame["split"] == "test").sum()
    assert f"{drawn} of its 60 training documents become the test split" in caplog.text
    assert drawn in (8, 9) and frame["split"][60:].to_list() == ["val"] * 30  # .1 / (.6 + .1) of 60
    caplog.clear()
    assign(frame_of(documents, ["train"] * 60 + ["test"] * 30), Split())
    assert not caplog.text  # benchmarks publish no validation split (choice C18)


def test_documents_that_the_lists_do_not_name_are_left_out(tmp_path):
    for name, ids in {"train": "d0\nd1\n", "val": "d2\n", "test": "d3\nd9\n"}.items():
        (tmp_path / name).write_text(ids)
    split = Split(ids={name: str(tmp_path / name) for name in ("train", "val", "test")})
    frame = assign(frame_of([(i, ["a"]) for i in range(5)]), split, dropped=["d9"])
    assert frame["split"].to_list() == ["train", "train", "val", "test", None]


@pytest.mark.parametrize("ids", [[1, 2, 3], [1.0, 2.0, 3.0], ["v1.0", "v2.0", "3.10"]])
def test_ids_of_a_published_table_are_whole_numbers_or_texts_as_they_are(tmp_path, ids):
    path = tmp_path / "split.feather"
    pl.DataFrame({"_id": ids, "split": ["train", "dev", "test"]}).write_ipc(path)
    names = [one if isinstance(one, str) else str(int(one)) for one in ids]
    assert published(Split(table=str(path))) == dict(zip(names, ("train", "val", "test"), strict=True))


def test_the_shipped_lists_of_rare50_have_their_published_sizes():
    files = {"train": "train", "val": "dev", "test": "test"}
    folder = Path(__file__).parents[2] / "config" / "lists"
    paths = {name: str(folder / f"mimic3_rare50_{file}_hadm_ids.txt") for name, file in files.items()}
    found = list((published(Split(ids=paths)) or {}).values())
    assert [found.count(name) for name in files] == [249, 20, 142]
