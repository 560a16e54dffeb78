"""MIMIC-IV: note/discharge, hosp/diagnoses_icd, hosp/procedures_icd (.csv or .csv.gz)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant.corpus.codes import CodeKind, with_dots
from plant.corpus.documents import Documents
from plant.corpus.sources import mimic, raw_csv
from plant.ground.settings import Mimic4

KINDS: dict[tuple[str, int], CodeKind] = {
    ("procedures", 9): "icd9_procedure",
    ("procedures", 10): "icd10_procedure",
    ("diagnoses", 9): "icd9_diagnosis",
    ("diagnoses", 10): "icd10_diagnosis",
}
NOTES = ["note/discharge", "discharge"]
PLACES = [
    NOTES,
    *([f"hosp/{name}", name] for kind in ("procedures", "diagnoses") for name in (f"{kind}_icd", f"d_icd_{kind}")),
]
"""What is read of the folder: for each table the paths at which it may be, without ending."""


def read(dataset: Mimic4, folder: Path) -> Documents:
    """Discharge summaries with the codes of one ICD version; one document an admission.

    Codes read as text and stripped (they may be padded with spaces), dotted, of `icd_version` only. Admissions
    without such a code are known but have no text here: their notes never stay in memory.

    Raises:
        InputError: a file is missing, incomplete or of the other edition, a column is missing, or the codes lost
            their leading zeros.
    """
    hint = "a MIMIC-III folder (source: mimic3 reads it)" if raw_csv.find(folder, ["NOTEEVENTS"]) else ""
    notes_path = raw_csv.require(folder, NOTES, hint=hint)
    kinds = [kind for kind in ("procedures", "diagnoses") if dataset.code_types in (kind, "both")]
    paths = {kind: raw_csv.require(folder, [f"hosp/{kind}_icd", f"{kind}_icd"], hint=hint) for kind in kinds}
    codes = pl.concat([_codes(paths[kind], kind, dataset.icd_version) for kind in kinds])
    notes, without_admission = _notes(notes_path, coded=codes["admission"].unique())
    documents = mimic.join(notes, codes, where=str(folder))
    return Documents(
        documents.frame,
        _descriptions(folder, kinds, dataset.icd_version),
        documents.dropped,
        {"discharge_notes": len(notes) + without_admission, "discharge_notes_without_admission": without_admission},
    )


def _notes(path: Path, *, coded: pl.Series) -> tuple[pl.DataFrame, int]:
    table = raw_csv.scan(path, ["note_id", "subject_id", "hadm_id", "text"], edition="MIMIC-IV")
    admission = mimic.normal_id("hadm_id")
    notes = raw_csv.collect(
        table.with_row_index("row").select(
            "row",
            admission.alias("admission"),
            mimic.normal_id("subject_id").alias("patient"),
            pl.when(admission.is_in(coded.implode())).then(mimic.normal_text("text")).alias("text"),
        ),
        path,
    ).sort("row")
    with_admission = notes.filter(pl.col("admission").str.len_chars() > 0)
    return with_admission, len(notes) - len(with_admission)


def _codes(path: Path, kind: str, version: int) -> pl.DataFrame:
    table = raw_csv.scan(path, ["hadm_id", "icd_code", "icd_version"], edition="MIMIC-IV")
    table = table.filter(pl.col("icd_version").str.strip_chars() == str(version))
    table = table.select(pl.col("hadm_id").alias("admission"), pl.col("icd_code").alias("code"))
    return mimic.normal_codes(raw_csv.collect(table, path), KINDS[kind, version], path=path)


def _descriptions(folder: Path, kinds: list[str], version: int) -> dict[str, str]:
    """Long titles by (code, version), where the dictionaries are there."""
    titles: dict[str, str] = {}
    for kind in kinds:
        path = raw_csv.find(folder, [f"hosp/d_icd_{kind}", f"d_icd_{kind}"])
        if path is not None:
            table = raw_csv.scan(path, ["icd_code", "icd_version", "long_title"], edition="MIMIC-IV").drop_nulls()
            table = table.filter(pl.col("icd_version").str.strip_chars() == str(version))
            code = with_dots(pl.col("icd_code").str.strip_chars().str.to_uppercase(), KINDS[kind, version])
            titles.update(raw_csv.collect(table.select(code, "long_title"), path).iter_rows())
    return titles
