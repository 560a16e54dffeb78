"""Every bad input: one InputError that says what to look at, no text in it, and nothing half-written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix, save_npz

from plant.corpus.build import build_corpus
from plant.corpus.sources import read
from plant.ground import settings
from plant.ground.errors import InputError

SECRET = "xylophonist"
Spoil = Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    """A source, what is done to its files, what the error must say, and config keys beside its path."""

    name: str
    source: str
    spoil: Spoil
    says: str
    config: dict[str, Any] = field(default_factory=dict)


def edited(file: str, change: Callable[[str], str]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / file
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", newline="") as stream:
            text = stream.read()
        assert change(text) != text
        with opener(path, "wt", newline="") as stream:
            stream.write(change(text))

    return spoil


def replaced(file: str, old: str, new: str) -> Spoil:
    return edited(file, lambda text: text.replace(old, new))


def written(file: str, content: str | bytes) -> Spoil:
    return lambda folder: (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)


def deleted(file: str) -> Spoil:
    return lambda folder: (folder / file).unlink()


def packed_and_cut(folder: Path) -> None:
    plain = folder / "NOTEEVENTS.csv"
    content = gzip.compress(plain.read_bytes() * 20, compresslevel=1)
    (folder / "NOTEEVENTS.csv.gz").write_bytes(content[: len(content) - 20])
    plain.unlink()


def fused(quote: str) -> Spoil:
    """Loses the line end between the second row and the third."""

    def change(text: str) -> str:
        rows = text.replace('"', quote).splitlines(keepends=True)
        return "".join([*rows[:2], rows[2].rstrip(), *rows[3:]])

    return edited("DIAGNOSES_ICD.csv", change)


def with_column(**columns: list) -> Spoil:
    def spoil(path: Path) -> object:
        table = pl.read_parquet(path)
        full = {name: [*values, *table[name].to_list()[len(values) :]] for name, values in columns.items()}
        return table.with_columns(**{name: pl.Series(values) for name, values in full.items()}).write_parquet(path)

    return spoil


def lists(**ids: str) -> Spoil:
    """Writes one id list a split beside the raw data."""

    def spoil(path: Path) -> None:
        for name, content in ids.items():
            (path.parent / f"{name}.ids").write_text(content.replace(" ", "\n"))

    return spoil


def nothing(_: Path) -> None: ...


IV_CODES, IV_PROCEDURES = "hosp/diagnoses_icd.csv.gz", "hosp/procedures_icd.csv.gz"
ONE_VERSION = {"code_types": "diagnoses", "icd_version": 10, "labels": {"min_count": 9}}
LISTS = {"split": {"ids": {name: f"{{parent}}/{name}.ids" for name in ("train", "val", "test")}}}
LISTS_BY_PATIENT = LISTS | {"group_column": "patient"}
OWN = {"split_column": "split"}
BY_PATIENT = OWN | {"group_column": "patient"}
ALL = {"train": "d0 d1 d2 d3 d4 d5 d6", "val": "d7 d8", "test": "d9 d10 d11"}
NO_VAL = {"split": {"train": 0.8, "val": 0.0, "test": 0.2}}
CODIESP, LATIN_1 = "final_dataset_v4_to_publish", b"S-dev-0\tcaf\xe9\n"
LAW = {"celex_id": "x", "concepts": ["1234"], "title": "T", "header": None, "recitals": "R", "main_body": ["A"]}
LAW |= {"attachments": ""}


def law(changed: dict[str, Any]) -> Case:
    spoil = written("EURLEX57K/train/train0.json", json.dumps(LAW | changed))
    return Case(f"a law with {changed}", "eurlex", spoil, "train0.json: expected JSON with celex_id")


def concepts(content: str) -> Case:
    spoil = written("EURLEX57K/EURLEX57K.json", content)
    return Case(f"concepts as {content}", "eurlex", spoil, "EURLEX57K.json: expected JSON with label")


CASES = [
    Case("folder missing", "mimic3", lambda folder: folder.rename(folder.parent / "gone"), "no such folder"),
    Case("notes missing", "mimic3", deleted("NOTEEVENTS.csv"), "NOTEEVENTS.csv.gz"),
    Case("column missing", "mimic3", replaced("NOTEEVENTS.csv", '"HADM_ID"', '"ADMISSION"'), "without HADM_ID"),
    Case("truncated gz", "mimic3", packed_and_cut, "ends early"),
    Case("cut inside a quoted text", "mimic3", edited("NOTEEVENTS.csv", lambda text: text[:-9]), "complete table"),
    Case("rows fused by a lost line end", "mimic3", fused(""), "DIAGNOSES_ICD.csv"),
    Case("quoted rows fused by a lost line end", "mimic3", fused('"'), "DIAGNOSES_ICD.csv"),
    Case("empty file", "mimic3", written("NOTEEVENTS.csv", ""), "NoDataError"),
    Case("header only", "mimic3", edited("NOTEEVENTS.csv", lambda text: text.splitlines()[0] + "\n"), "summaries"),
    Case("no discharge summary", "mimic3", replaced("NOTEEVENTS.csv", "Discharge summary", "Other"), "got none"),
    Case("notes without a patient", "mimic3", replaced("NOTEEVENTS.csv", ",1,101,", ",,101,"), "a group (a patient)"),
    Case("codes of other admissions", "mimic3", replaced("NOTEEVENTS.csv", ",10", ",99"), "8 without_labels"),
    Case("codes read as integers", "mimic3", replaced("PROCEDURES_ICD.csv", "0066", "66"), "leading zeros"),
    Case("an admission of two patients", "mimic3", replaced("NOTEEVENTS.csv", ",101,", ",100,"), "of several: 100"),
    Case("MIMIC-IV folder for III", "mimic4 as mimic3", nothing, "NOTEEVENTS.csv.gz, got no such file there"),
    Case("PCS read as integers", "mimic4", replaced(IV_PROCEDURES, "02HV33Z", "16070"), "leading zeros"),
    Case("no code of the version", "mimic4", replaced(IV_CODES, ",10\r", ",9\r"), "without_text", ONE_VERSION),
    Case("own file missing", "own", lambda path: path.unlink(), "nothing there"),
    Case("own file damaged", "own", lambda path: path.write_bytes(path.read_bytes()[:90]), "damaged"),
    Case("unknown ending", "own", lambda path: path.with_suffix(".xlsx").touch(), "the ending '.xlsx'",
         {"path": "{parent}/own.xlsx"}),
    Case("empty table", "own", lambda path: pl.read_parquet(path).head(0).write_parquet(path), "an empty table"),
    Case("misspelt column", "own", nothing, "Did you mean 'text'", {"text_column": "txt"}),
    Case("text missing", "own", with_column(text=[None, "  "]), "2 without: d0, d1"),
    Case("id missing", "own", with_column(id=[None]), "1 without one"),
    Case("labels are numbers", "own", with_column(labels=[389] * 12), "leading zeros"),
    Case("labels are lists of numbers", "own", with_column(labels=[[389, 42]] * 12), "leading zeros"),
    Case("no labels at all", "own", with_column(labels=[[""]] * 12), "12 without_labels"),
    Case("unknown split name", "own", with_column(split=["tets"]), "Did you mean 'test'", OWN),
    Case("patient in two splits", "own", with_column(patient=["p5"]), "1 group(s) in more than one: p5", BY_PATIENT),
    Case("patient in two lists", "own", lists(**ALL), "p3", LISTS_BY_PATIENT),
    Case("unknown split ids", "own", lists(**ALL | {"val": "d7 x8"}), "1 unknown of 12 ids: x8", LISTS),
    Case("id in two lists", "own", lists(**ALL | {"val": "d7 d1"}), "listed again: d1", LISTS),
    Case("id list empty", "own", lists(**ALL | {"test": "\n"}), "an empty file", LISTS),
    Case("split table without column", "own", nothing, "columns _id, split, got 5 columns",
         {"split": {"table": "{parent}/own.parquet"}}),
    Case("a split without documents", "own", nothing, "none in val", NO_VAL),
    Case("no training documents", "own", with_column(split=["test"] * 8), "a training split", OWN),
    Case("min_count too large", "own", nothing, "12 without_labels_of_the_label_space", {"labels": {"min_count": 99}}),
    Case("label list of another corpus", "own", lists(keep="E11.9\n"), "none of which occurs",
         {"labels": {"keep": "{parent}/keep.ids"}}),
    Case("zip damaged", "codiesp", nothing, "a damaged or other file", {"path": "{parent}/own.parquet"}),
    Case("zip missing", "codiesp", nothing, "nothing there", {"path": "{parent}/none.zip"}),
    Case("CodiEsp codes missing", "codiesp", deleted(f"{CODIESP}/dev/devD.tsv"), "dev/devD.tsv"),
    Case("CodiEsp lines cut", "codiesp", written(f"{CODIESP}/dev/devD.tsv", "S-dev-0\n"), "got shorter lines"),
    Case("CodiEsp text missing", "codiesp", deleted(f"{CODIESP}/dev/text_files_en/S-dev-0.txt"),
         "codes of documents without text: 1 (not shown"),
    Case("CodiEsp text in Latin-1", "codiesp", written(f"{CODIESP}/train/text_files_en/S-train-0.txt", LATIN_1),
         "train/text_files_en/*.txt in UTF-8"),
    Case("CodiEsp codes in Latin-1", "codiesp", written(f"{CODIESP}/dev/devD.tsv", LATIN_1), "dev/devD.tsv in UTF-8"),
    Case("no EURLEX57K", "eurlex", lambda folder: (folder / "EURLEX57K/dev").rename(folder / "valid"), "none in dev"),
    Case("a law without concepts", "eurlex", written("EURLEX57K/dev/dev0.json", '{"celex_id": "dev0"}'), "dev0.json"),
    law({"concepts": "1234"}),  # were the four labels 1, 2, 3 and 4
    law({"main_body": [1]}),
    law({"celex_id": 5}),
    *map(concepts, ("{broken", "[]", '{"20": {}}', '{"20": {"label": "rice", "alt_labels": "paddy"}}')),
    Case("XMC folder of another format", "codiesp as xmc", nothing, "X.trn.txt", {"format": "pecos"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_is_one_clear_error(case, request, tmp_path, own):
    made, _, source = case.source.partition(" as ")
    path: Path = own if made == "own" else request.getfixturevalue(made)
    case.spoil(path)
    config = json.loads(json.dumps(case.config).replace("{parent}", str(tmp_path)))
    source = source or {"own": "table", "eurlex": "eurlex57k"}.get(made, made)
    dataset = settings.parse_dataset({"source": source, "path": str(path)} | config)
    with pytest.raises(InputError) as caught:
        build_corpus(dataset, tmp_path / "out")
    message = str(caught.value)
    assert case.says in message
    assert SECRET not in message
    assert caught.value.fix.endswith((".", "?", ")"))
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


# --- XMC files ------------------------------------------------------------------------------------


def xmc(folder: Path, form: str, **files: str | bytes) -> settings.Xmc:
    for name, content in files.items():
        content = content.encode("latin-1") if isinstance(content, str) else content
        (folder / name.replace("__", ".")).write_bytes(content)
    return settings.Xmc.model_validate({"source": "xmc", "path": str(folder), "format": form})


LABELS, USUAL = '{"uid": "0", "title": "label"}\n{"uid": "1", "title": "other"}\n', {"uid": "u", "target_ind": [0]}


def xmc_entry(changed: dict[str, Any], says: str = r"trn\.json, line 3") -> tuple[str, dict[str, str], str]:
    """A sound document, a blank line, and one of other values."""
    return "xmc_json", {"lbl__json": LABELS, "trn__json": f"{json.dumps(USUAL)}\n\n{json.dumps(USUAL | changed)}"}, says


@pytest.mark.parametrize(
    ("form", "files", "says"),
    [
        ("attentionxml", {"train_texts__txt": "a\nb\n", "train_labels__txt": "x\n"}, "labels of 1 documents"),
        ("attentionxml", {"train_texts__txt": "a\n"}, "train_labels.txt"),
        ("libmultilabel", {"train__txt": "only text\n", "test__txt": "0\ta\ttext\n"}, "ID<TAB>labels<TAB>text"),
        ("pecos", {"X__trn__txt": "a\n", "Y__trn__npz": "no matrix"}, "sparse matrix"),
        ("libmultilabel", {"train__txt": "0\ta\ttext\n", "test__txt": ""}, "expected documents in test, got none"),
        ("xmc_json", {"lbl__json": '{"uid": "caf\xe9"}\n'}, r"lbl\.json, line 1: expected text in UTF-8"),
        ("xmc_json", {"lbl__json__gz": gzip.compress(LABELS.encode() * 1000)[:-12]}, "damaged"),
        ("xmc_json", {"lbl__json": LABELS, "trn__json": '{"uid": "1"}\n'}, "none called target_ind"),
        xmc_entry({"target_ind": [3]}, "line 3.* below 2"),
        *(xmc_entry({"target_ind": one}) for one in ("0", ["0"], [True], [-1])),
        xmc_entry({"title": ["x"]}),
        xmc_entry({"uid": {}}),
    ],
)
def test_damaged_xmc_files_are_one_clear_error(tmp_path, form, files, says):
    dataset = xmc(tmp_path, form, **files)
    with pytest.raises(InputError, match=says):
        build_corpus(dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def array(name: str, *values: float, dtype: str = "int32") -> Callable[[csr_matrix], None]:
    return lambda matrix: setattr(matrix, name, np.array(values, dtype=dtype))


DAMAGE = {
    "an index below 0": array("indices", 0, -1, 1),
    "an index beyond the labels": array("indices", 0, 2, 3),
    "row ends beyond the indices": array("indptr", 0, 2, 10**6),
    "indices that are fractions": array("indices", 0, 1.5, 1, dtype="float64"),
    "data that is no number": array("data", 1, 1, 1, dtype="complex128"),
}


@pytest.mark.parametrize("damage", [None, *DAMAGE])
def test_a_pecos_matrix_is_checked_before_it_is_read(tmp_path, damage):
    """Indices out of range ended the process, or counted from the last label."""
    for short in ("trn", "tst"):
        (tmp_path / f"X.{short}.txt").write_text("one\ntwo\n")
        matrix = csr_matrix(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
        if short == "trn" and damage:
            DAMAGE[damage](matrix)
        save_npz(tmp_path / f"Y.{short}.npz", matrix)
    dataset = xmc(tmp_path, "pecos")
    if damage is None:
        assert read(dataset).frame["labels"].to_list() == [["0", "2"], ["1"]] * 2
    else:
        with pytest.raises(InputError, match="a scipy sparse matrix"):
            read(dataset)
