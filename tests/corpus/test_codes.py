"""Dots and lost zeros, against published examples and an independent reading of the rule."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.corpus.codes import CodeKind, check_label_list, check_leading_zeros, with_dots
from plant.ground.errors import InputError

PUBLISHED = [
    ("icd9_diagnosis", "V3001", "V30.01"),
    ("icd9_diagnosis", "E8889", "E888.9"),
    ("icd9_diagnosis", "E888", "E888"),
    ("icd9_diagnosis", "0389", "038.9"),
    ("icd9_diagnosis", "042", "042"),
    ("icd9_diagnosis", "25000", "250.00"),
    ("icd9_procedure", "0407", "04.07"),
    ("icd9_procedure", "0066", "00.66"),
    ("icd9_procedure", "640", "64.0"),
    ("icd10_diagnosis", "I10", "I10"),
    ("icd10_diagnosis", "E119", "E11.9"),
    ("icd10_diagnosis", "S72001A", "S72.001A"),
    ("icd10_procedure", "02HV33Z", "02HV33Z"),
]


def dotted(code: str, kind: CodeKind) -> str:
    return pl.DataFrame({"code": [code]}).select(with_dots(pl.col("code"), kind)).item()


@pytest.mark.parametrize(("kind", "raw", "expected"), PUBLISHED)
def test_codes_get_the_dot_of_their_classification(kind: CodeKind, raw: str, expected: str) -> None:
    assert dotted(raw, kind) == expected


@given(st.text("0123456789EVABCXYZ", min_size=1, max_size=7), st.sampled_from([kind for kind, *_ in PUBLISHED]))
def test_without_its_dot_a_code_is_the_raw_code_and_no_dot_is_last(raw: str, kind: CodeKind) -> None:
    code = dotted(raw, kind)
    assert code.replace(".", "") == raw
    assert not code.endswith(".")


@pytest.mark.parametrize("kind", ["icd9_diagnosis", "icd9_procedure"])
def test_integers_made_of_a_hundred_codes_are_detected(kind: CodeKind) -> None:
    whole = [f"{code:04d}" for code in range(100, 1000, 5)] + [f"{code}" for code in range(4000, 4100)]
    check_leading_zeros(pl.Series(whole), kind, where="file")
    lost = [str(int(code)) for code in whole]
    with pytest.raises(InputError, match="leading zeros"):
        check_leading_zeros(pl.Series(lost), kind, where="file")


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("icd9_diagnosis", ["4019", "41"]),  # 0041
        ("icd9_procedure", ["9671", "66"]),  # 0066
        ("icd9_diagnosis", ["4019.0", "0389"]),  # a float
        ("icd10_procedure", ["02HV33Z", "16070"]),  # 0016070
    ],
)
def test_few_codes_betray_lost_zeros_by_their_shape(kind: CodeKind, codes: list[str]) -> None:
    with pytest.raises(InputError, match="leading zeros"):
        check_leading_zeros(pl.Series(codes), kind, where="file")


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("icd9_diagnosis", ["4019", "V3001", "E8889"]),
        ("icd9_diagnosis", []),
        ("icd9_procedure", ["0066", "66"]),
        ("icd10_diagnosis", ["I10", "E119"]),
        ("icd10_procedure", ["0016070", "02HV33Z"]),
    ],
)
def test_whole_codes_pass(kind: CodeKind, codes: list[str]) -> None:
    assert check_leading_zeros(pl.Series(codes, dtype=pl.String), kind, where="file") is None


def test_the_published_list_of_rare_codes_is_recognised_as_damaged() -> None:
    with pytest.raises(InputError, match=r"40\.7"):
        check_label_list({"40.7", "77.7", "V30.01"}, {"04.07", "77.70", "V30.01"}, where="rare50")


def test_a_list_with_zeros_may_name_labels_that_the_corpus_lacks() -> None:
    assert check_label_list({"04.07", "40.8"}, {"04.07", "04.08"}, where="list") is None
