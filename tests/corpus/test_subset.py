"""Subsets: what they keep of the whole, what they restrict, and that they are as private as it is."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant.corpus import build
from plant.corpus.reader import load_labels
from plant.corpus.subset import build_subset
from plant.ground import settings
from plant.ground.errors import InputError
from plant.ground.identity import digest, read_names

SPLITS = ("train", "val", "test")
FEW = {"name": "few", "train_at_least": 1, "train_at_most": 5, "test_at_least": 1}


def subset_of(**more: object) -> settings.Subset:
    return settings.Subset.model_validate({"source": "subset", "of": "whole"} | more)


def corpus_of(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in (*SPLITS, "labels")}


def statistics(folder: Path) -> dict:
    return json.loads((folder / "statistics.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a Zipf law of labels, named."""
    from plant.corpus.synthetic import write_raw

    out = tmp_path_factory.mktemp("whole")
    dataset = settings.Mimic3(
        source="mimic3",
        generate=settings.Generate(admissions=300, codes=60, words=300, words_per_note=20, seed=3),
        credentialed=False,
        split=settings.Split(name="ours", train=0.6, val=0.15, test=0.25),
        labels=settings.LabelFilter(name="all codes"),
    )
    write_raw(dataset, out / "raw")
    build.build_corpus(dataset, out, raw=out / "raw")
    return out


@pytest.fixture(scope="module")
def before(whole: Path) -> dict[str, pl.DataFrame]:
    return corpus_of(whole)


@pytest.fixture
def made(whole: Path, tmp_path: Path) -> Callable[..., tuple[dict[str, pl.DataFrame], dict[str, Any]]]:
    """Build a subset of the whole: its tables and its statistics."""

    def build_part(**config: object) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
        build_subset(subset_of(**config), whole, tmp_path / "out")
        return corpus_of(tmp_path / "out"), statistics(tmp_path / "out")

    return build_part


def test_a_subset_without_restrictions_is_the_whole(whole, before, made):
    after, found = made()
    for name, table in after.items():
        assert table.equals(before[name]), name
    for key in ("split", "label_space", "splits", "all", "ceilings"):
        assert found[key] == statistics(whole)[key]


@pytest.mark.parametrize("unlabelled", ["drop", "keep_test"])
def test_few_in_both_readings(before, made, unlabelled):
    """Against a plain count over the whole: which labels, and which documents stay (choice C20)."""
    after, found = made(labels=FEW, unlabelled=unlabelled)
    counts = before["labels"].filter(pl.col("n_train").is_between(1, 5), pl.col("n_test") >= 1)
    few = set(counts["label"])
    assert set(after["labels"]["label"]) == few
    assert after["labels"].select("n_train", "n_test").equals(counts.select("n_train", "n_test"))
    for name in SPLITS:
        expected = {
            row["document_id"]: sorted(few.intersection(row["labels"])) for row in before[name].iter_rows(named=True)
        }
        keep = unlabelled == "keep_test" and name == "test"
        expected = {one: labels for one, labels in expected.items() if labels or keep}
        assert dict(after[name].select("document_id", "labels").iter_rows()) == expected
    assert len(after["test"]) == len(before["test"]) or unlabelled == "drop"
    assert (found["label_space"]["name"], found["split"]["name"]) == ("few", "ours")
    lengths = [len(own) for own in after["test"]["labels"] if len(own)]  # documents without labels do not count
    assert found["ceilings"]["p@3"] == pytest.approx(sum(min(n, 3) / 3 for n in lengths) / len(lengths))


