"""Own tables: what would become a wrong corpus in silence is refused, or gives a warning."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from plant.corpus.build import build_corpus
from plant.corpus.sources import read
from plant.ground import settings
from plant.ground.errors import InputError

SECRET = "xylophonist"


def own(path: Path, **config: Any) -> settings.OwnTable:
    return settings.OwnTable(source="table", path=str(path), **config)


def json_lines(folder: Path, *rows: dict[str, Any]) -> Path:
    """Rows of id, text and labels; what a row leaves out is usual."""
    path = folder / "own.jsonl"
    usual = ({"id": f"d{i}", "text": f"word {SECRET}", "labels": ["a"]} for i in range(len(rows)))
    path.write_text("".join(json.dumps(one | row) + "\n" for one, row in zip(usual, rows, strict=True)))
    return path


def refusal(dataset: settings.Dataset, out: Path) -> str:
    with pytest.raises(InputError) as caught:
        build_corpus(dataset, out / "corpus")
    assert not (out / "corpus").exists()
    assert SECRET not in str(caught.value)
    return str(caught.value)


def warnings(caplog: pytest.LogCaptureFixture, dataset: settings.Dataset) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="plant"):
        read(dataset)
    said = [record.getMessage() for record in caplog.records]
    assert all(one.startswith("warning: ") and SECRET not in one for one in said)
    return said


# --- ids ------------------------------------------------------------------------------------------


def test_documents_are_numbered_where_no_column_names_them(tmp_path):
    path = json_lines(tmp_path, {}, {"patient": "p"}, {"patient": "p"})
    assert read(own(path, id_column=None)).frame["document_id"].to_list() == ["1", "2", "3"]
    grouped = read(own(path, id_column=None, group_column="patient")).frame
    assert grouped["document_id"].to_list() == ["1", "2", "3"]
    assert grouped["group_id"].to_list() == [None, "p", "p"]
    files = {"train": str(path), "test": str(path)}
    frame = read(settings.OwnTable(source="table", files=files, id_column=None)).frame
    assert frame["document_id"].to_list() == frame["group_id"].to_list() == [
        f"{split}{number}" for split in files for number in (1, 2, 3)
    ]  # fmt: skip


@pytest.mark.parametrize("listed", ["{}", "{}.0"])
def test_lists_find_ids_that_a_data_frame_made_numbers_with_a_point(tmp_path, listed):
    """Only the lists lost the `.0`, so no way to write them fitted such a table."""
    path = tmp_path / "own.parquet"
    table = pl.DataFrame({"id": [float(i) for i in range(12)], "text": ["word"] * 12, "labels": ["a"] * 12})
    table.write_parquet(path)
    parts = {"train": range(8), "val": range(8, 10), "test": range(10, 12)}
    for name, numbers in parts.items():
        (tmp_path / name).write_text("".join(f"{listed.format(i)}\n" for i in numbers))
    dataset = own(path, split={"ids": {name: str(tmp_path / name) for name in parts}})
    build_corpus(dataset, tmp_path / "corpus")
    for name, numbers in parts.items():
        ids = pl.read_parquet(tmp_path / "corpus" / f"{name}.parquet")["document_id"]
        assert ids.to_list() == [f"{i}.0" for i in numbers]


# --- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (({"labels": ["L0", "L1"]}, {"labels": "L2"}), "list of str (1 documents), str (1 documents)"),
        (({"labels": [{"code": "L0"}]}, {}), "list of dict (1 documents), list of str (1 documents)"),
        (({"labels": {"code": "L0"}},) * 2, "dict (2 documents)"),
        (({"labels": ["L0"]}, {"labels": [7]}), "list of int (1 documents)"),
        (({"labels": [["L0"]]},) * 2, "list of list (2 documents)"),
        (({"text": {"body": SECRET}},) * 2, "text in the column 'text', got dict (2 documents)"),
        (({"text": 5},) * 2, "text in the column 'text', got Int64"),
        (({"id": ["d0"]}, {"id": ["d1"]}), "one name a document in the column 'id'"),
        (({"id": "d6"}, {"id": "d6 "}), "every document id once"),
    ],
)
def test_json_values_of_another_type_are_refused_not_written_out(tmp_path, rows, says):
    assert says in refusal(own(json_lines(tmp_path, *rows)), tmp_path)


def test_columns_that_are_not_read_may_hold_anything(tmp_path):
    path = json_lines(tmp_path, {"meta": ["x"]}, {"meta": {"a": 1}}, {"meta": {"a": "b"}}, {"meta": 5}, {"extra": 1})
    assert read(own(path)).frame["labels"].to_list() == [["a"]] * 5


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("text", b"word", "text in the column 'text', got Binary"),
        ("text", ["word"], "text in the column 'text', got List of String"),
        ("id", timedelta(hours=1), "one name a document in the column 'id', got Duration"),
        ("patient", timedelta(hours=1), "one name a document in the column 'patient', got Duration"),
    ],
)
def test_parquet_values_of_another_type_are_refused(tmp_path, column, value, says):
    table = {"id": ["a"], "patient": ["p"], "text": ["word"], "labels": [["x"]]} | {column: [value]}
    pl.DataFrame(table).write_parquet(tmp_path / "own.parquet")
    assert says in refusal(own(tmp_path / "own.parquet", group_column="patient"), tmp_path)


@pytest.mark.parametrize(
    ("cells", "lists"),
    [
        (["['L0', 'L1']", "L2"], 1),
        (['["L0"]', "L2"], 1),
        (["[401, 250]", "[7]", "", "[]"], 3),
        (["{a,b}", " {b}\n", None, "{c}"], 3),
        (["[401, 250]", "[a];b"], 0),  # without quotes, brackets may belong to the names
    ],
)
def test_lists_that_were_printed_are_refused(tmp_path, cells, lists):
    """They became the labels `[401, 250]`, or `[401` and `250]`, without a word."""
    path, rows = tmp_path / "own.parquet", len(cells)
    pl.DataFrame({"id": list("abcd")[:rows], "text": ["word"] * rows, "labels": cells}).write_parquet(path)
    if lists:
        assert f"lists printed as text, in brackets, in {lists} documents" in refusal(own(path), tmp_path)
    else:
        assert read(own(path)).frame["labels"].to_list()[1] == ["[a]", "b"]


def test_a_column_of_splits_beside_a_file_for_each_split_is_refused():
    """The column had to be there, and its values were not read."""
    with pytest.raises(ValidationError, match="divide the documents; give one of them"):
        settings.OwnTable(source="table", files={"train": "a.csv", "test": "b.csv"}, split_column="split")


# --- groups ---------------------------------------------------------------------------------------


def test_groups_that_differ_in_white_space_only_stay_in_one_split(tmp_path):
    path = json_lines(tmp_path, {"patient": "p", "split": "train"}, {"patient": "p ", "split": "test"})
    said = refusal(own(path, group_column="patient", split_column="split"), tmp_path)
    assert "1 group(s) in more than one" in said and "Correct the lists or the column of splits" in said


@pytest.mark.parametrize("group", [None, float("nan"), "  "])
def test_a_document_without_a_group_is_one_clear_error(tmp_path, group):
    """It ended the process: a null became the group of the smallest integer."""
    patients = [group, 1.0 if isinstance(group, float) else "p"]
    table = {"id": ["a", "b"], "text": ["word"] * 2, "labels": [["a"]] * 2, "patient": patients}
    pl.DataFrame(table).write_parquet(tmp_path / "own.parquet")
    said = refusal(own(tmp_path / "own.parquet", group_column="patient"), tmp_path)
    assert "a group (a patient) for every document, got 1 without one" in said


# --- warnings -------------------------------------------------------------------------------------


def test_labels_with_another_separator_between_them_are_said_and_titles_with_commas_are_not(tmp_path, caplog):
    random = np.random.default_rng(0)
    lists = [", ".join(sorted(random.choice(list("abcdefghij"), 3, replace=False))) for _ in range(300)]
    path = tmp_path / "own.csv"
    pl.DataFrame({"id": map(str, range(300)), "text": ["word"] * 300, "labels": lists}).write_csv(path)
    [said] = warnings(caplog, own(path))
    assert f"300 of 300 labels hold ',', and cut there {len(set(lists))} different labels become 10" in said
    assert warnings(caplog, own(path, label_separator=",")) == []
    titles = ["Diabetes, type 2", "Fracture, closed", "Asthma"]
    pl.DataFrame({"id": list("abc"), "text": ["word"] * 3, "labels": titles}).write_csv(path)
    assert warnings(caplog, own(path)) == []


def test_a_split_column_that_is_not_read_is_said(tmp_path, caplog):
    path = json_lines(tmp_path, {"split": "train"}, {"split": "test"})
    [said] = warnings(caplog, own(path))
    assert "the column split is not read" in said
    assert warnings(caplog, own(path, split_column="split")) == []


@pytest.mark.parametrize(("name", "got"), [("hold-out", "another name"), (None, "an empty cell")])
def test_a_split_that_has_no_known_name_is_refused_with_the_names_that_are_known(tmp_path, name, got):
    path = json_lines(tmp_path, {"split": "Training"}, {"split": "development"}, {"split": name})
    said = refusal(own(path, split_column="split"), tmp_path)
    assert "expected split names train, val and test (or dev, " in said and f"got {got}" in said


@pytest.mark.parametrize("by", ["column", "lists", "label space"])
def test_a_split_whose_documents_are_all_dropped_is_not_filled_from_train(tmp_path, by):
    """Test documents of a contest have no labels: a part of train was scored in their place."""
    hidden = {"labels": ["b"] if by == "label space" else [], "split": "test"}
    rows = [{"split": "train"}] * 8 + [{"split": "val"}] * 2 + [hidden] * 2
    rows = [row | {"id": f"d{i}"} for i, row in enumerate(rows)]
    path = json_lines(tmp_path, *rows)
    if by == "lists":
        ids = {name: tmp_path / name for name in ("train", "val", "test")}
        for name, file in ids.items():
            file.write_text("".join(f"{row['id']}\n" for row in rows if row["split"] == name))
        dataset = own(path, split={"ids": {name: str(file) for name, file in ids.items()}})
    else:
        (tmp_path / "keep").write_text("a\n")
        keep = {"labels": {"keep": str(tmp_path / "keep")}} if by == "label space" else {}
        dataset = own(path, split_column="split", **keep)
    assert "expected documents with text and labels in test, got none" in refusal(dataset, tmp_path)


def test_test_documents_with_the_text_of_a_training_document_are_counted(tmp_path, caplog):
    rows = [{"text": f"{SECRET} {i % 4}", "split": ("train", "val", "test")[i // 4]} for i in range(12)]
    rows[-1]["text"] = "another text"
    with caplog.at_level(logging.WARNING, logger="plant"):
        build_corpus(own(json_lines(tmp_path, *rows), split_column="split"), tmp_path / "copied")
        [said] = [record.getMessage() for record in caplog.records]
        assert said.startswith("warning: 3 test documents have the text of a training document")
        assert SECRET not in said
        caplog.clear()
        for i, row in enumerate(rows):
            row["text"] += f" {i}"
        build_corpus(own(json_lines(tmp_path, *rows), split_column="split"), tmp_path / "different")
    assert not caplog.records


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["own[1].parquet", "own?.feather"])
def test_a_name_with_signs_of_a_pattern_is_a_name(tmp_path, name):
    """`own?.parquet` read `own1.parquet` too, and `own[1].parquet` was called damaged."""
    for file, one in ((name, "a"), (f"own1{Path(name).suffix}", "b")):
        table = pl.DataFrame({"id": [one], "text": ["word"], "labels": [["x"]]})
        with (tmp_path / file).open("wb") as stream:
            (table.write_parquet if name.endswith(".parquet") else table.write_ipc)(stream)
    assert read(own(tmp_path / name)).frame["document_id"].to_list() == ["a"]


# --- damaged files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("own.csv", b"id,text,labels\nd0,word,a\nd1,caf\xe9,b\n", "line 3: expected text in UTF-8"),
        ("own.csv", b'id,text,labels\nd0,"two\nlines",a\nd1,"word,b\nd2,word,c\n', "line 4: expected newlines betw"),
        ("own.csv", b'id,text,labels\nd0,"word,a\nd1,"word",b\n', "line 2: expected newlines between the rows, and cl"),
        ("own.csv", b"id,text,labels\nd0,word,a\nd1,two\rlines,a\n", "line 3: expected newlines between the rows"),
        ("own.csv", b"id,text,labels\nd0,word,a\nd1,word\n", "line 3: expected 3 cells, as in the header, got 2"),
        ("own.csv", b"id,text,labels\nd0,word, and more,a\n", "line 2: expected 3 cells, as in the header, got 4"),
        ("own.csv", b'id;text;labels\nd0;"some; ""words""";a\n', "line 1: expected ',' between the columns, got ';'"),
        ("own.tsv", b"id,text,labels\nd0,word,a\n", "line 1: expected '\\t' between the columns, got ','"),
        ("own.csv", b"id,text,text,labels\nd0,word,word,a\n", "every column once"),
        ("own.csv", b"", "an empty file"),
        ("own.jsonl", b"\n", "expected JSON objects, got an empty file"),
        ("own.jsonl", b'{"id": "d0"}\n{"id": "d1", "te\n', "line 2: expected one JSON object a line"),
        ("own.jsonl", b'[{"id": "d0"},\n', "line 1: expected one JSON object a line"),
        ("own.jsonl", b'{"id": "d0"}\n{"id": "\\ud800"}\n', "line 2: expected one JSON object a line"),
    ],
)
def test_a_damaged_text_file_is_refused_with_the_line(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    assert says in refusal(own(tmp_path / name), tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("own.csv", 'id,text,labels\nd0,"a ""quoted"" word\n\nand, more",x;y\n\n'),
        ("own.jsonl", '{"id": "d0", "text": "a \\"quoted\\" word\\n\\nand, more", "labels": "x;y"}\n\n'),
    ],
)
def test_a_byte_order_mark_changes_nothing(tmp_path, name, content):
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / name).write_text(content, encoding=encoding)
        row = read(own(tmp_path / name)).frame.row(0)
        assert row[:4] == ("d0", "d0", 'a "quoted" word\n\nand, more', ["x", "y"])
