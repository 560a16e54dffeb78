"""Synthetic raw files: the readers give back what was drawn, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plant.corpus import sources
from plant.corpus.documents import Documents
from plant.corpus.simulation import OTHER_WORD, Simulation, simulate
from plant.corpus.synthetic import icd10_codes, write_raw
from plant.ground import settings
from plant.ground.errors import InputError

GENERATE = settings.Generate(admissions=120, codes=40, words=300, words_per_note=40, seed=3)
FORMS: dict[str, dict[str, Any]] = {
    "mimic3": {"source": "mimic3"},
    "mimic4": {"source": "mimic4"},
    "mimic4_icd9": {"source": "mimic4", "icd_version": 9},
    "pecos": {"source": "xmc", "format": "pecos"},
}
Written = Callable[[str], tuple[Path, Documents]]


def dataset_of(form: str, **more: Any) -> settings.Dataset:
    return settings.parse_dataset({**FORMS[form], "generate": GENERATE.model_dump(), **more})


@pytest.fixture(scope="module")
def truth() -> Simulation:
    return simulate(GENERATE)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The raw folder of a form, and its documents."""
    made: dict[str, tuple[Path, Documents]] = {}

    def make(form: str) -> tuple[Path, Documents]:
        if form not in made:
            raw = tmp_path_factory.mktemp(form)
            write_raw(dataset_of(form), raw)
            made[form] = raw, sources.read(dataset_of(form), raw=raw)
        return made[form]

    return make


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_settings_give_the_same_bytes_and_the_published_path_reads_them(
    written: Written, form: str, tmp_path: Path
) -> None:
    raw, documents = written(form)
    write_raw(dataset_of(form), tmp_path)
    assert contents(tmp_path) == contents(raw)
    assert simulate(GENERATE.model_copy(update={"seed": 4})) != simulate(GENERATE)
    assert sources.read(dataset_of(form, generate=None, path=str(raw))).frame.equals(documents.frame)
    assert not documents.frame["text"].str.contains(OTHER_WORD).any()


PUBLISHED = {
    "mimic3": "771e5a3079cf233b1933a4e8f9d39de523cae937bed9eb4e551756bfcdc10d24",
    "mimic4": "947e71155ae73167c3ff348603569d415231d3a5ad6326e95096deff2f965239",
    "mimic4_icd9": "91243f2ed48f7e5a9abe38afabc2dcc26af43cf4bbe8ee9954a9bd15e337c05b",
    "pecos": "862c10b289ea7d9948d93899becba47af793bc9b0065e8fde69a0be94c50d0bb",
}
"""SHA-256 of the raw files with which our published numbers were made."""


def unpacked(name: str, content: bytes) -> bytes:
    """What a file holds: how it is compressed depends on the machine's zlib."""
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if not name.endswith(".npz"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"".join(archive.read(member) for member in sorted(archive.namelist()))


@pytest.mark.parametrize("form", FORMS)
def test_the_corpora_are_what_they_were_when_their_numbers_were_published(form: str, tmp_path: Path) -> None:
    write_raw(dataset_of(form, generate={"admissions": 1200, "codes": 150, "words_per_note": 60}), tmp_path)
    state = hashlib.sha256()
    for name, content in sorted(contents(tmp_path).items()):
        state.update(Path(name).name.encode() + unpacked(name, content))
    assert state.hexdigest() == PUBLISHED[form]


def test_what_has_no_synthetic_form_is_refused(tmp_path: Path) -> None:
    own, subset = settings.Table(source="table", path="own.csv"), settings.Subset(source="subset", of="whole")
    for dataset in (own, subset):
        with pytest.raises(InputError, match="a dataset with `generate`"):
            write_raw(dataset, tmp_path)
    with pytest.raises(ValidationError, match="`format: pecos` only"):
        settings.parse_dataset({"source": "xmc", "format": "xmc_json", "generate": {}})
    assert list(tmp_path.iterdir()) == []


def dotted(code: str, head: int) -> str:
    return code if len(code) <= head else f"{code[:head]}.{code[head:]}"


def dotted9(code: str, *, procedure: bool) -> str:
    return dotted(code, 2 if procedure else 4 if code[0] == "E" else 3)


def texts_of(truth: Simulation) -> dict[int, list[str]]:
    """Admission -> its discharge summaries."""
    return {
        admission: [note.text.strip() for note in truth.notes if note.admission == admission and note.is_summary]
        for admission in truth.codes
    }


def test_every_admission_of_mimic3_comes_back_with_its_patient_text_and_codes(
    written: Written, truth: Simulation
) -> None:
    _, documents = written("mimic3")
    expected = {}
    for admission, texts in texts_of(truth).items():
        labels = {dotted9(code, procedure=code in truth.procedures) for code in truth.codes[admission]}
        expected[str(admission)] = (str(truth.patients[admission]), " ".join(texts), labels)
    rows = documents.frame.iter_rows()
    assert {one: (patient, text, set(labels)) for one, patient, text, labels, _ in rows} == expected
    assert documents.descriptions["038.9"] == f"Invented condition, {truth.terms['0389'][0]}"
    assert set(documents.descriptions) >= {label for _, _, labels in expected.values() for label in labels}


def test_mimic4_gives_each_admission_its_text_and_the_codes_of_the_version(written: Written, truth: Simulation) -> None:
    names = icd10_codes(truth, GENERATE.seed)
    assert len(set(names.values())) == len(names)
    _, documents = written("mimic4")
    rows = {row["document_id"]: row for row in documents.frame.iter_rows(named=True)}
    other = [admission for place, admission in enumerate(truth.codes) if place % 40 == 39]
    assert (len(other), len(rows)) == (3, len(truth.codes))
    for admission, codes in truth.codes.items():
        row = rows[str(20_000_000 + admission)]
        assert row["group_id"] == str(10_000_000 + truth.patients[admission])
        labels = {names[code] if code in truth.procedures else dotted(names[code], 3) for code in codes}
        assert set(row["labels"]) == (set() if admission in other else labels)
    summaries = [note for note in truth.notes if note.is_summary]
    assert documents.notes == {
        "discharge_notes": len(summaries),
        "discharge_notes_without_admission": sum(note.admission is None for note in summaries),
    }
    assert set(documents.descriptions) >= {label for own in documents.frame["labels"] for label in own}
