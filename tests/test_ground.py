"""The ground floor: errors, files, seeds and settings."""

import copy
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors import safe_open

from plant import files, seeds
from plant.errors import InputError, nearest
from plant.settings import Settings, load

# --- errors ---------------------------------------------------------------------------------------


def test_an_input_error_says_where_what_was_expected_what_came_and_what_to_do() -> None:
    error = InputError("labels.csv", expected="a column `label`", got="columns a, b", fix="Name it in the config.")
    assert str(error) == "labels.csv: expected a column `label`, got columns a, b. Name it in the config."


def test_an_input_error_survives_the_way_back_from_a_worker_process() -> None:
    error = InputError("where", expected="this", got="that", fix="Do it.")
    twin = copy.copy(error)  # by the protocol that pickling uses too
    assert isinstance(twin, InputError)
    assert (twin.where, twin.expected, twin.got, twin.fix, str(twin)) == ("where", "this", "that", "Do it.", str(error))


def test_a_misspelt_name_is_answered_with_the_nearest_and_a_strange_one_with_all() -> None:
    assert nearest("lerning_rate", ["epochs", "learning_rate"]) == "Did you mean 'learning_rate'?"
    assert nearest("qqqq", ["b", "a"]) == "Known: a, b."
    assert nearest("qqqq", []) == "Known: none."


# --- files ----------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    """Everything below a folder, hidden files too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_file_appears_whole_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.txt"
    with files.atomic_path(target) as partial:
        partial.write_text("half")
        assert not target.exists()
        partial.write_text("whole")
    assert target.read_text() == "whole"
    assert names(tmp_path) == ["new", "new/a.txt"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, failure: type[BaseException]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(failure), files.atomic_path(target) as partial:
        partial.write_text("half")
        raise failure
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for name in ("old", "new"):
        with files.atomic_path(target) as partial:
            partial.mkdir()
            (partial / name).write_text(name)
    assert names(tmp_path) == ["model", "model/new"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    with pytest.raises(ValueError, match="stop"), files.atomic_path(target) as partial:
        partial.mkdir()
        (partial / "new").write_text("half")
        raise ValueError("stop")
    assert names(tmp_path) == ["model", "model/old"]


def test_json_is_read_back_and_does_not_depend_on_the_order_of_keys(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None, True], "a": {"ü": "text"}}
    files.write_json(tmp_path / "1.json", value)
    files.write_json(tmp_path / "2.json", dict(reversed(value.items())))
    assert files.read_json(tmp_path / "1.json") == value
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_json_refuses_what_is_no_number_and_keeps_the_old_file(tmp_path: Path, bad: float) -> None:
    files.write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "a.json", {"value": bad})
    assert json.loads((tmp_path / "a.json").read_text()) == 1
    assert names(tmp_path) == ["a.json"]


DTYPES = st.sampled_from([np.dtype(name) for name in ("int32", "int64", "float16", "float32", "float64", "bool")])


@given(array=arrays_of.arrays(DTYPES, arrays_of.array_shapes(max_dims=3, max_side=5, min_side=0)))
def test_any_array_is_read_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray) -> None:
    target = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    files.write_arrays(target, {"plain": array, "turned": array.T})
    back = files.read_arrays(target)
    for name, expected in (("plain", array), ("turned", array.T)):
        assert back[name].dtype == expected.dtype
        assert back[name].shape == expected.shape
        assert back[name].tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_arrays_and_tensors_have_the_mode_that_the_umask_asks_for(tmp_path: Path, mask: int) -> None:
    import torch

    from plant.checkpoints import save_tensors

    before = os.umask(mask)
    try:
        files.write_arrays(tmp_path / "a", {"x": np.zeros(2)})
        save_tensors(tmp_path / "b", {"x": torch.zeros(2)})
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in "ab"} == {0o666 & ~mask}


def test_the_metadata_of_arrays_is_kept(tmp_path: Path) -> None:
    files.write_arrays(tmp_path / "a.safetensors", {"x": np.arange(3)}, {"natural_threshold": "0"})
    with safe_open(tmp_path / "a.safetensors", framework="numpy") as handle:
        assert handle.metadata() == {"natural_threshold": "0"}


def test_a_table_is_read_back(tmp_path: Path) -> None:
    rows = [{"label": "a", "n": 1}, {"label": "b", "n": None}]
    files.write_table(tmp_path / "a.parquet", rows)
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == rows


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write_with(tmp_path / "a.txt", write)
    assert names(tmp_path) == []
    files.write_with(tmp_path / "a.txt", lambda path: path.write_text("whole"))
    assert (tmp_path / "a.txt").read_text() == "whole"


