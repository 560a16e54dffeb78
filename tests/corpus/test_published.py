"""What the public lists of the MIMIC benchmarks say, and that the lists shipped here are what they should be.

The open ones are looked for where the tests find open corpora; those that a rule fetches, in data/ as the config says.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from plant.corpus.codes import check_label_list
from plant.corpus.splits import published
from plant.ground.settings import Split

ROOT = Path(__file__).parents[2]
LISTS = ROOT / "config" / "lists"
NAMES = {"train": "train", "val": "dev", "test": "test"}


def find(*places: Path) -> Path:
    for place in places:
        if place.exists():
            return place
    pytest.skip(f"none of {', '.join(str(place) for place in places)} is here")


@pytest.fixture(scope="module")
def edin_iv(open_data: Path) -> dict[str, str]:
    lists = published(Split(table=str(open_data / "mimic_splits/edin/mimiciv_icd10/mimiciv_icd10_split.feather")))
    assert lists is not None
    return lists


@pytest.fixture(scope="module")
def edin_iii(open_data: Path) -> dict[str, str]:
    lists = published(Split(table=str(open_data / "mimic_splits/edin/mimiciii_full/mimiciii_full_splits.feather")))
    assert lists is not None
    return lists


def listed(folder: Path, pattern: str) -> dict[str, str]:
    lists = published(Split(ids={name: str(folder / pattern.format(file)) for name, file in NAMES.items()}))
    assert lists is not None
    return lists


def sizes(lists: dict[str, str]) -> tuple[int, ...]:
    return tuple(list(lists.values()).count(name) for name in NAMES)


def test_two_benchmarks_on_mimic4_overlap_across_train_and_test(edin_iv: dict[str, str], open_data: Path) -> None:
    """5,652 of the 7,851 test admissions of the one are in the training split of the other; back, 17,856 of 19,802."""
    nguyen = listed(find(open_data / "mimic_splits/nguyen", ROOT / "data/lists/nguyen"), "{}_full_hadm_ids.csv")
    assert sizes(nguyen) == (110_442, 4_017, 7_851)
    pairs = Counter((nguyen[one], edin_iv.get(one)) for one in nguyen)
    assert pairs["test", "train"] == 5_652
    assert pairs["train", "test"] == 17_856


def test_the_clean_split_and_the_top_50_list_admissions_of_mimic3_full(open_data: Path, edin_iii) -> None:
    folder = open_data / "mimic_splits"
    clean = published(Split(table=str(folder / "edin/mimiciii_clean/mimiciii_clean_splits.feather")))
    assert clean is not None
    assert set(clean) <= set(edin_iii)
    top = listed(folder / "caml", "{}_50_hadm_ids.csv")
    assert all(edin_iii[one] == split for one, split in top.items())


def test_the_lists_of_rare50_have_their_published_sizes_and_keep_the_splits_of_caml(edin_iii) -> None:
    rare = listed(LISTS, "mimic3_rare50_{}_hadm_ids.txt")
    assert sizes(rare) == (249, 20, 142)
    assert all(edin_iii[one] == split for one, split in rare.items())


@pytest.mark.parametrize("name", ["rare50", "top50"])
def test_the_label_lists_hold_50_codes_with_dots_and_leading_zeros(name: str) -> None:
    labels = (LISTS / f"mimic3_{name}_labels.txt").read_text().splitlines()
    assert len(set(labels)) == len(labels) == 50
    assert labels == sorted(labels)
    assert check_label_list(labels, {"04.07", "77.70", "00.52", "038.9"}, where=name) is None
    for code in labels:
        whole, _, decimals = code.partition(".")
        assert len(whole) + len(decimals) >= 3
        assert not decimals or len(whole) == (4 if code[0] == "E" else 2 if len(whole) == 2 else 3)


def test_the_clean_ups_of_rare50_are_made() -> None:
    """40.7, 77.7 and 52.0 of the published list lost a zero: they are the procedures 04.07, 77.70 and 00.52."""
    labels = set((LISTS / "mimic3_rare50_labels.txt").read_text().split())
    assert {"04.07", "77.70", "00.52"} <= labels
    assert not {"40.7", "77.7", "52.0"} & labels
