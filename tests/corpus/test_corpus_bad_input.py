"""Every bad input: one InputError that says what to look at, no text in it, and nothing half-written."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from plant.corpus.build import build_corpus
from plant.corpus.tokens import tokenize_corpus
from plant.ground import settings
from plant.ground.errors import InputError

SECRET = "xylophonist"


@dataclass(frozen=True)
class Case:
    """A source, what is done to its files, config keys beside its path, and what the error must say."""

    name: str
    source: str
    spoil: Callable[[Path], object]
    says: str
    config: dict = field(default_factory=dict)


def replaced(file: str, old: str, new: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> object:
        path = folder / file
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", newline="") as stream:
            text = stream.read()
        assert old in text
        with opener(path, "wt", newline="") as stream:
            return stream.write(text.replace(old, new))

    return spoil


def cut(file: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> object:
        path = folder / file
        content = path.read_bytes()
        return path.write_bytes(content[: len(content) // 2])

    return spoil


def packed_and_cut(folder: Path) -> None:
    plain = folder / "NOTEEVENTS.csv"
    content = gzip.compress(plain.read_bytes() * 20, compresslevel=1)
    (folder / "NOTEEVENTS.csv.gz").write_bytes(content[: len(content) - 20])
    plain.unlink()


def moved(file: str, to: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> object:
        (folder / to).parent.mkdir(parents=True, exist_ok=True)
        return (folder / file).rename(folder / to)

    return spoil


def deleted(file: str) -> Callable[[Path], object]:
    return lambda folder: (folder / file).unlink()


def with_column(**columns: list) -> Callable[[Path], object]:
    def spoil(path: Path) -> object:
        table = pl.read_parquet(path)
        full = {name: [*values, *table[name].to_list()[len(values) :]] for name, values in columns.items()}
        return table.with_columns(**{name: pl.Series(values) for name, values in full.items()}).write_parquet(path)

    return spoil


def lists(**ids: str) -> Callable[[Path], object]:
    """Writes one id list a split beside the raw data."""

    def spoil(path: Path) -> None:
        for name, content in ids.items():
            (path.parent / f"{name}.ids").write_text(content.replace(" ", "\n"))

    return spoil


def header_only(folder: Path) -> None:
    path = folder / "NOTEEVENTS.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")


def nothing(_: Path) -> None: ...


IV_CODES = "hosp/diagnoses_icd.csv.gz"
LISTS = {"split": {"ids": {name: f"{{parent}}/{name}.ids" for name in ("train", "val", "test")}}}
OWN = {"split_column": "split"}
GROUPED = {"split_column": "split", "group_column": "patient"}
ALL = {"train": "d0 d1 d2 d3 d4 d5 d6", "val": "d7 d8", "test": "d9 d10 d11"}

CASES = [
    Case("folder missing", "mimic3", lambda folder: folder.rename(folder.parent / "gone"), "no such folder"),
    Case("notes missing", "mimic3", deleted("NOTEEVENTS.csv"), "NOTEEVENTS.csv.gz"),
    Case("codes missing", "mimic3", deleted("PROCEDURES_ICD.csv"), "PROCEDURES_ICD"),
    Case("column missing", "mimic3", replaced("NOTEEVENTS.csv", '"HADM_ID"', '"ADMISSION"'), "without HADM_ID"),
    Case("code column missing", "mimic3", replaced("DIAGNOSES_ICD.csv", "ICD9_CODE", "CODE"), "without ICD9_CODE"),
    Case("truncated gz", "mimic3", packed_and_cut, "ends early"),
    Case("table cut inside a quoted text", "mimic3", cut("NOTEEVENTS.csv"), "complete table"),
    Case("empty file", "mimic3", lambda folder: (folder / "NOTEEVENTS.csv").write_text(""), "an empty file"),
    Case("header only", "mimic3", header_only, "discharge summaries"),
    Case("no discharge summary", "mimic3", replaced("NOTEEVENTS.csv", "Discharge summary", "Other"), "got none"),
    Case("codes of other admissions", "mimic3", replaced("NOTEEVENTS.csv", ",10", ",99"), "8 without_labels"),
    Case("codes read as integers", "mimic3", replaced("PROCEDURES_ICD.csv", "0066", "66"), "leading zeros"),
    Case("codes read as floats", "mimic3", replaced("DIAGNOSES_ICD.csv", '1"', '1.0"'), "leading zeros"),
    Case("an admission of two patients", "mimic3", replaced("NOTEEVENTS.csv", ",101,", ",100,"), "of several: 100"),
    Case(
        "MIMIC-IV files named as III",
        "mimic3",
        replaced("DIAGNOSES_ICD.csv", "ICD9_CODE", "icd_code"),
        "a MIMIC-IV table",
    ),
    Case("MIMIC-IV folder for III", "mimic4 as mimic3", nothing, "source: mimic4 reads it"),
    Case("MIMIC-III folder for IV", "mimic3 as mimic4", nothing, "source: mimic3 reads it"),
    Case(
        "III codes in a IV folder",
        "mimic4",
        replaced("hosp/diagnoses_icd.csv.gz", "icd_code", "ICD9_CODE"),
        "without icd_code",
    ),
    Case("IV truncated", "mimic4", cut("note/discharge.csv.gz"), "ends early"),
    Case("PCS read as integers", "mimic4", replaced("hosp/procedures_icd.csv.gz", "02HV33Z", "16070"), "leading zeros"),
    Case(
        "no code of the version",
        "mimic4",
        replaced(IV_CODES, ",10\r", ",9\r"),
        "without_text",
        {"code_types": "diagnoses", "icd_version": 10, "labels": {"min_count": 9}},
    ),
    Case("own file missing", "own", lambda path: path.unlink(), "nothing there"),
    Case("own file damaged", "own", lambda path: path.write_bytes(path.read_bytes()[:90]), "damaged"),
    Case("unknown ending", "own", nothing, "the ending '.xlsx'", {"path": "{parent}/own.xlsx"}),
    Case("empty table", "own", lambda path: pl.read_parquet(path).head(0).write_parquet(path), "an empty table"),
    Case("misspelt column", "own", nothing, "Did you mean 'text'", {"text_column": "txt"}),
    Case("text missing", "own", with_column(text=[None, "  "]), "2 without: d0, d1"),
    Case("id missing", "own", with_column(id=[None]), "1 without one"),
    Case("labels are numbers", "own", with_column(labels=[389] * 12), "leading zeros"),
    Case("no labels at all", "own", with_column(labels=[[""]] * 12), "12 without_labels"),
    Case("duplicate ids", "own", with_column(id=["d1"]), "1 repeated: d1", OWN),
    Case("unknown split name", "own", with_column(split=["tets"]), "Did you mean 'test'", OWN),
    Case("split name missing", "own", with_column(split=[None]), "train, val and test", OWN),
    Case("patient in two splits", "own", with_column(patient=["p5"]), "1 group(s) in more than one: p5", GROUPED),
    Case("patient in two lists", "own", lists(**ALL), "p3", {"group_column": "patient"} | LISTS),
    Case("unknown split ids", "own", lists(**ALL | {"val": "d7 x8"}), "1 unknown of 12 ids: x8", LISTS),
    Case("id in two lists", "own", lists(**ALL | {"val": "d7 d1"}), "listed again: d1", LISTS),
    Case("id twice in a list", "own", lists(**ALL | {"val": "d7 d8 d7"}), "listed again: d7", LISTS),
    Case("id list missing", "own", lists(train="d0", val="d1"), "test.ids", LISTS),
    Case("id list empty", "own", lists(**ALL | {"test": "\n"}), "an empty file", LISTS),
    Case(
        "split table of another format",
        "own",
        lists(train="d0"),
        "the ending '.ids'",
        {"split": {"table": "{parent}/train.ids"}},
    ),
    Case(
        "split table damaged",
        "own",
        lambda path: (path.parent / "split.feather").write_text("no feather"),
        "damaged",
        {"split": {"table": "{parent}/split.feather"}},
    ),
    Case("split table without column", "own", nothing, "the columns _id, split, got 5 columns, no _id", {"split": {"table": "{parent}/own.parquet"}}),
    Case(
        "a split without documents", "own", nothing, "none in val", {"split": {"train": 0.8, "val": 0.0, "test": 0.2}}
    ),
    Case("no training documents", "own", with_column(split=["test"] * 8), "a training split", OWN),
    Case("train_size too large", "own", nothing, "at most the 8", OWN | {"train_size": 9}),
    Case("min_count too large", "own", nothing, "12 without_labels_of_the_label_space", {"labels": {"min_count": 99}}),
    Case("label list missing", "own", nothing, "keep.txt", {"labels": {"keep": "{parent}/keep.txt"}}),
    Case(
        "label list of another corpus",
        "own",
        lists(keep="E11.9\n"),
        "none of which occurs",
        {"labels": {"keep": "{parent}/keep.ids"}},
    ),
    Case("zip damaged", "codiesp", nothing, "damaged", {"path": "{parent}/own.parquet"}),
    Case("zip missing", "codiesp", nothing, "nothing there", {"path": "{parent}/none.zip"}),
    Case("CodiEsp codes missing", "codiesp", deleted("final_dataset_v4_to_publish/dev/devD.tsv"), "dev/devD.tsv"),
    Case(
        "CodiEsp text missing",
        "codiesp",
        deleted("final_dataset_v4_to_publish/dev/text_files_en/S-dev-0.txt"),
        "codes of documents without text: 1 (not shown",
    ),
    Case("tar damaged", "eurlex57k", nothing, "damaged", {"path": "{parent}/own.parquet"}),
    Case(
        "no EURLEX57K", "eurlex57k", lambda folder: (folder / "EURLEX57K/dev").rename(folder / "valid"), "none in dev"
    ),
    Case(
        "a law without concepts",
        "eurlex57k",
        lambda folder: (folder / "EURLEX57K/dev/dev0.json").write_text('{"celex_id": "dev0"}'),
        "dev0.json",
    ),
    Case("XMC folder of another format", "codiesp as xmc", nothing, "X.trn.txt", {"format": "pecos"}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_is_one_clear_error(case: Case, request: pytest.FixtureRequest, tmp_path: Path, own: Path) -> None:
    made, _, source = case.source.partition(" as ")
    fixture = {"eurlex57k": "eurlex"}.get(made, made)
    path: Path = own if fixture == "own" else request.getfixturevalue(fixture)
    case.spoil(path)
    config = json.loads(json.dumps(case.config).replace("{parent}", str(tmp_path)))
    if "xlsx" in str(config):
        (tmp_path / "own.xlsx").touch()
    names = {"own": "table"}
    raw = {"source": source or names.get(made, made), "path": str(path)} | config
    [dataset] = settings.Settings.model_validate(
        {"datasets": {"d": raw}, "backbones": {}, "finetunings": {}, "variants": {}, "experiments": {}}
    ).datasets.values()
    with pytest.raises(InputError) as caught:
        build_corpus(dataset, tmp_path / "out")
    message = str(caught.value)
    assert case.says in message
    assert SECRET not in message
    assert caught.value.fix.endswith((".", "?", ")"))
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


# --- XMC files, and tokenizers ---------------------------------------------------------------------


def xmc(folder: Path, form: str, **files: str) -> settings.Xmc:
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    return settings.Xmc.model_validate({"source": "xmc", "path": str(folder), "format": form})


@pytest.mark.parametrize(
    ("form", "files", "says"),
    [
        ("attentionxml", {"train_texts__txt": "a\nb\n", "train_labels__txt": "x\n"}, "labels of 1 documents"),
        ("attentionxml", {"train_texts__txt": "a\n"}, "train_labels.txt"),
        ("libmultilabel", {"train__txt": "only text\n", "test__txt": "0\ta\ttext\n"}, "ID<TAB>labels<TAB>text"),
        ("pecos", {"X__trn__txt": "a\n", "Y__trn__npz": "no matrix"}, "sparse matrix"),
        ("xmc_json", {"lbl__json": "{broken\n"}, "one JSON object a line"),
        ("xmc_json", {"lbl__json": '{"uid": "1"}\n', "trn__json": '{"uid": "1"}\n'}, "target_ind"),
        (
            "xmc_json",
            {"lbl__json": '{"uid": "1"}\n', "trn__json": '{"uid": "7", "target_ind": [3]}\n'},
            "line 1.* below 1",
        ),
    ],
)
def test_damaged_xmc_files_are_one_clear_error(tmp_path: Path, form: str, files: dict[str, str], says: str) -> None:
    dataset = xmc(tmp_path, form, **files)
    with pytest.raises(InputError, match=says):
        build_corpus(dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_truncated_xmc_gz_is_one_clear_error(tmp_path: Path) -> None:
    content = gzip.compress(b'{"uid": "1", "title": "label"}\n' * 1000)
    (tmp_path / "lbl.json.gz").write_bytes(content[:-12])
    with pytest.raises(InputError, match="damaged"):
        build_corpus(xmc(tmp_path, "xmc_json"), tmp_path / "out")


def test_a_truncated_zip_is_one_clear_error(codiesp: Path, tmp_path: Path) -> None:
    packed = tmp_path / "codiesp.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in codiesp.rglob("*"):
            archive.write(file, file.relative_to(codiesp))
    packed.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises(InputError, match="Zenodo"):
        build_corpus(settings.CodiEsp(source="codiesp", path=str(packed)), tmp_path / "out")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "none there"),
        ({"config.json": "{}"}, "none there"),
        ({"tokenizer.json": "{broken"}, "transformers can load"),
    ],
)
def test_a_backbone_folder_without_a_tokenizer_is_one_clear_error(
    demo_folder: Path, tmp_path: Path, files: dict[str, str], says: str
) -> None:
    (tmp_path / "backbone").mkdir()
    for name, content in files.items():
        (tmp_path / "backbone" / name).write_text(content)
    backbone = settings.Pretrained(kind="pretrained", path=str(tmp_path / "backbone"))
    with pytest.raises(InputError, match=says):
        tokenize_corpus(demo_folder, backbone, tokenizer=None, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tokens_before_corpus_and_tokenizer_are_one_clear_error(demo_folder: Path, tmp_path: Path) -> None:
    random = settings.Random(kind="random")
    for corpus, tokenizer, says in (
        (tmp_path / "none", tmp_path, "nothing there"),
        (demo_folder, None, "train_tokenizer"),
        (demo_folder, tmp_path, r"tokenizer\.json"),
    ):
        with pytest.raises(InputError, match=says):
            tokenize_corpus(corpus, random, tokenizer=tokenizer, out=tmp_path / "out")
