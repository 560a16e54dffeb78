"""What `make studies` and `make fair-trial` commit: files of a study, and its sidecar in short. Pages quote them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from plant.ground.errors import InputError
from plant.ground.files import write_json
from plant.paper.studies.publish import FILES, publish, short

ROOT = Path(__file__).parents[2]
COMMITTED = sorted((ROOT / "docs" / "studies").glob("*/provenance.json"))
FACTS = {
    "settings": {"config": {"seeds": [0, 1]}},
    "inputs": {"results/a.parquet": "1f", "results/b \u00e9.parquet": "2f"},
    "outputs": {},
    "seed": None,
    "code": {"commit": "abc", "modified": False},
    "resources": {"wall_seconds": 1.5, "attempts": 1},
}


def test_published_are_the_bytes_of_the_study_and_its_sidecar_without_the_settings(tmp_path):
    study, target = tmp_path / "results", tmp_path / "docs"
    for number, name in enumerate(FILES):
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).write_bytes(bytes([number, 255]))
    write_json(study / "provenance.json", FACTS)
    (study / "other.parquet").touch()
    publish(study, target)
    assert {name: (target / name).read_bytes() for name in FILES} == {
        name: bytes([number, 255]) for number, name in enumerate(FILES)
    }
    assert json.loads((target / "provenance.json").read_text("utf-8")) == {
        name: value for name, value in FACTS.items() if name != "settings"
    }
    assert sorted(path.name for path in target.rglob("*") if path.is_file()) == sorted(
        [*(Path(name).name for name in FILES), "provenance.json"]
    )


def test_a_study_without_its_page_is_refused(tmp_path):
    write_json(tmp_path / "provenance.json", FACTS)
    with pytest.raises(InputError, match=r"page\.md: expected a file"):
        publish(tmp_path, tmp_path / "docs")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_a_committed_sidecar_is_in_the_short_form_and_names_the_files_beside_it(path):
    text = path.read_text("utf-8")
    facts = json.loads(text)
    assert {"code", "device", "platform", "resources", "seed", "versions", "started", "written"} <= facts.keys()
    assert "settings" not in facts
    assert {f"results/paper/studies/{path.parent.name}/{name}" for name in FILES} <= facts["outputs"].keys()
    assert text == short(facts)


DIFFERENCE = re.compile(r"([+−-]?\d+\.\d)\** \[([−-]?\d+\.\d), ([−-]?\d+\.\d)\]")
"""+7.6 [6.3, 8.9]"""


@pytest.mark.parametrize("page", ["README.md", *(f"docs/evidence/{name}.md" for name in
                                                 ("when-planting-helps", "fair-trial", "small-networks"))])  # fmt: skip
def test_every_difference_on_a_page_is_in_a_published_table(page: str) -> None:
    published = set()
    for file in ROOT.glob("docs/studies/*/tables/effects.csv"):
        for row in pl.read_csv(file).drop_nulls("low").iter_rows(named=True):
            value, low, high = (round(100 * row[name], 1) + 0.0 for name in ("difference", "low", "high"))
            published |= {(value, low, high), (-value, -high, -low)}  # a page may name the other system first
    found = DIFFERENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    printed = {tuple(float(number.replace("−", "-")) for number in one) for one in found}
    assert len(printed) >= 5
    assert printed <= published
