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
from plant.serving.modeling import PlantForDocuments

ROOT = Path(__file__).resolve().parents[2]


def snakemake(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder,
               "--cores", "2", *arguments, "--configfile", ROOT / "config" / "own.yaml"]  # fmt: skip
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
    made = PlantForDocuments.from_pretrained(folder / "results/serving/mine/best").score(texts)
    columns = [stored.label_names.index(label) for label in made.label_names]
    assert (made.dense == stored.dense[:, columns]).all()
