"""ICD codes: dots, and the field's most frequent bug (codes that were read as integers)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import polars as pl

from plant.corpus.documents import some
from plant.ground.errors import InputError

CodeKind = Literal["icd9_diagnosis", "icd9_procedure", "icd10_diagnosis", "icd10_procedure"]

ENOUGH_CODES = 100
"""About 7% of ICD-9 codes begin with 0: among 100 distinct ones, none does with probability .93^100 < .001."""


def with_dots(codes: pl.Expr, kind: CodeKind) -> pl.Expr:
    """Put the dot where the classification prints it (raw tables leave it out).

    ICD-9 diagnosis: after the third character, after the fourth of an E-code; ICD-9 procedure: after the second;
    ICD-10-CM: after the third; ICD-10-PCS: none. No dot where nothing would follow it.

    Args:
        codes: upper-case codes without dots and without white space.
        kind: the classification.

    >>> frame = pl.DataFrame({"code": ["V3001", "E8889", "042"]})
    >>> frame.select(with_dots(pl.col("code"), "icd9_diagnosis"))["code"].to_list()
    ['V30.01', 'E888.9', '042']
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
    """Refuse codes that a spreadsheet or a data frame has turned into numbers.

    Signs, for ICD-9: a code with a decimal part that a float leaves (`4019.0`); or no code that begins with 0,
    although some code is shorter than three characters or there are `ENOUGH_CODES` distinct numeric codes.
    For ICD-10-PCS: a numeric code shorter than seven characters. ICD-10-CM codes begin with a letter.

    Raises:
        InputError: with some of the codes that show it.
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
    """Refuse a list of labels that lost its leading zeros (as published lists of rare ICD-9 codes did).

    Sign: no numeric label on the list begins with 0, and some label that the corpus lacks is there with a 0 before
    it, dots apart (40.7 on the list, 04.07 in the corpus).

    Raises:
        InputError: with some of the labels that show it.
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
