"""One entry a baseline: what the config may name, and that a new module in the folder is all that a new one takes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from plant.baselines.registry import Baseline, baselines, channels, check
from plant.ground.errors import InputError
from plant.ground.settings import load
from plant.paper.systems import list_systems

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {
    "datasets": {"small": {"source": "mimic3", "path": "x"}},
    "backbones": {"tiny": {"kind": "random"}, "words": {"kind": "words"}},
    "finetunings": {"focal": {}},
    "evidences": {"both": {"channels": ["network", "linear"]}},
    "variants": {"plain": {"finetuning": "focal"}, "more": {"finetuning": "focal", "evidence": "both"}},
    "experiments": {
        "one": {
            "dataset": "small", "backbone": "tiny", "variants": ["plain", "more"], "reference": "plain",
            "baselines": ["tfidf_linear"],
        }
    },
}  # fmt: skip
BARE = {**CONFIG["experiments"]["one"], "variants": ["plain"]}


@pytest.mark.parametrize(
    ("section", "entry", "value", "said"),
    [
        ("experiments", "one", {**BARE, "baselines": ["tfidf"]}, "unknown name 'tfidf'. Did you mean 'tfidf_linear'?"),
        ("experiments", "one", {**BARE, "baselines": ["combined"]},
         "'combined' needs 'tfidf_linear' and 'mig_log_odds' beside it"),
        ("experiments", "one", {**BARE, "baselines": ["mentions"]},
         "experiments.one: mentions cannot be made, the dataset small has no mentions"),
        ("evidences", "both", {"channels": ["lineal"]}, "unknown name 'lineal'. Did you mean 'linear'?"),
        ("evidences", "both", {"channels": ["network", "categories"]},
         "more cannot be made, the dataset small has no categories of labels (name `category_ends`)"),
        ("evidences", "both", {"channels": ["network", "mentions"]}, "the dataset small has no mentions"),
        ("evidences", "both", {"channels": ["prior"]}, "at least one channel other than prior is needed"),
        ("evidences", "both", {"channels": ["linear", "linear"]}, "each may be named once"),
        ("variants", "more", {"finetuning": "focal", "evidence": "bth"}, "unknown name 'bth'. Did you mean 'both'?"),
        ("variants", "combined", {"finetuning": "focal"}, "variants.combined: this name belongs to a baseline"),
        ("backbones", "words", None, "experiments.one: tfidf_linear and more need a backbone named 'words'"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(section, entry, value, said):
    check(load(CONFIG))
    changed = {**CONFIG[section], entry: value} if value else {"tiny": {"kind": "random"}}
    with pytest.raises(InputError) as error:
        check(load({**CONFIG, section: changed}))
    assert said in str(error.value)


def test_what_the_dataset_has_is_not_missed():
    own = {"source": "table", "path": "x", "mentions": "y", "category_ends": "."}
    experiment = {**BARE, "baselines": ["mentions", "category_log_odds"]}
    check(load({**CONFIG, "datasets": {"small": own}, "experiments": {"one": experiment}}))


def test_an_entry_is_all_that_checks_and_titles_read(monkeypatch):
    toy = Baseline("toy", "A toy", lambda sources: None, inputs=("labels", "tokens", "tfidf_linear"), channel="game")
    monkeypatch.setitem(baselines(), "toy", toy)
    assert channels()["game"] is toy
    experiment = {**BARE, "variants": ["more"], "reference": "more", "baselines": ["toy", "tfidf_linear"]}
    evidences = {"both": {"channels": ["network", "game"]}}
    settings = load({**CONFIG, "evidences": evidences, "experiments": {"one": experiment}})
    check(settings)
    assert {"A toy", "TF-IDF + linear"} < {each.title for each in list_systems(settings, settings.experiments["one"])}


def test_reading_the_entries_imports_neither_scikit_learn_nor_numba():
    code = "import sys; from plant.baselines.registry import baselines; print(len(baselines()), *sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert int(said[0]) == len(baselines()) > 0
    assert not {"sklearn", "numba", "torch"} & set(said)


TOY = '''
import numpy as np
from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Outcome, ndcg
from plant.baselines.words import table_of


def toy(sources):
    """A label's score is its number of training documents."""
    labels = sources.labels
    scores = {s: np.tile(labels.counts[0].astype(np.float32), (sources.truth(s).shape[0], 1)) for s in SPLITS}
    weights = table_of(labels.names, ["toy"] * labels.n_labels, labels.counts[0].astype(float))
    return Outcome(scores, None, {"ndcg@5": ndcg(scores["val"], sources.truth("val"))}, weights)


def features(_folder, _labels):
    return lambda document, label: {"toy": 1.0}


register(Baseline("toy", "A toy", toy, inputs=("labels",), channel="game", features=features))
'''


@pytest.mark.slow
def test_a_module_in_the_folder_is_a_rule_a_system_and_a_channel(tmp_path):
    for part in ("src", "workflow", "profiles", "config", "envs"):
        shutil.copytree(ROOT / part, tmp_path / "house" / part)
    shutil.copy(ROOT / "Snakefile", tmp_path / "house")
    (tmp_path / "house/src/plant/baselines/toy.py").write_text(TOY, encoding="utf-8")
    generated = {"admissions": 160, "codes": 25, "words": 400, "words_per_note": 25}
    experiment = {**BARE, "backbone": "tiny", "variants": ["more"], "reference": "more", "seeds": [0], "report": False}
    config = {
        **CONFIG, "datasets": {"small": {"source": "mimic3", "credentialed": False, "generate": generated}},
        "evidences": {"both": {"channels": ["game", "prior"]}},
        "experiments": {"one": {**experiment, "baselines": ["toy"]}},
    }  # fmt: skip
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--snakefile", tmp_path / "house/Snakefile", "--directory", tmp_path,
               "--configfile", tmp_path / "config.yaml", "--cores", "2", "--show-failed-logs", "ablation_more",
               "results/evaluation/small/words/toy/seed0/metrics.json"]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(command, capture_output=True, text=True, env={**environment, "OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    base = tmp_path / "results/evaluation/small"
    n_train = pl.read_parquet(tmp_path / "results/corpus/small/labels.parquet")["n_train"]
    table = pl.read_parquet(base / "words/toy/seed0/test.scores.parquet")
    assert set(table["score"].filter(table["score"].is_finite())) <= set(n_train.cast(pl.Float32))
    told = pl.read_parquet(base / "tiny/none+focal+both/seed0/reasons.parquet")
    assert set(told.filter(part="word").select("channel", "feature").iter_rows()) == {("game", "toy")}
    assert json.loads((base / "words/toy/seed0/metrics.json").read_text())
