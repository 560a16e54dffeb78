"""MIMIC-III: the generator knows the truth, and what it wrote must come back through the ingestion."""

import gzip
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plant.corpus.simulation import NEGATION, OTHER_WORD, Simulation, simulate
from plant.corpus.synthetic.mimic3 import CODE_COLUMNS, NOTE_COLUMNS, write
from plant.ground import settings

FILES = [
    f"{name}.csv.gz"
    for name in ("NOTEEVENTS", "DIAGNOSES_ICD", "PROCEDURES_ICD", "D_ICD_DIAGNOSES", "D_ICD_PROCEDURES")
]


@pytest.fixture(scope="module")
def truth(demo: settings.Mimic3) -> Simulation:
    assert demo.generate is not None
    return simulate(demo.generate)


@pytest.fixture(scope="module")
def corpus(demo_folder: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(demo_folder / f"{name}.parquet") for name in ("train", "val", "test")])


def dotted(code: str, *, procedure: bool) -> str:
    head = 2 if procedure else 4 if code[0] == "E" else 3
    return code if len(code) <= head else f"{code[:head]}.{code[head:]}"


def test_every_admission_comes_back_with_its_patient_text_and_codes(truth: Simulation, corpus: pl.DataFrame) -> None:
    expected = {}
    for admission, codes in truth.codes.items():
        notes = [
            note.text.strip()
            for note in truth.notes
            if note.admission == admission and note.category == "Discharge summary"
        ]
        labels = sorted({dotted(code, procedure=code in truth.procedures) for code in codes})
        expected[str(admission)] = (str(truth.patients[admission]), " ".join(notes), labels)
    assert {document: rest for document, *rest in corpus.iter_rows()} == {
        document: list(rest) for document, rest in expected.items()
    }


def test_the_same_settings_give_the_same_bytes_and_another_seed_gives_others(tmp_path: Path) -> None:
    generate = settings.Generate(admissions=30, codes=20, words=100)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write(generate.model_copy(update={"seed": seed}), tmp_path / name)
    read = {name: [(tmp_path / name / file).read_bytes() for file in FILES] for name in "abc"}
    assert read["a"] == read["b"]
    assert all(one != other for one, other in zip(read["a"], read["c"], strict=True))


def test_the_default_corpus_is_what_it_was_when_its_numbers_were_published(tmp_path: Path) -> None:
    """The digest of the files' contents, taken before other raw forms were written from the same simulation."""
    write(settings.Generate(admissions=1200, codes=150, words_per_note=60), tmp_path)
    state = hashlib.sha256()
    for file in sorted(tmp_path.iterdir()):
        state.update(file.name.encode() + gzip.decompress(file.read_bytes()))
    assert state.hexdigest() == "771e5a3079cf233b1933a4e8f9d39de523cae937bed9eb4e551756bfcdc10d24"


def test_the_files_have_the_raw_headers(demo_folder: Path) -> None:
    for file, columns in ((FILES[0], NOTE_COLUMNS), (FILES[1], CODE_COLUMNS), (FILES[2], CODE_COLUMNS)):
        with gzip.open(demo_folder / "raw" / file, "rt") as text:
            assert next(text).strip() == ",".join(f'"{column}"' for column in columns)


def test_it_has_what_makes_the_real_tables_hard(truth: Simulation, demo_folder: Path) -> None:
    summaries = [note for note in truth.notes if note.category == "Discharge summary"]
    assert any(note.admission is None for note in summaries)
    assert any(note.description == "Addendum" for note in summaries)
    assert any('"' in note.text and "\n" in note.text and "," in note.text for note in summaries)
    assert {note.category for note in truth.notes} > {"Discharge summary"}
    assert max(Counter(truth.patients.values()).values()) > 1
    assert any(code.startswith("0") for code in truth.terms)
    assert {1, 2} <= set(Counter(code for codes in truth.codes.values() for code in codes).values())
    codes = pl.read_csv(demo_folder / "raw" / FILES[1], infer_schema=False)
    pairs = codes.select("HADM_ID", "ICD9_CODE").drop_nulls()
    assert pairs.is_duplicated().any()
    assert codes["ICD9_CODE"].null_count() + (codes["ICD9_CODE"] == "").sum() > 0


def test_no_other_note_reaches_the_corpus(truth: Simulation, corpus: pl.DataFrame) -> None:
    assert any(OTHER_WORD in note.text for note in truth.notes)
    assert not corpus["text"].str.contains(OTHER_WORD).any()


def test_terms_show_at_the_rate_asked_for_and_serve_one_code_each() -> None:
    generate = settings.Generate(admissions=400, codes=60, indicator_rate=0.7, distractor_rate=0.4)
    truth = simulate(generate)
    words = [word for terms in truth.terms.values() for term in terms for word in term.split()]
    assert len(words) == len(set(words))
    texts: dict[int, str] = {}
    for note in truth.notes:
        if note.category == "Discharge summary" and note.admission is not None:
            texts[note.admission] = f"{texts.get(note.admission, '')} {note.text}".lower()

    def shown(admission: int, code: str, before: str = "") -> bool:
        flat = " ".join(texts[admission].replace(".", " ").replace('"', " ").split())
        return any(f" {before}{term} " in f" {flat} " for term in truth.terms[code])

    shows = [shown(admission, code) for admission, codes in truth.codes.items() for code in codes]
    assert np.mean(shows) == pytest.approx(0.7, abs=0.04)
    negated = [NEGATION in text for text in texts.values()]
    assert np.mean(negated) == pytest.approx(0.4, abs=0.08)


def test_words_and_codes_follow_a_zipf_law() -> None:
    truth = simulate(settings.Generate(admissions=600))
    words = Counter(word for note in truth.notes for word in note.text.lower().replace(".", " ").split())
    counts = np.array(sorted(words.values(), reverse=True), dtype=float)[3:300]
    slope = np.polyfit(np.log(np.arange(4, 4 + len(counts))), np.log(counts), 1)[0]
    assert -1.3 < slope < -0.7
    codes = sorted(Counter(code for own in truth.codes.values() for code in own).values(), reverse=True)
    assert codes[0] > 20 * codes[len(codes) // 2 + len(codes) // 3]


def test_titles_describe_labels(demo_folder: Path, truth: Simulation) -> None:
    labels = pl.read_parquet(demo_folder / "labels.parquet")
    title = labels.filter(pl.col("label") == "038.9")["description"].item()
    assert title == f"Invented condition, {truth.terms['0389'][0]}"
    assert labels["description"].null_count() == 0