@pytest.mark.parametrize("read", [files.require_file, files.read_json, files.read_arrays])
def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    with pytest.raises(InputError, match=r"gone: expected a file, got nothing there"):
        read(tmp_path / "gone")
    with pytest.raises(InputError, match=r"expected a file, got a folder"):
        read(tmp_path)


def test_a_truncated_array_file_is_named(tmp_path: Path) -> None:
    target = tmp_path / "a.safetensors"
    files.write_arrays(target, {"x": np.arange(100)})
    target.write_bytes(target.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"a\.safetensors: expected a safetensors file, got an unreadable one"):
        files.read_arrays(target)


# --- seeds ----------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_numbers_again_and_another_purpose_gives_others() -> None:
    first, again = (seeds.generator(7, "pretraining", "order").random(50) for _ in range(2))
    assert np.array_equal(first, again)
    others = [seeds.generator(8, "pretraining", "order"), seeds.generator(7, "pretraining", "dropout")]
    assert all(not np.isin(first, other.random(50)).any() for other in others)


def test_a_stream_is_the_digest_of_its_names() -> None:
    by_hand = int(hashlib.sha256(b"7/a/3").hexdigest()[:16], 16) // 2
    assert seeds.stream(7, "a", 3) == by_hand


@given(seed=st.integers(), purpose=st.lists(st.text(), max_size=3))
def test_a_stream_fits_what_torch_takes_as_a_seed(seed: int, purpose: list[str]) -> None:
    assert 0 <= seeds.stream(seed, *purpose) < 2**63


