"""config/README.md and config/schema.yaml are the settings, in words and as a schema."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from snakemake.utils import update_config

from plant.ground.reference import UNITS, all_keys, is_numeric, main, render_config_reference, render_schema, unit
from plant.ground.settings import forget_foreign_nulls, load

CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.parametrize(("name", "render"), [("README.md", render_config_reference), ("schema.yaml", render_schema)])
def test_committed_file_is_in_sync_with_the_settings(name, render):
    assert (CONFIG / name).read_text(encoding="utf-8") == render(), "run `python -m plant.ground.reference`"


def test_every_key_has_a_row_with_a_meaning_and_a_source():
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| .* \| ([^|]+) \|$", render_config_reference(), re.MULTILINE)
    described = {key: (meaning, source) for key, meaning, source in rows}
    for _, key in all_keys():
        meaning, source = described[key.path]
        assert len(meaning) > 5, f"{key.path} needs a docstring in plant.ground.settings"
        assert source == "ours" or "paper" in source or "[C" in source


def test_units_belong_to_keys_that_exist_and_are_numbers():
    numeric = {key.name for _, key in all_keys() if is_numeric(key)}
    assert set(UNITS) <= numeric


@pytest.mark.parametrize(("path", "expected"), [
    ("epochs", "epochs"), ("split.val", "fraction"), ("gamma", "–"), ("source", "–"), ("memory_gb", "GB"),
    ("at", "labels"), ("train_size", "documents"),
])  # fmt: skip
def test_units_of_well_known_keys(path, expected):
    assert {unit(key) for _, key in all_keys() if key.path == path} == {expected}


def test_schema_accepts_the_shipped_configs_and_refuses_a_misspelt_key():
    schema = yaml.safe_load(render_schema())
    shipped = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in CONFIG.glob("*.yaml")
        if path.stem != "schema"
    }
    assert shipped.keys() == {"config", "miniature", "open", "own", "paper", "when"}
    overlay = shipped.pop("miniature")
    shipped["miniature"] = copy.deepcopy(shipped["paper"])
    update_config(shipped["miniature"], overlay)  # as Snakemake lays one config file over another
    forget_foreign_nulls(shipped["miniature"])
    for config in shipped.values():
        load(config)
        jsonschema.validate(config, schema)
        with pytest.raises(jsonschema.ValidationError, match="sead"):
            jsonschema.validate(config | {"statistics": {"sead": 1}}, schema)


def test_defaults_of_the_reference_are_those_of_the_paper():
    text = render_config_reference()
    defaults = {
        "gamma": "2.0", "epsilon": "0.1", "hard_negatives": "1000", "lora.rank": "16", "lora.alpha": "32.0",
        "attention_heads": "8", "pool_size": "128", "clip": "1.0", "weight_decay": "0.01", "batch_size": "8",
        "accumulation": "4", "resamples": "1000",
    }  # fmt: skip
    for key, value in defaults.items():
        assert re.search(rf"^\| `{re.escape(key)}` \|.*\| `{value}` \| paper", text, re.MULTILINE), key


def test_both_files_are_written(tmp_path):
    main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "schema.yaml"}
