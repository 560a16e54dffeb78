"""What the two editions of MIMIC have in common: notes and codes become one document an admission."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant.corpus.codes import CodeKind, check_leading_zeros, with_dots
from plant.corpus.documents import Documents, canonical, some
from plant.ground.errors import InputError


def normal_id(name: str) -> pl.Expr:
    """An id as text; a data frame with missing values writes 145834 as 145834.0."""
    return pl.col(name).str.strip_chars().str.strip_suffix(".0")


def normal_text(name: str) -> pl.Expr:
    """A text without white space around it; null where nothing is left."""
    text = pl.col(name).str.strip_chars()
    return pl.when(text.str.len_bytes() > 0).then(text)


def normal_codes(table: pl.DataFrame, kind: CodeKind, *, path: Path) -> pl.DataFrame:
    """Columns `admission`, `code` (raw) -> the same with dotted codes; rows without either are dropped."""
    code = pl.col("code").str.strip_chars().str.to_uppercase()
    table = table.with_columns(normal_id("admission"), code.alias("code"))
    table = table.filter(pl.col("admission").str.len_chars() > 0, pl.col("code").str.len_chars() > 0)
    check_leading_zeros(table["code"], kind, where=str(path))
    return table.with_columns(with_dots(pl.col("code"), kind))


def join(notes: pl.DataFrame, codes: pl.DataFrame, *, where: str) -> Documents:
    """One document an admission: its notes joined by a space in file order, its codes in file order.

    Args:
        notes: `admission`, `patient`, `text` (null where blank), in file order.
        codes: `admission`, `code`.
        where: the folder, for errors.

    Raises:
        InputError: there are no notes, or an admission belongs to two patients.
    """
    if not len(notes):
        raise InputError(where, expected="discharge summaries with an admission id", got="none", fix="Check the files.")
    documents = notes.group_by("admission", maintain_order=True).agg(
        pl.col("patient").first(), pl.col("patient").n_unique().alias("patients"), pl.col("text").str.join(" ")
    )
    _check_patients(documents, where=where)
    labels = codes.group_by("admission", maintain_order=True).agg(pl.col("code").alias("labels"))
    documents = documents.join(labels, on="admission", how="left", maintain_order="left").with_columns(
        pl.col("labels").fill_null([])
    )
    frame = documents.rename({"admission": "document_id", "patient": "group_id"})
    without_note = codes["admission"].unique().sort()
    without_note = without_note.filter(~without_note.is_in(documents["admission"].implode()))
    return Documents(canonical(frame), dropped={"codes_without_note": tuple(without_note)})


def _check_patients(documents: pl.DataFrame, *, where: str) -> None:
    shared = documents.filter(pl.col("patients") > 1)["admission"].to_list()
    if shared:
        raise InputError(
            where,
            expected="one patient an admission",
            got=f"admissions of several: {some(shared)}",
            fix="Check the SUBJECT_ID column.",
        )
