"""The rule that saves models, from a table of one's own to a folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from plant.metrics.scores import read_scores
from plant.serving.system import load_system

ROOT = Path(__file__).resolve().parents[2]


def snakemake(folder: Path, *arguments: str, config: Path = ROOT / "config" / "own.yaml") -> str:
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder,
               "--cores", "2", *arguments, "--configfile", config]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    said = run.stdout + run.stderr
    assert run.returncode == 0, said[-3000:]
    return said


@pytest.fixture
def folder(tmp_path, documents) -> Path:
    (tmp_path / "data").mkdir()
    documents(tmp_path / "data" / "mine.csv")
    return tmp_path


def test_a_model_waits_for_the_systems_that_it_chooses_from_and_for_no_other(folder):
    everything = snakemake(folder, "--dry-run", "model_mine")
    assert set(re.findall(r"rule (finetune|combined|report|statistics):", everything)) == {"finetune", "combined"}
    alone = snakemake(folder, "--dry-run", "model_tfidf_linear_in_mine")
    assert "rule finetune" not in alone
    assert "results/serving/mine/tfidf_linear" in alone


def test_a_system_with_a_dot_in_its_name_can_be_saved(folder):
    config = yaml.safe_load((ROOT / "config/own.yaml").read_text(encoding="utf-8"))
    config["variants"]["static.2"] = config["variants"]["static"]
    config["experiments"]["mine"]["variants"].append("static.2")
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    said = snakemake(folder, "--dry-run", "model_static.2_in_mine", config=folder / "config.yaml")
    assert "results/serving/mine/static.2" in said


def test_the_screen_says_that_a_better_system_could_not_be_saved(tmp_path):
    """Each code has one training document. Later documents share the word of its category with it, and no other."""
    own = {"k1.0": "uno", "k1.1": "due", "j2.0": "tre", "j2.1": "quattro"}
    others = dict(zip(own, reversed(own.values()), strict=True))
    rows = [
        {"id": f"{split} {code}", "split": split, "labels": code, "text": f"{area} {words[code]}"}
        for split, words in (("train", own), ("val", others), ("test", others))
        for code, area in zip(own, ("lung", "lung", "bone", "bone"), strict=True)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "table.csv")
    config = yaml.safe_load((ROOT / "config/own.yaml").read_text(encoding="utf-8"))
    config["datasets"]["mine"] |= {"path": "table.csv", "split_column": "split", "category_ends": "."}
    del config["datasets"]["mine"]["split"]
    config["experiments"]["mine"] = {
        "dataset": "mine", "backbone": "words", "variants": [], "baselines": ["category_log_odds", "mig_log_odds"],
        "reference": "mig_log_odds",
    }  # fmt: skip
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    said = snakemake(tmp_path, "model_mine", config=tmp_path / "config.yaml")
    assert re.search(r"warning: .*`category_log_odds`.* Saved: mig_log_odds\.", said)
    best = tmp_path / "results/serving/mine/best"
    assert load_system(best).system["name"] == "mig_log_odds"
    assert "`category_log_odds` is better on validation" in (best / "README.md").read_text()


@pytest.mark.slow
def test_init_and_train_end_with_a_model_that_has_the_scores_of_its_run(folder):
    """From a table to a model folder by two commands; the config is made small between them."""
    command = [sys.executable, "-m", "plant.commandline"]
    subprocess.run([*command, "init", "data/mine.csv"], cwd=folder, check=True)
    config = yaml.safe_load((folder / "config/mine.yaml").read_text(encoding="utf-8"))
    for recipe in [*config["pretrainings"].values(), *config["finetunings"].values()]:
        recipe["epochs"] = 1
    config["experiments"]["mine"]["seeds"] = [0]
    (folder / "config/mine.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    run = subprocess.run(
        [*command, "train", "config/mine.yaml", "--no-report"], cwd=folder, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert "Model:   results/serving/mine/best" in run.stdout
    facts = json.loads((folder / "results/serving/mine/best.provenance.json").read_text())
    chosen = (facts["saved_system"], facts["saved_seed"])
    runs = {(run["system"], run["seed"]): run["scores"] for run in facts["settings"]["candidates"]}
    values = {
        name: json.loads((folder / scores / "metrics.json").read_text())["threshold"]["value_on_val"]
        for name, scores in runs.items()
    }
    assert values[chosen] == max(values.values())
    texts = pl.read_parquet(folder / "results/corpus/mine/test.parquet")["text"].to_list()
    stored = read_scores(folder / runs[chosen], "test")
    made = load_system(folder / "results/serving/mine/best").score(texts)
    columns = [stored.label_names.index(label) for label in made.label_names]
    assert (made.dense == stored.dense[:, columns]).all()
