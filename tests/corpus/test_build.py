"""The corpus folder: its files agree with each other, restrictions do what they say, and failure leaves no trace."""

import json
import stat
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from plant.corpus import build, report
from plant.corpus.reader import load_labels
from plant.ground import settings


def table_of(path: Path, **more: object) -> settings.OwnTable:
    return settings.OwnTable.model_validate({"source": "table", "path": str(path), "split_column": "split"} | more)


def corpus_of(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in ("train", "val", "test", "labels")}


def statistics(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "statistics.json").read_text())


@pytest.fixture
def built(own: Path, tmp_path: Path) -> Callable[..., tuple[dict[str, pl.DataFrame], dict[str, Any]]]:
    """Build the own data with other cells (by column and row) and settings: the tables and the statistics."""

    def build_own(
        cells: dict[tuple[str, int], Any] | None = None, **config: object
    ) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
        table = pl.read_parquet(own)
        for (column, row), cell in (cells or {}).items():
            values = [cell if i == row else value for i, value in enumerate(table[column].to_list())]
            table = table.with_columns(pl.Series(column, values))
        table.write_parquet(tmp_path / "changed.parquet")
        build.build_corpus(table_of(tmp_path / "changed.parquet", **config), tmp_path / "out")
        return corpus_of(tmp_path / "out"), statistics(tmp_path / "out")

    return build_own


def test_the_arrays_say_the_same_as_the_tables(demo_folder):
    tables, labels = corpus_of(demo_folder), load_labels(demo_folder)
    documents = [row for name in ("train", "val", "test") for row in tables[name]["labels"].to_list()]
    assert [[labels.names[i] for i in labels.row(n)] for n in range(labels.n_documents)] == documents
    assert list(labels.names) == sorted(labels.names) == tables["labels"]["label"].to_list()
    for position, name in enumerate(("train", "val", "test")):
        rows = tables[name]["labels"].to_list()
        counted = [sum(label in row for row in rows) for label in labels.names]
        assert labels.counts[position].tolist() == counted == tables["labels"][f"n_{name}"].to_list()
        assert labels.document_ids(name) == tuple(tables[name]["document_id"])
        indptr, indices = labels.part(name)
        parts = [indices[a:b].tolist() for a, b in pairwise(indptr)]
        assert [[labels.names[i] for i in part] for part in parts] == rows


