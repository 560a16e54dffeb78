"""ICD codes: their dots, and the most frequent mistake with them (codes that were read as integers)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import polars as pl

from plant.corpus.documents import some
from plant.ground.errors import InputError

CodeKind = Literal["icd9_diagnosis", "icd9_procedure", "icd10_diagnosis", "icd10_procedure"]

ENOUGH_CODES = 100
"""About 7% of ICD-9 codes start with 0. The probability that none of 100 codes does is .93^100 < .001."""


def with_dots(codes: pl.Expr, kind: CodeKind) -> pl.Expr:
    """Add the dot of the classification to upper-case codes. Raw tables leave it out.

    It comes after the third character of an ICD-9 or ICD-10-CM diagnosis, after the fourth of an ICD-9 E-code, and
    after the second of an ICD-9 procedure. ICD-10-PCS has no dot, and no code ends with a dot.

    >>> pl.select(with_dots(pl.lit("0407"), "icd9_procedure")).item()
    '04.07'
    """
    if kind == "icd10_procedure":
        return codes
    if kind == "icd9_diagnosis":
        return pl.when(codes.str.starts_with("E")).then(_dot_after(codes, 4)).otherwise(_dot_after(codes, 3))
    return _dot_after(codes, 2 if kind == "icd9_procedure" else 3)


def _dot_after(codes: pl.Expr, head: int) -> pl.Expr:
    dotted = codes.str.head(head) + "." + codes.str.slice(head)
    return pl.when(codes.str.len_chars() > head).then(dotted).otherwise(codes)


def check_leading_zeros(codes: pl.Series, kind: CodeKind, *, where: str) -> None:
    """Refuse codes that a spreadsheet or a data frame turned into numbers.

    Any code with the decimal part of a float (`4019.0`) shows it. For ICD-9 it also shows if no code starts with 0,
    although a code has fewer than three characters or there are `ENOUGH_CODES` different numeric codes. For ICD-10-PCS
    a numeric code with fewer than seven characters shows it. ICD-10-CM codes start with a letter.
    """
    distinct = codes.unique().sort()
    suspicious = distinct.filter(distinct.str.contains(r"^\d+\.0$"))
    numeric = distinct.filter(distinct.str.contains(r"^\d+$"))
    if kind == "icd10_procedure":
        suspicious = suspicious.extend(numeric.filter(numeric.str.len_chars() < 7))
    elif kind != "icd10_diagnosis" and not numeric.str.starts_with("0").any():
        suspicious = suspicious.extend(numeric.filter(numeric.str.len_chars() < 3))
        if not len(suspicious) and len(numeric) >= ENOUGH_CODES:
            suspicious = numeric
    if len(suspicious):
        raise InputError(
            where, expected=f"{kind.replace('_', ' ')} codes as text, with their leading zeros (0389, 0066)",
            got=f"codes that were read as numbers: {some(suspicious)} (of {len(distinct)} distinct codes)",
            fix="Take the file as it was published; a spreadsheet or pandas without dtype=str loses the zeros.",
        )  # fmt: skip


def check_label_list(wanted: Iterable[str], present: Iterable[str], *, where: str) -> None:
    """Refuse a list of labels that lost its leading zeros, as some published lists of rare ICD-9 codes did.

    The list lost them if none of its labels starts with 0, and the corpus has one of its missing labels with a 0 before
    it. Dots do not matter: 40.7 on the list is 04.07 in the corpus.
    """
    wanted, known = set(wanted), set(present)
    bare = {label.replace(".", "") for label in known}
    absent = sorted(label for label in wanted - known if label.replace(".", "").isdecimal())
    lost = [label for label in absent if "0" + label.replace(".", "") in bare]
    if lost and not any(label.startswith("0") for label in wanted):
        raise InputError(
            where, expected="labels with their leading zeros (04.07)",
            got=f"labels that are in the corpus with a 0 before them: {some(lost)}",
            fix="Restore the zeros; the list was saved from numbers.",
        )  # fmt: skip
