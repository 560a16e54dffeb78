"""Small raw folders that single tests spoil, and the places of the open corpora."""

import csv
import gzip
import json
import os
from pathlib import Path

import polars
import pytest

from plant.ground import settings

SECRET = "xylophonist"
"""Stands in every text: no error may repeat it."""

NOTES = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "CHARTDATE", "CHARTTIME", "STORETIME", "CATEGORY", "DESCRIPTION"]
NOTES = [*NOTES, "CGID", "ISERROR", "TEXT"]
CODES = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]


def write_csv(path: Path, header: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows([header, *rows])


@pytest.fixture
def mimic3(tmp_path: Path) -> Path:
    """Eight admissions of eight patients; admission 100 + i has the codes 0389 and 4{i}1, and procedure 0066."""
    folder = tmp_path / "mimic3"
    notes, diagnoses, procedures = [], [], []
    for i in range(8):
        summary = f'Line one, "quoted" {SECRET}\nline two, number {i}'
        notes.append([2 * i, i, 100 + i, "", "", "", "Nursing", "Report", "", "", f"nursing {SECRET}"])
        notes.append([2 * i + 1, i, 100 + i, "", "", "", "Discharge summary", "Report", "", "", summary])
        diagnoses += [[i, i, 100 + i, 1, "0389"], [i, i, 100 + i, 2, f"4{i}1"]]
        procedures.append([i, i, 100 + i, 1, "0066"])
    write_csv(folder / "NOTEEVENTS.csv", NOTES, notes)
    write_csv(folder / "DIAGNOSES_ICD.csv", CODES, diagnoses)
    write_csv(folder / "PROCEDURES_ICD.csv", CODES, procedures)
    return folder


@pytest.fixture
def mimic4(tmp_path: Path) -> Path:
    """Eight admissions; 0 to 6 have version 10 codes (one padded with a space), 7 only version 9."""
    folder = tmp_path / "mimic4"
    notes = [[f"n{i}", i, 100 + i, "DS", 1, "", "", f"Text {i}\n{SECRET}"] for i in range(8)]
    diagnoses = [[i, 100 + i, 1, "I10 " if i else "E119", 10] for i in range(7)] + [[7, 107, 1, "0389", 9]]
    procedures = [[i, 100 + i, 1, "", "02HV33Z", 10] for i in range(4)]
    header = ["note_id", "subject_id", "hadm_id", "note_type", "note_seq", "charttime", "storetime", "text"]
    write_csv(folder / "note/discharge.csv.gz", header, notes)
    codes = ["subject_id", "hadm_id", "seq_num", "icd_code", "icd_version"]
    write_csv(folder / "hosp/diagnoses_icd.csv.gz", codes, diagnoses)
    write_csv(folder / "hosp/procedures_icd.csv.gz", [*codes[:3], "chartdate", *codes[3:]], procedures)
    titles = [["I10", 10, "Essential hypertension"], ["I10", 9, "another thing"]]
    write_csv(folder / "hosp/d_icd_diagnoses.csv.gz", ["icd_code", "icd_version", "long_title"], titles)
    return folder


@pytest.fixture(scope="session")
def demo() -> settings.Mimic3:
    """A small generated dataset."""
    generate = settings.Generate(admissions=120, codes=40, words=300, words_per_note=40, seed=3)
    return settings.Mimic3(source="mimic3", generate=generate, credentialed=False)


@pytest.fixture(scope="session")
def demo_folder(demo: settings.Mimic3, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of `demo`, with its raw files."""
    from plant.corpus.build import build_corpus
    from plant.corpus.synthetic import write_raw

    out = tmp_path_factory.mktemp("demo")
    write_raw(demo, out / "raw")
    build_corpus(demo, out, raw=out / "raw")
    return out


@pytest.fixture(scope="session")
def open_data() -> Path:
    """The folder of the open corpora; tests that ask for it are skipped where there is none."""
    root = Path(__file__).parents[2]
    folder = Path(os.environ.get("PLANT_OPEN_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no open corpora here (PLANT_OPEN_DATA)")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Own data, a parquet file: documents d0 to d11 with the label `common` and one of three others."""
    path = tmp_path / "own.parquet"
    columns = {
        "id": [f"d{i}" for i in range(12)],
        "text": [f"text {i} {SECRET}" for i in range(12)],
        "labels": [["common", f"l{i % 3}"] for i in range(12)],
        "split": ["train"] * 8 + ["dev"] * 2 + ["test"] * 2,
        "patient": [f"p{i // 2}" for i in range(12)],
    }
    polars.DataFrame(columns).write_parquet(path)
    return path


@pytest.fixture
def codiesp(tmp_path: Path) -> Path:
    """CodiEsp as published, with two documents a split."""
    folder = tmp_path / "codiesp" / "final_dataset_v4_to_publish"
    for split in ("train", "dev", "test"):
        for language in ("text_files", "text_files_en"):
            (folder / split / language).mkdir(parents=True)
            for i in range(2):
                (folder / split / language / f"S-{split}-{i}.txt").write_text(f"{language} {split} {i} {SECRET}")
        (folder / split / f"{split}D.tsv").write_text(f"S-{split}-0\tn44.8\nS-{split}-0\tr52\nS-{split}-1\tr52\n")
        (folder / split / f"{split}P.tsv").write_text(f"S-{split}-0\tbw03zzz\n")
    return folder.parent


@pytest.fixture
def eurlex(tmp_path: Path) -> Path:
    """EURLEX57K as published, with two laws a split; one has no header, as some do."""
    folder = tmp_path / "eurlex" / "EURLEX57K"
    for split in ("train", "dev", "test"):
        (folder / split).mkdir(parents=True)
        for i in range(2):
            law = {"celex_id": f"{split}{i}", "uri": "", "type": "Decision", "concepts": ["20", f"3{i}"]}
            law |= {"title": "Title", "header": "Header" if i else None, "recitals": f"Recitals {SECRET}"}
            law |= {"main_body": ["Article 1", "Article 2"], "attachments": "Done at"}
            (folder / split / f"{split}{i}.json").write_text(json.dumps(law))
    labels = {"20": {"concept_id": "20", "label": "rice", "alt_labels": [], "parents": []}}
    (folder / "EURLEX57K.json").write_text(json.dumps(labels))
    return folder.parent
