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


def listed(folder: Path, pattern: str) -> dict[str, str]:
    """A split of one list of ids a split, or of one table."""
    paths = {name: str(folder / pattern.format(file)) for name, file in NAMES.items()}
    lists = published(Split(ids=paths) if "{}" in pattern else Split(table=str(folder / pattern)))
    assert lists is not None
    return lists


def sizes(lists: dict[str, str]) -> tuple[int, ...]:
    return tuple(list(lists.values()).count(name) for name in NAMES)


@pytest.fixture(scope="module")
def mimic(open_data: Path) -> Path:
    return open_data / "mimic_splits"


@pytest.fixture(scope="module")
def edin_iii(mimic: Path) -> dict[str, str]:
    return listed(mimic, "edin/mimiciii_full/mimiciii_full_splits.feather")


SIZES = {
    "caml/{}_full_hadm_ids.csv": (47_723, 1_631, 3_372),
    "caml/{}_50_hadm_ids.csv": (8_066, 1_573, 1_729),
    "edin/mimiciii_full/mimiciii_full_splits.feather": (47_719, 1_631, 3_372),
    "edin/mimiciii_50/mimiciii_50_splits.feather": (8_066, 1_573, 1_729),
    "edin/mimiciii_clean/mimiciii_clean_splits.feather": (38_401, 5_577, 8_734),
    "edin/mimiciv_icd10/mimiciv_icd10_split.feather": (89_099, 13_378, 19_802),
}


@pytest.mark.parametrize("pattern", SIZES)
def test_the_published_lists_have_their_known_sizes(mimic: Path, pattern: str) -> None:
    assert sizes(listed(mimic, pattern)) == SIZES[pattern]


def test_the_published_lists_have_the_splits_of_mimic3_full(mimic: Path, edin_iii: dict[str, str]) -> None:
    caml = listed(mimic, "caml/{}_full_hadm_ids.csv")
    top = listed(mimic, "caml/{}_50_hadm_ids.csv")
    rare = listed(LISTS, "mimic3_rare50_{}_hadm_ids.txt")
    assert set(caml) - set(edin_iii) == {"109963", "110220", "142890", "182252"}  # they have no codes
    assert sizes(rare) == (249, 20, 142)
    assert all(caml[one] == split for one, split in edin_iii.items())
    for part in (top, rare):
        assert all(edin_iii[one] == split for one, split in part.items())
    assert set(listed(mimic, "edin/mimiciii_clean/mimiciii_clean_splits.feather")) <= set(edin_iii)


def test_two_benchmarks_on_mimic4_overlap_across_train_and_test(mimic: Path) -> None:
    """5,652 of the 7,851 test admissions of the one are in the training split of the other; back, 17,856 of 19,802."""
    edin_iv = listed(mimic, "edin/mimiciv_icd10/mimiciv_icd10_split.feather")
    nguyen = listed(find(mimic / "nguyen", ROOT / "data/lists/nguyen"), "{}_full_hadm_ids.csv")
    assert sizes(nguyen) == (110_442, 4_017, 7_851)
    pairs = Counter((nguyen[one], edin_iv.get(one)) for one in nguyen)
    assert pairs["test", "train"] == 5_652
    assert pairs["train", "test"] == 17_856


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
    if name == "rare50":  # 40.7, 77.7 and 52.0 of the published list are the procedures 04.07, 77.70 and 00.52
        assert {"04.07", "77.70", "00.52"} <= set(labels)
        assert not {"40.7", "77.7", "52.0"} & set(labels)
