"""The pipeline as users start it: from raw files to the report, once for real, then what a change reruns."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
STAGE1 = {"epochs": 1, "batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005, "k": 200}
STAGE2 = {"epochs": 2, "batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005, "hard_negatives": 5}
CONFIG = {
    "datasets": {
        "small": {
            "source": "mimic3",
            "generate": {"admissions": 160, "codes": 25, "words": 400, "words_per_note": 25},
            "credentialed": False,
        }
    },
    "backbones": {
        "tiny": {"kind": "random", "hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2, "vocabulary": 500},
        "words": {"kind": "words"},
    },
    "relevance": {"k": 200},
    "pretrainings": {"plant": STAGE1},
    "finetunings": {"focal": STAGE2, "focal_long": {**STAGE2, "epochs": 3}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal_long"}},
    "statistics": {"resamples": 50},
    "experiments": {
        "small": {
            "dataset": "small",
            "backbone": "tiny",
            "variants": ["plant", "random_init"],
            "baselines": ["tfidf_linear", "mig_log_odds", "combined"],
            "reference": "plant",
            "seeds": [0],
        }
    },
}


def snakemake(folder, config, *arguments, cores="2"):
    """Run Snakemake in `folder` on `config`."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder,
               "--configfile", path, "--cores", cores, *arguments]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def planned(run):
    """Rule -> number of jobs of a dry run."""
    assert run.returncode == 0, run.stdout + run.stderr
    text = run.stdout + run.stderr
    counts = re.search(r"Job stats:\njob +count\n[- ]+\n(.*?)\ntotal", text, re.DOTALL)
    if counts is None:
        assert "Nothing to be done" in text, text
        return {}
    return {line.split()[0]: int(line.split()[1]) for line in counts[1].splitlines()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which the whole pipeline has run."""
    folder = tmp_path_factory.mktemp("run")
    run = snakemake(folder, CONFIG, "--show-failed-logs")
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return folder


def test_the_pipeline_runs_from_raw_files_to_tables_figures_and_report(finished):
    paper = finished / "results/paper/small"
    table = (paper / "tables/ablation.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 5  # two variants, three baselines
    for name in ("ablation", "intervals", "seeds", "corpus", "cost"):
        assert all((paper / f"tables/{name}.{kind}").stat().st_size for kind in ("csv", "md", "tex"))
    assert len(list((paper / "figures").glob("*.png"))) == len(list((paper / "figures").glob("*.pdf"))) == 6
    assert (paper / "report.html").stat().st_size > 100_000


def test_the_table_repeats_the_metrics_of_the_runs(finished):
    metrics = json.loads(
        (finished / "results/evaluation/small/tiny/plant+focal/seed0/metrics.json").read_text(encoding="utf-8")
    )
    value = metrics["p@5"]
    table = pl.read_csv(finished / "results/paper/small/tables/ablation.csv")
    found = table.filter((pl.col("system") == "plant") & (pl.col("metric") == "p@5"))["value"]
    assert found.to_list() == [pytest.approx(value)]


def test_every_trained_artifact_has_a_provenance_sidecar_with_its_inputs(finished):
    run = finished / "results/finetuning/small/tiny/plant+focal/seed0"
    sidecar = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
    assert sidecar["seed"] == 0
    assert sidecar["settings"]["finetuning"]["epochs"] == 2
    assert any(path.endswith("plant/seed0/label_attention.safetensors") for path in sidecar["inputs"])
    assert not (run / "checkpoint").exists()


def test_a_second_run_does_nothing(finished):
    assert planned(snakemake(finished, CONFIG, "--dry-run")) == {}


def test_a_change_of_one_ablation_reruns_what_hangs_on_it_and_nothing_else(finished):
    changed = copy.deepcopy(CONFIG)
    changed["finetunings"]["focal_long"]["gamma"] = 1.0
    jobs = planned(snakemake(finished, changed, "--dry-run"))
    assert jobs["finetune"] == jobs["predict"] == 1
    assert {"corpus", "tokens", "relevance", "pretrain", "tfidf_linear", "mig_log_odds", "combined"} & set(
        jobs
    ) == set()


def test_a_change_of_stage_1_leaves_the_variant_without_it_alone(finished):
    changed = copy.deepcopy(CONFIG)
    changed["pretrainings"]["plant"]["sigma"] = 2.0
    jobs = planned(snakemake(finished, changed, "--dry-run"))
    assert (jobs["pretrain"], jobs["finetune"], jobs["predict"]) == (1, 1, 1)
    assert "relevance" not in jobs


def test_an_ablation_target_plans_one_variant_only(tmp_path):
    jobs = planned(snakemake(tmp_path, CONFIG, "--dry-run", "ablation_random_init"))
    assert (jobs["finetune"], jobs["predict"], jobs["metrics"]) == (1, 1, 1)
    assert not {"pretrain", "write_tables", "tfidf_linear"} & set(jobs)


def test_two_runs_have_the_same_bits_whatever_the_number_of_cores(finished, tmp_path):
    target = "results/evaluation/small/tiny/plant+focal/seed0/test.scores.safetensors"
    run = snakemake(tmp_path, CONFIG, "ablation_plant", cores="1")
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert (tmp_path / target).read_bytes() == (finished / target).read_bytes()


def test_a_misspelt_key_stops_before_the_first_job_and_names_the_nearest(tmp_path):
    wrong = copy.deepcopy(CONFIG)
    wrong["finetunings"]["focal"]["hard_negativs"] = 5
    run = snakemake(tmp_path, wrong, "--dry-run")
    assert run.returncode != 0
    assert "finetunings.focal.hard_negativs: unknown key. Did you mean 'hard_negatives'?" in run.stdout + run.stderr


def test_an_unknown_metric_stops_before_the_first_job(tmp_path):
    wrong = copy.deepcopy(CONFIG)
    wrong["statistics"]["metrics"] = ["macro_f2"]
    run = snakemake(tmp_path, wrong, "--dry-run")
    assert run.returncode != 0
    assert "macro_f2" in run.stdout + run.stderr


def test_a_missing_source_ends_in_one_clear_error_and_leaves_nothing_behind(tmp_path):
    wrong = copy.deepcopy(CONFIG)
    wrong["datasets"]["small"] = {"source": "mimic3", "path": str(tmp_path / "nowhere")}
    run = snakemake(tmp_path, wrong, "results/corpus/small/labels.parquet", "--show-failed-logs")
    assert run.returncode != 0
    text = run.stdout + run.stderr
    assert "error: " in text
    assert "Traceback" not in text
    assert "nowhere" in text
    left = list((tmp_path / "results/corpus").rglob("*.parquet")) if (tmp_path / "results/corpus").exists() else []
    assert left == []
