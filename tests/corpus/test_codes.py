"""Dots and lost zeros, against published examples and an independent reading of the rule."""

from pathlib import Path

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
def test_codes_get_the_dot_of_their_classification(kind, raw, expected):
    assert dotted(raw, kind) == expected


@given(st.text("0123456789EVABCXYZ", min_size=1, max_size=7), st.sampled_from([kind for kind, *_ in PUBLISHED]))
def test_without_its_dot_a_code_is_the_raw_code_and_no_dot_is_last(raw, kind):
    code = dotted(raw, kind)
    assert code.replace(".", "") == raw
    assert not code.endswith(".")


WHOLE = [f"{code:04d}" for code in range(100, 1000, 5)] + [f"{code}" for code in range(4000, 4100)]
CODES = [
    ("icd9_diagnosis", [str(int(code)) for code in WHOLE], False),  # a hundred integers
    ("icd9_diagnosis", ["4019", "41"], False),  # 0041
    ("icd9_procedure", ["9671", "66"], False),  # 0066
    ("icd9_diagnosis", ["4019.0", "0389"], False),  # a float
    ("icd10_procedure", ["02HV33Z", "16070"], False),  # 0016070
    ("icd9_diagnosis", WHOLE, True),
    ("icd9_diagnosis", ["4019", "V3001", "E8889"], True),
    ("icd9_diagnosis", [], True),
    ("icd9_procedure", ["0066", "66"], True),
    ("icd10_diagnosis", ["I10", "E119"], True),
    ("icd10_procedure", ["0016070", "02HV33Z"], True),
]


@pytest.mark.parametrize(("kind", "codes", "whole"), CODES)
def test_codes_that_lost_their_leading_zeros_are_refused_and_whole_ones_pass(kind, codes, whole):
    series = pl.Series(codes, dtype=pl.String)
    if whole:
        assert check_leading_zeros(series, kind, where="file") is None
    else:
        with pytest.raises(InputError, match="leading zeros"):
            check_leading_zeros(series, kind, where="file")


def test_the_published_list_of_rare_codes_is_recognised_as_damaged():
    with pytest.raises(InputError, match=r"40\.7"):
        check_label_list({"40.7", "77.7", "V30.01"}, {"04.07", "77.70", "V30.01"}, where="rare50")
    # a list with zeros may name labels that the corpus lacks
    assert check_label_list({"04.07", "40.8"}, {"04.07", "04.08"}, where="list") is None


LISTS = Path(__file__).parents[2] / "config" / "lists"


@pytest.mark.parametrize("name", ["rare50", "top50"])
def test_the_label_lists_hold_50_codes_with_dots_and_leading_zeros(name):
    labels = (LISTS / f"mimic3_{name}_labels.txt").read_text().splitlines()
    assert len(set(labels)) == len(labels) == 50
    assert labels == sorted(labels)
    assert check_label_list(labels, {"04.07", "77.70", "00.52", "038.9"}, where=name) is None
    for code in labels:
        whole, _, decimals = code.partition(".")
        assert len(whole) + len(decimals) >= 3
        assert not decimals or len(whole) == (4 if code[0] == "E" else 2 if len(whole) == 2 else 3)
    if name == "rare50":  # 40.7, 77.7 and 52.0 of the published list are the procedures 04.07, 77.70 and 00.52
        assert {"04.07", "77.70", "00.52"} <= set(labels)
        assert not {"40.7", "77.7", "52.0"} & set(labels)
