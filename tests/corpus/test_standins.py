"""Every raw form of the stand-ins: what the simulation knows comes back through the reader, and nothing else."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant.corpus import build
from plant.corpus.documents import Documents
from plant.corpus.simulation import OTHER_WORD, Simulation, simulate
from plant.corpus.synthetic import raw_path, write_raw
from plant.corpus.synthetic.icd10 import icd10_codes
from plant.ground import settings
from plant.ground.errors import InputError

GENERATE = settings.Generate(admissions=80, codes=40, words=300, words_per_note=40, seed=3)
FORMS: dict[str, dict[str, Any]] = {
    "mimic3": {"source": "mimic3"},
    "mimic4": {"source": "mimic4"},
    "mimic4_icd9": {"source": "mimic4", "icd_version": 9},
    "codiesp_en": {"source": "codiesp", "code_types": "both"},
    "codiesp_es": {"source": "codiesp", "language": "es"},
    "eurlex57k": {"source": "eurlex57k"},
    **{form: {"source": "xmc", "format": form} for form in ("pecos", "attentionxml", "xmc_json", "libmultilabel")},
}
XMC = ("pecos", "attentionxml", "xmc_json", "libmultilabel")


def dataset_of(form: str, **more: Any) -> settings.Dataset:
    return settings.parse_dataset({**FORMS[form], "generate": GENERATE.model_dump(), **more})


@pytest.fixture(scope="module")
def truth() -> Simulation:
    return simulate(GENERATE)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Documents]]:
    """The raw folder of a form, and its documents."""
    made: dict[str, tuple[Path, Documents]] = {}

    def make(form: str) -> tuple[Path, Documents]:
        if form not in made:
            raw = tmp_path_factory.mktemp(form)
            write_raw(dataset_of(form), raw)
            made[form] = raw, build.read(dataset_of(form), raw=raw)
        return made[form]

    return make


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_settings_give_the_same_bytes(written, form: str, tmp_path: Path) -> None:
    write_raw(dataset_of(form), tmp_path)
    assert contents(tmp_path) == contents(written(form)[0])


@pytest.mark.parametrize("form", FORMS)
def test_the_published_path_reads_what_the_generated_one_reads(written, form: str) -> None:
    raw, documents = written(form)
    published = dataset_of(form, generate=None, path=str(raw_path(dataset_of(form), raw)))
    assert build.read(published).frame.equals(documents.frame)


@pytest.mark.parametrize("form", FORMS)
def test_a_corpus_can_be_built_from_every_form(written, form: str, tmp_path: Path) -> None:
    split = {"train": 0.6, "val": 0.2, "test": 0.2}
    build.build_corpus(dataset_of(form, split=split, credentialed=False), tmp_path, raw=written(form)[0])
    found = json.loads((tmp_path / "statistics.json").read_text())
    assert all(found["splits"][name]["documents"] >= 8 for name in ("train", "val", "test"))
    assert found["labels"] >= 25
    texts = pl.concat([pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("train", "val", "test")])["text"]
    assert not texts.str.contains(OTHER_WORD).any()


def test_mimic4_gives_each_admission_its_text_and_the_codes_of_the_version(written, truth: Simulation) -> None:
    names = icd10_codes(truth, GENERATE.seed)
    _, documents = written("mimic4")
    rows = {row["document_id"]: row for row in documents.frame.iter_rows(named=True)}
    other = [admission for place, admission in enumerate(truth.codes) if place % 40 == 39]
    assert len(other) == 2
    for admission, codes in truth.codes.items():
        row = rows[str(20_000_000 + admission)]
        assert row["group_id"] == str(10_000_000 + truth.patients[admission])
        dotted = {
            names[c] if c in truth.procedures or len(names[c]) == 3 else f"{names[c][:3]}.{names[c][3:]}" for c in codes
        }
        assert set(row["labels"]) == (set() if admission in other else dotted)
    assert len(rows) == len(truth.codes)
    assert len(set(names.values())) == len(names)


def test_mimic4_has_the_published_headers_and_what_makes_them_hard(written, truth: Simulation) -> None:
    raw, documents = written("mimic4")
    headers = {
        "note/discharge": "note_id,subject_id,hadm_id,note_type,note_seq,charttime,storetime,text",
        "hosp/diagnoses_icd": "subject_id,hadm_id,seq_num,icd_code,icd_version",
        "hosp/procedures_icd": "subject_id,hadm_id,seq_num,chartdate,icd_code,icd_version",
        "hosp/d_icd_diagnoses": "icd_code,icd_version,long_title",
        "hosp/d_icd_procedures": "icd_code,icd_version,long_title",
    }
    tables = {}
    for name, header in headers.items():
        with gzip.open(raw / f"{name}.csv.gz", "rt", newline="") as file:
            first, *rows = csv.reader(file)
        assert ",".join(first) == header
        tables[name] = [dict(zip(first, row, strict=True)) for row in rows]
    assert any(row["icd_code"].endswith(" ") for row in tables["hosp/diagnoses_icd"])
    assert {row["icd_version"] for row in tables["hosp/diagnoses_icd"]} == {"9", "10"}
    assert {row["note_type"] for row in tables["note/discharge"]} == {"DS", "AD"}
    summaries = [note for note in truth.notes if note.is_summary]
    assert documents.notes == {
        "discharge_notes": len(summaries),
        "discharge_notes_without_admission": sum(note.admission is None for note in summaries),
    }
    assert set(documents.descriptions) >= {label for own in documents.frame["labels"] for label in own}


def test_codiesp_has_its_own_split_and_two_languages(written, truth: Simulation) -> None:
    _, english = written("codiesp_en")
    _, spanish = written("codiesp_es")
    assert english.frame["split"].value_counts().sort("split").rows() == [("test", 20), ("train", 40), ("val", 20)]
    texts = list(truth.texts().values())
    assert sorted(spanish.frame["text"]) == sorted(texts)
    assert not set(english.frame["text"]) & set(texts)
    words = {word[::-1].lower() for text in texts for word in text.replace(".", " ").split()}
    assert {word.lower() for text in english.frame["text"] for word in text.replace(".", " ").split()} >= {
        word for word in words if word.isalpha()
    }
    number = {f"S0000-{admission:017d}-1": len(codes) for admission, codes in truth.codes.items()}
    assert {row[0]: len(row[3]) for row in english.frame.iter_rows()} == number
    assert all(label.upper() == label for own in english.frame["labels"] for label in own)


def test_the_spans_of_codiesp_are_where_they_say(written) -> None:
    raw, _ = written("codiesp_es")
    with zipfile.ZipFile(raw / "codiesp.zip") as archive:
        names = archive.namelist()
        assert {name.split("/")[1] for name in names} == {"train", "dev", "test", "background"}
        root = "final_dataset_v4_to_publish/train"
        rows = [line.split("\t") for line in archive.read(f"{root}/trainX.tsv").decode().splitlines()]
        assert len(rows) > 50
        for case, kind, code, reference, position in rows:
            start, end = map(int, position.split())
            assert archive.read(f"{root}/text_files/{case}.txt").decode()[start:end] == reference
            table = archive.read(f"{root}/train{'D' if kind == 'DIAGNOSTICO' else 'P'}.tsv").decode()
            assert f"{case}\t{code}\n" in table


def test_eurlex57k_keeps_every_word_in_its_sections_and_describes_every_concept(written, truth: Simulation) -> None:
    raw, documents = written("eurlex57k")
    laws = [json.loads(file.read_text()) for file in (raw / "dataset").rglob("*.json")]
    keys = {"celex_id", "uri", "type", "concepts", "title", "header", "recitals", "main_body", "attachments"}
    assert all(set(law) == keys for law in laws)
    assert sum(law["header"] is None for law in laws) == sum(text.count("\n") < 2 for text in truth.texts().values())
    got = sorted(" ".join(text.removesuffix("Done at Nowhere.").split()) for text in documents.frame["text"])
    assert got == sorted(" ".join(text.split()) for text in truth.texts().values())
    assert documents.frame["split"].value_counts().sort("split").rows() == [("test", 8), ("train", 64), ("val", 8)]
    labels = {label for own in documents.frame["labels"] for label in own}
    assert labels <= set(documents.descriptions)
    assert len(documents.descriptions) == len(truth.terms)


@pytest.mark.parametrize("form", XMC)
def test_the_four_xmc_forms_hold_the_same_documents(written, truth: Simulation, form: str) -> None:
    _, documents = written(form)
    got = {
        (" ".join(text.split()), frozenset(label.replace("_", " ") for label in labels), split)
        for text, labels, split in documents.frame.select("text", "labels", "split").iter_rows()
    }
    tests = {place for place in range(80) if place % 10 in (2, 5, 8)}
    expected = {
        (
            " ".join(text.split()),
            frozenset(truth.terms[code][0] for code in truth.codes[admission]),
            "test" if place in tests else "train",
        )
        for place, (admission, text) in enumerate(truth.texts().items())
    }
    assert got == expected


def test_many_labels_on_few_documents_are_possible(tmp_path: Path) -> None:
    """WIKI10-31K has more labels than documents."""
    generate = {"admissions": 40, "codes": 120, "codes_per_admission": 15, "words_per_note": 30}
    dataset = settings.parse_dataset({"source": "xmc", "format": "pecos", "generate": generate})
    write_raw(dataset, tmp_path)
    frame = build.read(dataset, raw=tmp_path).frame
    assert 12 < frame["labels"].list.len().mean() < 18
    assert frame["labels"].explode().n_unique() > 80


@pytest.mark.parametrize(
    "dataset", [settings.Table(source="table", path="own.csv"), settings.Subset(source="subset", of="whole")]
)
def test_a_dataset_without_a_raw_form_has_no_stand_in(dataset: settings.Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a dataset with `generate`"):
        write_raw(dataset, tmp_path)
    assert list(tmp_path.iterdir()) == []