def test_the_files_have_the_types_of_the_contract(demo_folder):
    tables, labels = corpus_of(demo_folder), load_labels(demo_folder)
    document = {"document_id": pl.String, "group_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}
    assert dict(tables["train"].schema) == document
    counts = dict.fromkeys(("n_train", "n_val", "n_test"), pl.UInt32)
    assert dict(tables["labels"].schema) == {"label": pl.String, "description": pl.String} | counts
    assert (labels.indptr.dtype, labels.indices.dtype, labels.split_sizes.dtype) == (np.int64, np.int32, np.int64)
    patients = [set(tables[name]["group_id"]) for name in ("train", "val", "test")]
    assert sum(map(len, patients)) == len(set.union(*patients))
    assert labels.n_documents == 120


def test_statistics_count_what_the_tables_hold(demo_folder):
    """The rows of the paper's tables 7 and 8 among them."""
    tables, found = corpus_of(demo_folder), statistics(demo_folder)
    splits = {name: tables[name] for name in ("train", "val", "test")}
    for told, documents in [(found["splits"][name], part) for name, part in splits.items()] + [
        (found["all"], pl.concat(splits.values()))
    ]:
        rows = documents["labels"].to_list()
        assert told["documents"] == len(rows)
        assert told["groups"] == documents["group_id"].n_unique()
        assert told["labels_present"] == len({label for own in rows for label in own})
        assert told["assignments"] == sum(map(len, rows))
        assert told["documents_per_label"] == pytest.approx(sum(map(len, rows)) / found["labels"], abs=1e-3)
        words = [len(text.split()) for text in documents["text"]]
        for key, values in (("labels_per_document", [len(own) for own in rows]), ("words_per_document", words)):
            quartiles = np.percentile(values, [25, 50, 75])
            assert [told[key][name] for name in ("quartile_1", "median", "quartile_3")] == quartiles.tolist()
            assert told[key]["mean"] == pytest.approx(np.mean(values), abs=1e-3)
            assert told[key]["max"] == max(values)
    assert found["labels"] == found["all"]["labels_present"] == len(tables["labels"])
    assert found["label_cleaning"]["repeated_labels_removed"] > 0


def test_the_ceiling_of_precision_is_what_a_system_that_knows_the_truth_reaches(demo_folder):
    rows = corpus_of(demo_folder)["test"]["labels"].to_list()
    found = statistics(demo_folder)["ceilings"]
    assert set(found) == {"p@1", "p@3", "p@5", "p@8", "p@15"}
    for name, value in found.items():
        k = int(name[2:])
        best = [(own + [None] * k)[:k] for own in rows]  # the true labels first, then anything
        assert value == pytest.approx(np.mean([sum(label is not None for label in own) / k for own in best]))


def test_split_and_label_space_have_a_name_and_a_digest_of_what_they_hold(built, own):
    _, one = built(split={"name": "s"}, labels={"name": "l"})
    assert (one["split"]["name"], one["label_space"]["name"]) == ("s", "l")
    (_, cut), (_, fewer) = built(train_size=4), built(labels={"top": 2})
    assert (cut["split"]["name"], cut["label_space"]["name"]) == (None, None)
    assert cut["split"]["digest"] == one["split"]["digest"] == fewer["split"]["digest"]  # before the draw
    assert cut["label_space"]["digest"] == one["label_space"]["digest"] != fewer["label_space"]["digest"]
    pl.read_parquet(own).with_columns(split=pl.Series(["train"] * 7 + ["dev"] * 3 + ["test"] * 2)).write_parquet(own)
    assert built()[1]["split"]["digest"] != one["split"]["digest"]


def test_an_ordinary_dataset_restricts_labels_before_and_after_its_split(built):
    """l0 is on 3 training documents, l1 on 3, l2 on 2; test has l1 and l2; `common` is the most frequent of all."""
    tables, found = built(labels={"top": 3, "train_at_most": 3})
    assert tables["labels"].select("label", "n_train").rows() == [("l0", 3), ("l1", 3)]
    assert found["label_cleaning"]["labels_dropped"] == 2
    assert found["dropped_documents"]["without_labels_of_the_label_space"] == 4


def test_building_twice_gives_the_same_bytes(demo, demo_folder, tmp_path):
    build.build_corpus(demo, tmp_path, raw=demo_folder / "raw")
    files = {file.name for file in tmp_path.iterdir()}
    tables = {f"{name}.parquet" for name in ("train", "val", "test", "labels")}
    assert files == {*tables, "labels.safetensors", "statistics.json"}
    assert all((tmp_path / name).read_bytes() == (demo_folder / name).read_bytes() for name in files)


def test_a_document_without_labels_is_dropped_and_counted(built):
    tables, found = built(
        {("labels", 0): [], ("labels", 1): ["  ", ""], ("text", 2): "12 34"}, cleaning={"style": "edin"}
    )
    assert (found["dropped_documents"]["without_labels"], found["dropped_documents"]["without_text"]) == (2, 1)
    assert tables["train"]["document_id"].to_list() == [f"d{i}" for i in range(3, 8)]


def test_labels_of_test_that_train_lacks_are_kept_and_counted(built):
    tables, found = built({("labels", 11): ["common", "unseen"]})
    assert found["labels_in_test_absent_from_train"] == 1
    assert found["assignments_in_test_absent_from_train"] == 1
    assert tables["labels"].filter(label="unseen").row(0)[2:] == (0, 0, 1)


def test_labels_are_restricted_by_the_documents_of_all_splits(built, tmp_path):
    cells = {("labels", 0): ["common", "l0", "twice", "once"], ("labels", 11): ["common", "l2", "twice"]}
    tables, _ = built(cells, labels={"min_count": 2})
    assert tables["labels"]["label"].to_list() == ["common", "l0", "l1", "l2", "twice"]
    (tmp_path / "keep.txt").write_text("l0\nl1\nabsent\n")
    tables, found = built(labels={"keep": str(tmp_path / "keep.txt")})
    assert tables["labels"]["label"].to_list() == ["l0", "l1"]
    assert found["label_cleaning"]["labels_asked_for_but_absent"] == 1
    assert found["dropped_documents"]["without_labels_of_the_label_space"] == 4


@pytest.mark.parametrize("credentialed", [True, False])
def test_files_of_a_credentialed_corpus_are_their_owners_alone(own, tmp_path, credentialed):
    (tmp_path / "usual").touch()
    build.build_corpus(table_of(own, credentialed=credentialed), tmp_path / "out")
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "out").iterdir()}
    assert modes == {0o600 if credentialed else stat.S_IMODE((tmp_path / "usual").stat().st_mode)}


def test_a_failure_while_writing_leaves_the_old_corpus_whole(own, tmp_path, monkeypatch):
    out = tmp_path / "out"
    build.build_corpus(table_of(own), out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(report, "label_table", full)
    with pytest.raises(OSError, match="no space"):
        build.build_corpus(table_of(own, train_size=4), out)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
