"""docs/reference/config.md is the settings in words, and every shipped study is one that they accept."""

from functools import cache
from pathlib import Path

import pytest
from shipped import shipped

from plant.ground.reference import render, tables
from plant.ground.settings import load

ROOT = Path(__file__).parents[2]


@cache
def rows() -> dict[str, list[str]]:
    """Path of a key -> the cells of its row on the page, read as a reader reads them."""
    found, path = {}, ""
    for line in render().splitlines():
        if line.startswith("#"):
            path = line.partition("`")[2].partition("`")[0]
        elif line.startswith("| `"):
            key, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found[f"{path}.{key.strip('`')}"] = cells
    return found


def test_the_page_is_in_step_with_the_settings():
    assert (ROOT / "docs/reference/config.md").read_text(encoding="utf-8") == render(), "run `make reference`"


def test_every_key_has_a_row_with_a_meaning():
    described = rows()
    for path, _, _, keys in tables():
        for key in keys:
            assert len(described[f"{path}.{key}"][0]) > 5, f"{path}.{key} needs a docstring in plant.ground.settings"


def test_keys_of_the_synthetic_sources_stand_once():
    assert len([line for line in render().splitlines() if line.startswith("| `indicator_rate` |")]) == 1
    assert len([path for path, *_ in tables() if path == "datasets.<name>.generate"]) == 1


@pytest.mark.parametrize(("path", "values", "default"), [
    ("finetunings.<name>.gamma", "number ≥ 0", "`2.0`"),
    ("pretrainings.<name>.k", "integer > 0", "`1000`"),
    ("finetunings.<name>.epsilon", "number ≥ 0 and < 0.5", "`0.1`"),
    ("finetunings.<name>.hard_negatives", "integer > 0 or none", "`1000`"),
    ("finetunings.<name>.clip", "number > 0", "`1.0`"),
    ("finetunings.<name>.weight_decay", "number ≥ 0 and ≤ 100", "`0.01`"),
    ("finetunings.<name>.batch_size", "integer > 0", "`8`"),
    ("finetunings.<name>.accumulation", "integer > 0", "`4`"),
    ("backbones.<name>.lora.rank", "integer > 0 and ≤ 65,536", "`16`"),
    ("backbones.<name>.lora.alpha", "number > 0", "`32.0`"),
    ("backbones.<name>.attention_heads", "integer > 0 and ≤ 65,536", "`8`"),
    ("backbones.<name>.pool_size", "integer > 0 and ≤ 65,536", "`128`"),
    ("statistics.resamples", "integer > 0 and ≤ 1,000,000", "`1000`"),
    ("evaluation.at", "list of: integer > 0", "`[1, 3, 5, 8, 15]`"),
    ("experiments.<name>.dataset", "text", "**required**"),
    ("variants.<name>.evidence", "text or none", "none"),
])  # fmt: skip
def test_values_and_the_defaults_of_the_paper_are_those_that_a_reader_sees(path, values, default):
    assert rows()[path][1:] == [values, default]


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "config/studies").glob("*.yaml")))
def test_every_study_is_accepted_alone(name):
    """Laid over what its head names. test_budgets.py loads the other configs, and all studies."""
    fair = [f"fair_{part}.yaml" for part in ("trial", "encoders", "ablations", "starts", "words", "gpu")]
    below = ["base.yaml", *(fair[: fair.index(name)] if name in fair else [])]
    parts = ["../paper.yaml", name] if name == "fair_mimic.yaml" else dict.fromkeys([*below, name])
    assert load(shipped(*(f"studies/{part}" for part in parts))).experiments