def test_published_lists_and_a_label_list_make_top50(before, made, tmp_path):
    ids = {}
    for name in SPLITS:
        listed = before[name]["document_id"][::2]
        (tmp_path / f"{name}.csv").write_text("".join(f"{one}\n" for one in listed))
        ids[name] = str(tmp_path / f"{name}.csv")
    frequent = before["labels"].sort("n_train", descending=True)["label"][:8].to_list()
    (tmp_path / "labels.txt").write_text("\n".join(frequent))
    labels = {"name": "top8", "keep": str(tmp_path / "labels.txt")}
    after, found = made(split={"name": "top", "ids": ids}, labels=labels)
    assert sorted(after["labels"]["label"]) == sorted(frequent)
    for name in SPLITS:
        rows = before[name][::2].filter(pl.col("labels").list.set_intersection(frequent).list.len() > 0)
        assert after[name]["document_id"].equals(rows["document_id"])
    unlisted = sum(len(before[name]) // 2 for name in SPLITS)
    assert found["dropped_documents"]["not_in_the_split_lists"] == unlisted
    assert read_names(tmp_path / "out") == ("top", "top8")


def test_another_published_split_deals_the_documents_anew(before, made, tmp_path):
    """MIMIC-III-clean: another split of the same admissions, rare labels dropped by what all of them say."""
    table = pl.concat([before[name].select("document_id", "group_id") for name in SPLITS]).sort("group_id")
    number = pl.col("group_id").cast(int) % 3
    dealt = table.with_columns(split=number.replace_strict([0, 1, 2], ["test", "val", "train"]))
    dealt.select(pl.col("document_id").cast(pl.Int64).alias("_id"), "split").write_ipc(tmp_path / "split.feather")
    after, _ = made(split={"table": str(tmp_path / "split.feather")}, labels={"min_count": 10})
    totals = before["labels"].with_columns(total=pl.sum_horizontal("n_train", "n_val", "n_test"))
    assert after["labels"]["label"].equals(totals.filter(pl.col("total") >= 10)["label"])
    for name in SPLITS:
        assert set(after[name]["document_id"]) <= set(dealt.filter(split=name)["document_id"])
    assert read_names(tmp_path / "out") == (None, None)  # neither is the whole's any more


@pytest.mark.parametrize("draw", ["stratified", "random"])
def test_a_smaller_training_split_keeps_split_and_label_space(whole, before, made, tmp_path, draw):
    after, found = made(train_size=20, draw=draw, expected={"train": 20})
    assert len(after["train"]) == 20
    assert after["val"].equals(before["val"])
    assert after["test"].equals(before["test"])
    for column in ("label", "description"):
        assert after["labels"][column].equals(before["labels"][column])
    assert found["split"] == statistics(whole)["split"]
    assert found["label_space"] == statistics(whole)["label_space"]
    assert found["label_space"] == {"name": "all codes", "digest": digest(before["labels"]["label"])}
    assert found["expected"] == {"train": [20, 20]}
    assert load_labels(tmp_path / "out").counts[0].sum() == after["train"]["labels"].list.len().sum()


def test_a_smaller_validation_split_leaves_train_and_test_alone(whole, before, made):
    larger, _ = made(val_size=30, draw="stratified")
    cut, found = made(val_size=20)
    for name in ("train", "test"):
        assert cut[name].equals(before[name])
    small, large, every = (set(table["val"]["document_id"]) for table in (cut, larger, before))
    assert small < large < every
    assert len(small) == len(cut["val"]) == 20
    assert cut["labels"]["label"].equals(before["labels"]["label"])
    assert found["split"] == statistics(whole)["split"]  # what scores are compared by


def test_sizes_that_are_not_the_published_ones_are_said(before, made, caplog):
    with caplog.at_level(logging.WARNING, logger="plant"):
        _, found = made(expected={"train": 7, "test": 75, "labels": 60, "tokens": 5})
    train = len(before["train"])
    assert found["expected"] == {"train": [7, train], "test": [75, 75], "labels": [60, 60]}
    assert [record.getMessage() for record in caplog.records] == [
        f"warning: train documents: 7 published, {train} found"
    ]


@pytest.mark.parametrize(("credentialed", "mode"), [(False, 0o600), (True, 0o644), (False, 0o644)])
def test_a_subset_is_as_private_as_the_whole(whole, tmp_path, credentialed, mode):
    private = tmp_path / "private"
    private.mkdir()
    for file in whole.glob("*.*"):
        (private / file.name).write_bytes(file.read_bytes())
        (private / file.name).chmod(mode)
    build_subset(subset_of(credentialed=credentialed), private, tmp_path / "out")
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "out").iterdir()}
    assert (modes == {0o600}) == (credentialed or mode == 0o600)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"labels": {"train_at_least": 299}}, "none .* without_labels_of_the_label_space"),
        ({"labels": {"keep": "{folder}/absent.txt"}}, "expected a file"),
        ({"split": {"ids": {"train": "{folder}/unknown.txt"}}}, "1 unknown of 1 ids"),
        ({"train_size": 10_000}, "at most the .* training documents"),
        ({"val_size": 10_000}, "at most the .* validation documents"),
    ],
)
def test_what_cannot_be_made_is_one_error_and_leaves_nothing(made, tmp_path, config, says):
    (tmp_path / "unknown.txt").write_text("999\n")
    with pytest.raises(InputError, match=says):
        made(**json.loads(json.dumps(config).replace("{folder}", str(tmp_path))))
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_a_missing_whole_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        build_subset(subset_of(), tmp_path / "nowhere", tmp_path / "out")