# --- settings -------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "datasets": {"notes": {"source": "mimic3", "generate": {}}, "mine": {"source": "table", "path": "a.csv"}},
    "backbones": {"tiny": {"kind": "random"}, "hub": {"kind": "pretrained", "path": "x"}, "words": {"kind": "words"}},
    "pretrainings": {"plant": {}},
    "finetunings": {"focal": {}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal"}},
    "experiments": {
        "demo": {
            "dataset": "notes",
            "backbone": "tiny",
            "variants": ["plant", "random_init"],
            "baselines": ["tfidf_linear", "mig_log_odds", "combined"],
            "reference": "plant",
        }
    },
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


def test_defaults_are_those_of_the_paper() -> None:
    settings = load(SMALL)
    stage1, stage2, hub = settings.pretrainings["plant"], settings.finetunings["focal"], settings.backbones["hub"]
    assert (settings.relevance.k, stage1.k, stage1.sigma) == (1000, 1000, 1.0)
    assert (stage2.gamma, stage2.epsilon, stage2.hard_negatives) == (2.0, 0.1, 1000)
    for stage in (stage1, stage2):
        assert (stage.learning_rate, stage.weight_decay, stage.clip) == (2e-5, 0.01, 1.0)
        assert (stage.batch_size, stage.accumulation, stage.patience) == (8, 4, 2)
    assert (hub.attention_heads, hub.pool_size) == (8, 128)
    assert (hub.lora.rank, hub.lora.alpha, hub.lora.dropout) == (16, 32.0, 0.05)
    assert (settings.statistics.resamples, settings.statistics.alpha) == (1000, 0.05)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(SMALL).relevance.k = 5  # type: ignore[misc]


def test_settings_survive_the_way_through_json() -> None:
    settings = load(SMALL)
    assert load(json.loads(settings.model_dump_json())) == settings


MISSPELT = {
    "dataset": "datasets",
    "datasets.notes.cleanin": "cleaning",
    "datasets.notes.split.sead": "seed",
    "datasets.notes.generate.admission": "admissions",
    "datasets.mine.text_colum": "text_column",
    "backbones.tiny.layer": "layers",
    "backbones.hub.lora.ranks": "rank",
    "relevance.min_document": "min_documents",
    "pretrainings.plant.epoch": "epochs",
    "finetunings.focal.gama": "gamma",
    "variants.plant.finetunin": "finetuning",
    "experiments.demo.variant": "variants",
    "evaluation.tops": "top",
    "statistics.resample": "resamples",
}


@pytest.mark.parametrize("path", MISSPELT)
def test_a_misspelt_key_is_answered_with_the_nearest_of_its_section(path: str) -> None:
    with pytest.raises(InputError, match=rf"{path.split('.')[-1]}: unknown key\. Did you mean '{MISSPELT[path]}'\?"):
        load(changed(path, 1))


OUT_OF_RANGE = [
    ("relevance.k", 0, "greater than 0"),
    ("relevance.k", 10.5, "valid integer"),
    ("relevance.k", "many", "valid integer"),
    ("datasets.notes.split", {"train": 0.9}, r"train \+ val \+ test must be 1, got 1\.2"),
    ("datasets.notes.split.ids", {"train": "a", "dev": "b"}, "'train', 'val' or 'test'"),
    ("datasets.notes.source", "mimic5", "'mimic5' .* does not match any of the expected tags"),
    ("datasets.notes.path", "folder", "give either `path` or `generate`"),
    ("datasets.mine.path", None, "give either `path` or `files`"),
    ("datasets.a b", {"source": "table", "path": "a"}, "should match pattern"),
    ("backbones.tiny.heads", 5, "hidden_size must be a multiple of heads"),
    ("backbones.hub.cache_features", True, "cache_features needs adapter: frozen"),
    (
        "backbones.hub",
        {"kind": "pretrained", "path": "x", "adapter": "full", "quantization": "nf4"},
        "cannot be trained",
    ),
    ("pretrainings.plant.sigma", -1, "greater than 0"),
    ("pretrainings.plant.measure", "mi", "'mig', 'term_frequency'"),
    ("finetunings.focal.epsilon", 0.5, "less than 0.5"),
    ("finetunings.focal.learning_rate", float("nan"), "greater than 0"),
    ("evaluation", 3, "valid dictionary"),
    ("statistics.confidence", 1, "less than 1"),
]


@pytest.mark.parametrize(("path", "value", "message"), OUT_OF_RANGE, ids=[row[0] for row in OUT_OF_RANGE])
def test_a_value_that_cannot_be_is_refused(path: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(changed(path, value))


DANGLING = [
    ("variants.plant.pretraining", "plnt", "unknown name 'plnt'. Did you mean 'plant'?"),
    ("variants.plant.finetuning", "focl", "unknown name 'focl'. Did you mean 'focal'?"),
    ("experiments.demo.dataset", "note", "unknown name 'note'. Did you mean 'notes'?"),
    ("experiments.demo.backbone", "tini", "unknown name 'tini'. Did you mean 'tiny'?"),
    ("experiments.demo.variants", ["plant", "random"], "unknown name 'random'. Did you mean 'random_init'?"),
    ("experiments.demo.reference", "plan", "unknown name 'plan'. Did you mean 'plant'?"),
    ("experiments.demo.backbone", "words", "'words' has no network; variants need one"),
    ("experiments.demo.baselines", ["combined"], "'combined' needs 'tfidf_linear' and 'mig_log_odds' beside it"),
    (
        "experiments.demo",
        {**SMALL["experiments"]["demo"], "variants": [], "baselines": []},
        "no variants and no baselines",
    ),
    ("variants.combined", {"finetuning": "focal"}, "this name belongs to a baseline"),
    ("pretrainings.none", {}, "this name is reserved for random initialisation"),
    ("pretrainings.plant.k", 2000, "2000 is more than relevance.k = 1000"),
    ("backbones", {"tiny": {"kind": "random"}}, "they need a backbone named 'words'"),
    ("evaluation.top", 10, "at least the largest of evaluation.at = 15 must be kept"),
    ("evaluation.frequency_groups", [11, 1], "lower ends must rise"),
    ("experiments", {}, "at least one is needed"),
    ("experiments.demo.seeds", [], "at least one is needed"),
    ("experiments.demo.seeds", [1, 1], "each may be named once"),
]


@pytest.mark.parametrize(("path", "value", "message"), DANGLING, ids=[f"{row[0]}={row[1]}"[:50] for row in DANGLING])
def test_a_name_that_nothing_declares_is_refused(path: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(changed(path, value))
    assert message in str(caught.value)


def test_all_faults_come_in_one_error() -> None:
    config = changed("relevance.k", 0)
    config["finetunings"]["focal"] |= {"gama": 1, "epochs": 0}
    del config["experiments"]["demo"]["dataset"]
    with pytest.raises(InputError, match=r"4 fault\(s\)") as caught:
        load(config, where="my.yaml")
    assert str(caught.value).startswith("my.yaml: ")
    for fault in ("relevance.k", "'gamma'", "epochs", "experiments.demo.dataset: missing"):
        assert fault in str(caught.value)


def test_every_section_forbids_unknown_keys() -> None:
    schema = Settings.model_json_schema()
    assert schema["additionalProperties"] is False
    sections = {name: model for name, model in schema["$defs"].items() if "properties" in model}
    assert [name for name, model in sections.items() if model.get("additionalProperties", True)] == []
