"""Settings: what a config may say, and what is refused with which words."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plant.ground.errors import InputError
from plant.ground.settings import forget_foreign_nulls, load
from plant.ground.settings.written import check_written

SYSTEMS = {"dataset": "notes", "backbone": "tiny", "variants": ["plant", "random_init"], "reference": "plant"}
WORDS = ["tfidf_linear", "mig_log_odds", "combined"]
SMALL: dict[str, Any] = {
    "datasets": {"notes": {"source": "mimic3", "generate": {}}, "mine": {"source": "table", "path": "a.csv"}},
    "backbones": {"tiny": {"kind": "random"}, "hub": {"kind": "pretrained", "path": "x"}, "words": {"kind": "words"}},
    "pretrainings": {"plant": {}},
    "finetunings": {"focal": {}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal"}},
    "experiments": {"demo": {**SYSTEMS, "baselines": WORDS}, "own": {**SYSTEMS, "dataset": "mine"}},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """SMALL with one key set."""
    config = copy.deepcopy(SMALL)
    *parents, key = path.split(".")
    node = config
    for parent in parents:
        node = node.setdefault(parent, {})
    node[key] = value
    return config


def test_settings_survive_the_way_through_json_and_cannot_be_changed() -> None:
    settings = load(SMALL)
    assert load(json.loads(settings.model_dump_json())) == settings
    with pytest.raises(ValueError, match="frozen"):
        settings.relevance.k = 5  # type: ignore[misc]


MISSPELT = {
    "dataset": "datasets", "datasets.notes.cleanin": "cleaning", "datasets.notes.split.sead": "seed",
    "datasets.notes.generate.admission": "admissions", "datasets.mine.text_colum": "text_column",
    "backbones.tiny.layer": "layers", "backbones.hub.lora.ranks": "rank", "relevance.min_document": "min_documents",
    "finetunings.focal.gama": "gamma", "variants.plant.finetunin": "finetuning",
    "experiments.demo.variant": "variants", "statistics.resample": "resamples",
    "backbones.words.chunk_tokens": "max_tokens",
}  # fmt: skip


@pytest.mark.parametrize("path", MISSPELT)
def test_a_misspelt_key_is_answered_with_the_nearest_of_its_section(path: str) -> None:
    with pytest.raises(InputError, match=rf"{path.split('.')[-1]}: unknown key\. Did you mean '{MISSPELT[path]}'\?"):
        load(changed(path, 1))


OUT_OF_RANGE = [
    ("relevance.k", 0, "greater than 0"),
    ("relevance.k", 10.5, "valid integer"),
    ("datasets.notes.split", {"train": 0.9}, r"datasets.notes.split: train \+ val \+ test must be 1, got 1\.2"),
    ("datasets.notes.split.ids", {"train": "a", "dev": "b"}, "'train', 'val' or 'test'"),
    ("datasets.notes.source", "mimic5", "'mimic5' .* does not match any of the expected tags"),
    ("datasets.notes.path", "folder", "give either `path` or `generate`"),
    ("datasets.mine.path", None, "give either `path` or `files`"),
    ("datasets.mine.labels_column", "text", "datasets.mine.labels_column: 'text' is the column of the text"),
    *(
        (f"datasets.mine.{key}", "text", f"datasets.mine.{key}: 'text' is the column of the text")
        for key in ("id_column", "group_column")
    ),
    (
        "datasets.mine", {"source": "table", "path": "a.csv", "split_column": "split", "split": {"table": "b"}},
        "datasets.mine.split_column: `files`, `split.ids` or `split.table` divide the documents",
    ),
    ("datasets.a b", {"source": "table", "path": "a"}, r"datasets\.a b: a name has letters .* \(got 'a b'\)"),
    ("variants.best", {"finetuning": "focal"}, "variants.best: this name belongs to the folder of the best system"),
    ("experiments.é", {**SYSTEMS}, r"experiments\.é: a name has letters"),
    ("experiments.demo.seeds", 0, r"seeds: a list is needed, such as \[0\] .* \(got 0\)"),
    ("backbones.tiny.heads", 5, "hidden_size must be a multiple of heads"),
    ("backbones.tiny", {"kind": "random", "hidden_size": 24, "heads": 8}, "must be even: llama rotates pairs"),
    ("backbones.hub.cache_features", True, "cache_features needs adapter: frozen"),
    (
        "backbones.hub",
        {"kind": "pretrained", "path": "x", "adapter": "full", "quantization": "nf4"},
        "cannot be trained",
    ),
    ("pretrainings.plant", {"reweight": True, "negatives": 0}, "pretrainings.plant.reweight: needs negatives, got 0"),
    *(
        ("pretrainings.plant", {"lists": "vocabulary", key: value}, f"plant.{key}: lists of the vocabulary")
        for key, value in {"objective": "mse", "label_min_documents": 5, "keep_epochs": True}.items()
    ),
    ("finetunings.focal.inattention", 8, "focal.inattention: needs differentiable_attention"),
    ("finetunings.focal.losers", "zero", "focal.losers: needs inattention"),
    ("finetunings.focal.static_measure", "random", "focal.static_measure: needs static_attention"),
    ("finetunings.focal.learning_rate", float("nan"), "finite number"),
    ("finetunings.focal.learning_rate", 1e38, "less than or equal to 10"),
    (
        "studies.a", {"question": "?", "cells": [{"experiment": "demo", "system": "plant", "against": "plant"}]},
        "studies.a.cells.0: 'plant' is compared with itself",
    ),
    ("experiments.demo.seeds", [2**70], "less than 4294967296"),
    *(
        (path, ["map", "map"], f"{path}: .*each may be named once") for path in ("statistics.metrics", "paper.headline")
    ),
    ("evaluation.at", [0], r"evaluation\.at\.0: Input should be greater than 0"),
    ("compute.threads", 100_000, "less than or equal to 1024"),
    ("datasets.mine", {"source": "table", "files": {}}, "datasets.mine.files: .* at least 1 item"),
    ("results", "", "results: String should have at least 1 character"),
    ("results", "~/results", "results: `~` would be a folder of this name"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), OUT_OF_RANGE, ids=str)
def test_a_value_that_cannot_be_is_refused(path: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(changed(path, value))


def test_a_number_without_a_dot_is_a_number_though_yaml_takes_it_for_a_word() -> None:
    assert yaml.safe_load("2e-3") == "2e-3"
    assert load(changed("finetunings.focal.learning_rate", "2e-3")).finetunings["focal"].learning_rate == 0.002


@pytest.mark.parametrize("spelling", ["out", "out/", "./out", ".//out"])
def test_a_folder_of_results_has_one_spelling(spelling: str) -> None:
    assert load(changed("results", spelling)).results == "out"


DANGLING = [
    ("variants.plant.pretraining", "plnt", "unknown name 'plnt'. Did you mean 'plant'?"),
    ("variants.plant.finetuning", "focl", "unknown name 'focl'. Did you mean 'focal'?"),
    ("experiments.demo.dataset", "note", "unknown name 'note'. Did you mean 'notes'?"),
    ("experiments.demo.backbone", "tini", "unknown name 'tini'. Did you mean 'tiny'?"),
    ("experiments.demo.variants", ["plant", "random"], "unknown name 'random'. Did you mean 'random_init'?"),
    ("experiments.demo.reference", "plan", "unknown name 'plan'. Did you mean 'plant'?"),
    ("experiments.demo.backbone", "words", "'words' has no network; variants need one"),
    ("experiments.demo", {**SYSTEMS, "variants": []}, "no variants and no baselines"),
    ("pretrainings.none", {}, "this name is reserved for random initialisation"),
    ("pretrainings.plant.k", 2000, "2000 is more than relevance.k = 1000"),
    ("pretrainings.plant.lists", "vocabulary", "variants.plant: plant has `lists: vocabulary`, which only differen"),
    ("evaluation.top", 10, "at least the largest of evaluation.at = 15 must be kept"),
    ("evaluation.frequency_groups", [11, 1], "lower ends must rise"),
    ("experiments", {}, "at least one is needed"),
    ("results", "{x}", "results: { } [ ] * ? make a pattern of a path, got '{x}'"),
    ("experiments.demo.seeds", [], "at least one is needed"),
    ("experiments.demo.seeds", [1, 1], "each may be named once"),
]


@pytest.mark.parametrize(("path", "value", "message"), DANGLING, ids=str)
def test_a_name_that_nothing_declares_is_refused(path: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(changed(path, value))
    assert message in str(caught.value)


def test_a_dataset_that_no_experiment_uses_is_refused_unless_a_used_one_is_cut_from_it() -> None:
    config = changed("datasets.theirs", {"source": "table", "path": "b.csv"})
    with pytest.raises(InputError, match=r"datasets\.theirs: no experiment uses it"):
        load(config)
    config["datasets"]["part"] = {"source": "subset", "of": "theirs"}
    config["experiments"]["more"] = config["experiments"]["own"] | {"dataset": "part"}
    assert load(config).whole("part") == "theirs"


def test_all_faults_come_in_one_error() -> None:
    config = changed("relevance.k", 0)
    config["finetunings"]["focal"] |= {"gama": 1, "epochs": 0}
    del config["experiments"]["demo"]["dataset"]
    with pytest.raises(InputError, match=r"4 fault\(s\)") as caught:
        load(config, where="my.yaml")
    assert str(caught.value).startswith("my.yaml: ")
    for fault in ("relevance.k", "'gamma'", "epochs", "experiments.demo.dataset: missing"):
        assert fault in str(caught.value)


def demo() -> dict[str, Any]:
    return yaml.safe_load((Path(__file__).parents[2] / "config" / "config.yaml").read_text("utf-8"))


def test_a_null_takes_back_a_key_that_another_kind_does_not_have() -> None:
    config = demo()
    config["backbones"]["tiny_llama"] |= {"path": None, "revision": None}
    with pytest.raises(InputError, match="revision: unknown key"):
        load(config)
    forget_foreign_nulls(config)
    assert load(config) == load(demo())


def test_an_epoch_of_stage_1_must_have_been_kept() -> None:
    config = demo()
    config["variants"]["plant"]["pretraining_epoch"] = 2
    with pytest.raises(InputError, match=r"needs pretrainings\.plant\.keep_epochs"):
        load(config)
    config["pretrainings"]["plant"]["keep_epochs"] = True
    assert load(config).variants["plant"].pretraining_epoch == 2
    config["variants"]["plant"]["pretraining_epoch"] = 5
    with pytest.raises(InputError, match="plant has 2 epochs, got 5"):
        load(config)


def test_a_subset_of_credentialed_notes_is_credentialed_and_one_of_a_subset_is_refused() -> None:
    config = demo()
    config["datasets"] |= {
        "notes": {"source": "mimic3", "path": "nowhere"},
        "few": {"source": "subset", "of": "notes"},
        "fewer": {"source": "subset", "of": "few"},
    }
    for name in ("notes", "few", "fewer"):
        config["experiments"][name] = config["experiments"]["demo"] | {"dataset": name}
    with pytest.raises(InputError, match=r"datasets\.fewer\.of: unknown name .few."):
        load(config)
    del config["datasets"]["fewer"], config["experiments"]["fewer"]
    settings = load(config)
    assert [settings.is_credentialed(name) for name in ("notes", "few", "synthetic_mimic3")] == [True, True, False]
    assert [settings.is_stand_in(name) for name in ("notes", "few", "synthetic_mimic3")] == [False, False, True]


WRITTEN = {
    "a section twice": ("a: {b: 1}\nc: 2\na: {d: 1}\n", ["line 3: a is already set in line 1"]),
    "a key twice": ("a:\n  - b: {c: 1, d: 2, c: 3}\n", ["line 2: a.b.c is already set in line 2"]),
    "an octal seed": ("seeds: [0, 010]\n", ["line 1: seeds: YAML reads 010 as 8"]),
    "minutes": ("a:\n  seed: 1:30\n", ["line 2: a.seed: YAML reads 1:30 as 90"]),
    "several": ("a: 07\nb: 1\nb: 2\n", ["line 1: a: YAML reads 07 as 7", "line 3: b is already set in line 2"]),
    "nothing wrong": ("\ufeffa: &x {b: 0, c: 10, d: '010', e: 0x1f}\nf: {<<: *x, b: 1}\ng: [*x, *x]\n", []),
    "no YAML": ("a: [1\n", []),
    "empty": ("", []),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_what_yaml_would_take_otherwise_in_silence_is_refused_with_the_line(tmp_path: Path, what: str) -> None:
    text, faults = WRITTEN[what]
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    if not faults:
        check_written([tmp_path / "my.yaml", tmp_path / "none.yaml"])
        return
    with pytest.raises(InputError) as caught:
        check_written([tmp_path / "my.yaml"])
    assert str(caught.value).endswith("Correct:\n  " + "\n  ".join(faults))


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[2] / "config").rglob("*.yaml")), ids=lambda file: file.name
)
def test_the_shipped_configs_say_each_thing_once(file: Path) -> None:
    check_written([file])
