"""Settings: what a config may say, and what is refused with which words."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plant.ground.errors import InputError
from plant.ground.settings import Settings, forget_foreign_nulls, load

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
        },
        "own": {"dataset": "mine", "backbone": "tiny", "variants": ["plant"], "reference": "plant"},
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


SEEDS = ("relevance.seed", "statistics.seed", "datasets.notes.split.seed", "datasets.notes.generate.seed",
         "backbones.tiny.seed")  # fmt: skip
LISTS = ("evaluation.at", "evaluation.frequency_groups", "statistics.metrics", "paper.metrics", "paper.headline",
         "baselines.svm_c", "baselines.log_odds_k", "baselines.mention_slack", "baselines.weights",
         "backbones.hub.lora.targets")  # fmt: skip
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
    ("finetunings.focal.epsilon", 0.5, "less than 0.5"),
    ("finetunings.focal.learning_rate", float("nan"), "finite number"),
    ("finetunings.focal.learning_rate", float("inf"), "finite number"),
    ("finetunings.focal.clip", float("inf"), "finite number"),
    ("finetunings.focal.learning_rate", 1e38, "less than or equal to 10"),
    ("pretrainings.plant.head_learning_rate", 1e38, "less than or equal to 10"),
    ("finetunings.focal.attention_rate", 1e38, "less than or equal to 1000"),
    ("finetunings.focal.shortlist", 10**9, "less than or equal to 100000"),
    ("compute.threads", 100_000, "less than or equal to 1024"),
    ("baselines.character_ngrams", [6, 4], "the shortest comes first, got 6 and 4"),
    *((path, value, "0" if value < 0 else "less than 4294967296") for value in (-1, 2**70) for path in SEEDS),
    ("experiments.demo.seeds", [2**70], "less than 4294967296"),
    *((path, [], "at least 1 item") for path in LISTS),
    ("evaluation", 3, "valid dictionary"),
    ("statistics.confidence", 1, "less than 1"),
]


@pytest.mark.parametrize(
    ("path", "value", "message"), OUT_OF_RANGE, ids=[f"{row[0]}={row[1]}"[:50] for row in OUT_OF_RANGE]
)
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
    (
        "experiments.demo",
        {**SMALL["experiments"]["demo"], "variants": [], "baselines": []},
        "no variants and no baselines",
    ),
    ("pretrainings.none", {}, "this name is reserved for random initialisation"),
    ("pretrainings.plant.k", 2000, "2000 is more than relevance.k = 1000"),
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


def test_every_section_forbids_unknown_keys() -> None:
    schema = Settings.model_json_schema()
    assert schema["additionalProperties"] is False
    sections = {name: model for name, model in schema["$defs"].items() if "properties" in model}
    assert [name for name, model in sections.items() if model.get("additionalProperties", True)] == []


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
    with pytest.raises(InputError, match="plant has 4 epochs, got 5"):
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
