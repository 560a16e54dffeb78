"""MIMIC-III v1.4: NOTEEVENTS, DIAGNOSES_ICD, PROCEDURES_ICD (.csv or .csv.gz)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant.corpus.codes import CodeKind, with_dots
from plant.corpus.documents import Documents
from plant.corpus.sources import mimic, raw_csv
from plant.ground.settings import Mimic3

TABLES: dict[str, tuple[str, str, CodeKind]] = {
    "procedures": ("PROCEDURES_ICD", "D_ICD_PROCEDURES", "icd9_procedure"),
    "diagnoses": ("DIAGNOSES_ICD", "D_ICD_DIAGNOSES", "icd9_diagnosis"),
}
PLACES = [["NOTEEVENTS"], *([name] for codes, titles, _ in TABLES.values() for name in (codes, titles))]
"""What is read of the folder: for each table the paths at which it may be, without ending."""


def read(dataset: Mimic3, folder: Path) -> Documents:
    """Discharge summaries with their ICD-9 codes; one document an admission (facts, section C, MIMIC-III-full).

    CATEGORY "Discharge summary"; report and addenda joined by a space in file order; codes read as text, stripped,
    dotted. Notes without an admission are left out and counted.

    Raises:
        InputError: a file is missing, incomplete or of the other edition, a column is missing, or the codes lost
            their leading zeros.
    """
    hint = _hint(folder)
    notes_path = raw_csv.require(folder, ["NOTEEVENTS"], hint=hint)
    kinds = [kind for kind in TABLES if dataset.code_types in (kind, "both")]
    paths = {kind: raw_csv.require(folder, [TABLES[kind][0]], hint=hint) for kind in kinds}
    codes = pl.concat([_codes(paths[kind], TABLES[kind][2]) for kind in kinds])
    notes, without_admission = _notes(notes_path)
    documents = mimic.join(notes, codes, where=str(folder))
    return Documents(
        documents.frame,
        _descriptions(folder, kinds),
        documents.dropped,
        {"discharge_notes": len(notes) + without_admission, "discharge_notes_without_admission": without_admission},
    )


def _hint(folder: Path) -> str:
    places = ["note/discharge", "discharge", "hosp/diagnoses_icd"]
    if raw_csv.find(folder, ["NOTEEVENTS"]) is None and raw_csv.find(folder, places) is not None:
        return "a MIMIC-IV folder (source: mimic4 reads it)"
    return ""


def _notes(path: Path) -> tuple[pl.DataFrame, int]:
    """Discharge summaries of all admissions, in file order; the other 97% of the file never stay in memory."""
    table = raw_csv.scan(path, ["SUBJECT_ID", "HADM_ID", "CATEGORY", "TEXT"], edition="MIMIC-III")
    table = table.with_row_index("row").filter(pl.col("CATEGORY").str.strip_chars() == "Discharge summary")
    notes = raw_csv.collect(
        table.select(
            "row",
            mimic.normal_id("HADM_ID").alias("admission"),
            mimic.normal_id("SUBJECT_ID").alias("patient"),
            mimic.normal_text("TEXT").alias("text"),
        ),
        path,
    ).sort("row")
    with_admission = notes.filter(pl.col("admission").str.len_chars() > 0)
    return with_admission, len(notes) - len(with_admission)


def _codes(path: Path, kind: CodeKind) -> pl.DataFrame:
    table = raw_csv.scan(path, ["HADM_ID", "ICD9_CODE"], edition="MIMIC-III")
    table = table.rename({"HADM_ID": "admission", "ICD9_CODE": "code"})
    return mimic.normal_codes(raw_csv.collect(table, path), kind, path=path)


def _descriptions(folder: Path, kinds: list[str]) -> dict[str, str]:
    """Long titles, where the two dictionaries are there (they lack 160 codes that are in use)."""
    titles: dict[str, str] = {}
    for kind in kinds:
        path = raw_csv.find(folder, [TABLES[kind][1]])
        if path is not None:
            table = raw_csv.scan(path, ["ICD9_CODE", "LONG_TITLE"], edition="MIMIC-III").drop_nulls()
            code = with_dots(pl.col("ICD9_CODE").str.strip_chars().str.to_uppercase(), TABLES[kind][2])
            titles.update(raw_csv.collect(table.select(code, "LONG_TITLE"), path).iter_rows())
    return titles
