"""MIMIC-III v1.4 and MIMIC-IV: discharge summaries and ICD codes. One document is one admission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plant.corpus.codes import CodeKind, check_leading_zeros, with_dots
from plant.corpus.documents import SourceDocuments, canonical, some
from plant.corpus.sources import _raw_csv as raw_csv
from plant.ground.errors import InputError
from plant.ground.settings import Mimic3, Mimic4

CODE_TYPES = ("procedures", "diagnoses")
KINDS: dict[tuple[str, int], CodeKind] = {
    ("procedures", 9): "icd9_procedure",
    ("procedures", 10): "icd10_procedure",
    ("diagnoses", 9): "icd9_diagnosis",
    ("diagnoses", 10): "icd10_diagnosis",
}


@dataclass(frozen=True)
class _Edition:
    """Where an edition has its tables, and how it names their columns.

    Attributes:
        notes, codes, titles: places where a table may be, without ending and in any case. Titles are the long ones.
        note_columns, code_columns, title_columns: our name of a column -> its name in the file.
    """

    name: str
    notes: Sequence[str]
    codes: Mapping[str, Sequence[str]]
    titles: Mapping[str, Sequence[str]]
    note_columns: Mapping[str, str]
    code_columns: Mapping[str, str]
    title_columns: Mapping[str, str]


THREE = _Edition(
    "MIMIC-III",
    notes=("NOTEEVENTS",),
    codes={"procedures": ("PROCEDURES_ICD",), "diagnoses": ("DIAGNOSES_ICD",)},
    titles={"procedures": ("D_ICD_PROCEDURES",), "diagnoses": ("D_ICD_DIAGNOSES",)},
    note_columns={"patient": "SUBJECT_ID", "admission": "HADM_ID", "category": "CATEGORY", "text": "TEXT"},
    code_columns={"admission": "HADM_ID", "code": "ICD9_CODE"},
    title_columns={"code": "ICD9_CODE", "title": "LONG_TITLE"},
)
FOUR = _Edition(
    "MIMIC-IV",
    notes=("note/discharge", "discharge"),
    codes={one: (f"hosp/{one}_icd", f"{one}_icd") for one in CODE_TYPES},
    titles={one: (f"hosp/d_icd_{one}", f"d_icd_{one}") for one in CODE_TYPES},
    note_columns={"note": "note_id", "patient": "subject_id", "admission": "hadm_id", "text": "text"},
    code_columns={"admission": "hadm_id", "code": "icd_code", "version": "icd_version"},
    title_columns={"code": "icd_code", "version": "icd_version", "title": "long_title"},
)


def files_read(dataset: Mimic3 | Mimic4, folder: Path) -> list[Path]:
    """The tables that are read and that exist. The folder also has gigabytes of other tables."""
    edition = THREE if isinstance(dataset, Mimic3) else FOUR
    places = [edition.notes, *(tables[one] for one in CODE_TYPES for tables in (edition.codes, edition.titles))]
    return [path for place in places if (path := raw_csv.find(folder, place)) is not None]


def read(dataset: Mimic3 | Mimic4, folder: Path) -> SourceDocuments:
    """Discharge summaries with their ICD codes. One document is one admission.

    The summaries of an admission (report and addenda) are joined by a space, in file order. Codes are read as text,
    stripped and dotted. Notes without an admission are left out and counted. Of MIMIC-IV, only the codes of
    `icd_version` are read. An admission without such a code gets an empty text, so that its notes do not fill the
    memory.

    Raises:
        InputError: a file is missing, incomplete or of the other edition, a column is missing, the codes lost their
            leading zeros, or an admission belongs to two patients.
    """
    edition = THREE if isinstance(dataset, Mimic3) else FOUR
    version = dataset.icd_version if isinstance(dataset, Mimic4) else 9
    notes_path = raw_csv.require(folder, edition.notes)
    code_types = [one for one in CODE_TYPES if dataset.code_types in (one, "both")]
    paths = {one: raw_csv.require(folder, edition.codes[one]) for one in code_types}
    codes = pl.concat([_codes(edition, paths[one], KINDS[one, version], version) for one in code_types])
    notes = _notes(edition, notes_path, codes["admission"].unique())
    with_admission = notes.filter(pl.col("admission").str.len_chars() > 0)
    titles: dict[str, str] = {}
    for one in code_types:  # the dictionary of MIMIC-III lacks 160 codes that are in use
        if (path := raw_csv.find(folder, edition.titles[one])) is not None:
            titles |= _titles(edition, path, KINDS[one, version], version)
    frame, without_note = _join(with_admission, codes, where=str(folder))
    counts = {"discharge_notes": len(notes), "discharge_notes_without_admission": len(notes) - len(with_admission)}
    return SourceDocuments(frame, titles, {"codes_without_note": without_note}, counts)


def _normal_id(name: str) -> pl.Expr:
    """An id as text. A data frame with missing values writes 145834 as 145834.0."""
    return pl.col(name).str.strip_chars().str.strip_suffix(".0")


def _notes(edition: _Edition, path: Path, coded: pl.Series) -> pl.DataFrame:
    """Admission, patient and text of the discharge summaries, in file order.

    The text is stripped. It is null if it is blank, and in MIMIC-IV also if the admission is not in `coded`.
    """
    table = raw_csv.scan(path, edition.note_columns, edition=edition.name).with_row_index("row")
    text = pl.col("text").str.strip_chars()
    has_text = text.str.len_bytes() > 0
    if edition is THREE:
        table = table.filter(pl.col("category").str.strip_chars() == "Discharge summary")
    else:
        has_text &= _normal_id("admission").is_in(coded.implode())
    columns = ("row", _normal_id("admission"), _normal_id("patient"), pl.when(has_text).then(text).alias("text"))
    return raw_csv.collect(table.select(columns), path).sort("row")


def _table(edition: _Edition, path: Path, columns: Mapping[str, str], version: int) -> pl.LazyFrame:
    """A table of codes with normal codes, of one ICD version. MIMIC-III has no column for it: its codes are ICD-9."""
    table = raw_csv.scan(path, columns, edition=edition.name)
    if "version" in columns:
        table = table.filter(pl.col("version").str.strip_chars() == str(version))
    return table.with_columns(pl.col("code").str.strip_chars().str.to_uppercase())


def _codes(edition: _Edition, path: Path, kind: CodeKind, version: int) -> pl.DataFrame:
    """Admission and dotted code, in file order. Rows that lack one of them are dropped."""
    table = _table(edition, path, edition.code_columns, version).select(_normal_id("admission"), "code")
    codes = raw_csv.collect(table, path)
    codes = codes.filter(pl.col("admission").str.len_chars() > 0, pl.col("code").str.len_chars() > 0)
    check_leading_zeros(codes["code"], kind, where=str(path))
    return codes.with_columns(with_dots(pl.col("code"), kind))


def _titles(edition: _Edition, path: Path, kind: CodeKind, version: int) -> dict[str, str]:
    """Dotted code -> long title."""
    table = _table(edition, path, edition.title_columns, version).drop_nulls()
    return dict(raw_csv.collect(table.select(with_dots(pl.col("code"), kind), "title"), path).iter_rows())


def _join(notes: pl.DataFrame, codes: pl.DataFrame, *, where: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The canonical frame with one document per admission, and the admissions that have codes but no note."""
    if not len(notes):
        raise InputError(where, expected="discharge summaries with an admission id", got="none", fix="Check the files.")
    documents = notes.group_by("admission", maintain_order=True).agg(
        pl.col("patient").first(), pl.col("patient").n_unique().alias("patients"), pl.col("text").str.join(" ")
    )
    shared = documents.filter(pl.col("patients") > 1)["admission"]
    if len(shared):
        raise InputError(
            where, expected="one patient an admission", got=f"admissions of several: {some(shared)}",
            fix="Check the SUBJECT_ID column.",
        )  # fmt: skip
    labels = codes.group_by("admission", maintain_order=True).agg(pl.col("code").alias("labels"))
    frame = documents.join(labels, on="admission", how="left", maintain_order="left")
    frame = frame.with_columns(pl.col("labels").fill_null([]))
    without_note = labels.join(documents, on="admission", how="anti")["admission"].sort()
    return canonical(frame.rename({"admission": "document_id", "patient": "group_id"})), tuple(without_note)
