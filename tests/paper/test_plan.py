"""The plan: jobs as Snakemake plans them, their times from benchmarks or from the estimate, and what is not known."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from shipped import shipped

from plant.ground.files import write_json
from plant.ground.settings import Settings, load
from plant.model.attentions.multi_head import EMBEDDING_STD
from plant.paper.plan.jobs import Job, find_jobs
from plant.paper.plan.page import START, build_plan, estimate, find_sizes, write_plan

ROOT = Path(__file__).parents[2]
SIZES = {"train": 47_719, "val": 1_631, "test": 3_372, "labels": 8_929, "tokens": 2_100}
MISTRAL = {"kind": "pretrained", "path": "mistralai/Mistral-7B-Instruct-v0.3", "parameters": 6.979,
           "gradient_checkpointing": True, "max_tokens": 4000, "chunk_tokens": 4000}  # fmt: skip
DOWNLOADS = {"fetch", "fetch_archive"}


def make_config(**changes: Any) -> dict[str, Any]:
    """Two experiments that share runs, and every kind of job that a config can ask for."""
    return {
        "datasets": {"notes": {"source": "mimic3", "generate": {}, "credentialed": False},
                     "other": {"source": "mimic3", "generate": {}, "credentialed": False},
                     "part": {"source": "subset", "of": "notes", "labels": {"top": 50}}},
        "backbones": {"tiny": {"kind": "random"}, "words": {"kind": "words"}},
        "pretrainings": {"plant": {"keep_epochs": True, "patience": None, "initialisation": "descriptions"},
                         "random": {"measure": "random"}},
        "finetunings": {"focal": {}, "short": {"shortlist": 20}},
        "evidences": {"all": {}, "linear": {"channels": ["linear"]}},
        "variants": {
            "plant": {"pretraining": "plant", "finetuning": "focal"},
            "same": {"pretraining": "plant", "finetuning": "focal", "title": "the same recipes"},
            "early": {"pretraining": "plant", "finetuning": "focal", "pretraining_epoch": 2},
            "control": {"pretraining": "random", "finetuning": "focal"},
            "bare": {"finetuning": "short"},
            "more": {"pretraining": "plant", "finetuning": "focal", "evidence": "all"},
            "words_only": {"pretraining": "plant", "finetuning": "short", "evidence": "linear"},
        },
        "experiments": {
            "first": {"dataset": "notes", "backbone": "tiny", "variants": ["plant", "same", "early", "bare", "more"],
                      "baselines": ["tfidf_linear", "mig_log_odds", "combined"], "reference": "plant"},
            "second": {"dataset": "notes", "backbone": "tiny", "variants": ["plant", "control", "words_only"],
                       "reference": "plant", "seeds": [0, 1, 2, 3], "report": False},
            "small": {"dataset": "part", "backbone": "tiny", "variants": ["more"], "reference": "more"},
            "third": {"dataset": "other", "backbone": "tiny", "variants": ["plant"], "reference": "plant",
                      "on_request": True},
        },
    } | changes  # fmt: skip


def make_settings(backbone: dict[str, Any] | None = None, **changes: Any) -> Settings:
    """One experiment of published size on one backbone."""
    config = {
        "datasets": {"mimic3_full": {"source": "mimic3", "path": "data", "expected": SIZES}},
        "backbones": {"mistral_7b": MISTRAL | (backbone or {})},
        "pretrainings": {"plant": {"epochs": 10}}, "finetunings": {"focal": {"epochs": 10}},
        "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}},
        "experiments": {"main": {"dataset": "mimic3_full", "backbone": "mistral_7b", "variants": ["plant"],
                                 "reference": "plant"}},
    }  # fmt: skip
    return load(config | changes)


def job(rule: str, seed: int = 0, folder: Path = Path("nowhere")) -> Job:
    recipe = {"pretrain": "plant", "finetune": "plant+focal"}.get(rule, "")
    return Job(rule, "mimic3_full", "mistral_7b", recipe, str(folder / f"{rule}{seed}.tsv"))


def dry_run(folder: Path, config: Path) -> Counter[str]:
    """Rule -> jobs that Snakemake says it would run."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder,
               "--configfile", config, "--cores", "1", "--dry-run"]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, run.stdout + run.stderr
    table = re.search(r"Job stats:\njob +count\n[- ]+\n(.*?)\ntotal", run.stdout + run.stderr, re.DOTALL)
    assert table is not None
    return Counter({line.split()[0]: int(line.split()[1]) for line in table[1].splitlines()})


@pytest.fixture(scope="module")
def everything() -> tuple[Settings, dict[str, frozenset[Job]]]:
    """The settings of `make_config` and their jobs."""
    settings = load(make_config())
    return settings, find_jobs(settings, ROOT / "Snakefile")


def test_planned_jobs_are_those_of_a_dry_run(tmp_path, everything):
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(make_config()), encoding="utf-8")
    planned = Counter(job.rule for job in everything[1]["all"])
    assert {
        rule: count for rule, count in dry_run(tmp_path, config).items() if rule not in {"all", *DOWNLOADS}
    } == planned


def test_shared_runs_are_counted_once_and_runs_on_request_are_no_part_of_all(everything):
    _, jobs = everything
    first, second = jobs["first"], jobs["second"]
    assert sum(job.rule == "pretrain" for job in first | second) == 2 * 4  # recipes, seeds
    # plant = same; early and bare are their own; seed 3 is the second experiment's
    assert sum(job.rule == "finetune" for job in first) == 9
    assert sum(job.rule == "finetune" for job in first | second) == 9 + 1 + 4
    training = build_plan(*everything).filter(rule="pretrain")
    assert set(training.filter(~pl.col("on_request"))["dataset"]) == {"notes", "part"}
    assert set(training.filter("on_request")["dataset"]) == {"other"}


def test_a_plan_needs_no_data_and_credentialed_text_has_no_attention_jobs(everything):
    hidden = make_config()
    hidden["datasets"]["notes"] = {"source": "mimic3", "path": "nowhere"}
    jobs = find_jobs(load(hidden), ROOT / "Snakefile")
    assert {job.dataset for job in jobs["first"] if job.rule == "corpus"} == {"notes"}
    shown = [{job.dataset for job in frozenset().union(*each.values()) if job.rule == "attention"}
             for each in (jobs, everything[1])]  # fmt: skip
    assert shown == [{"other"}, {"notes", "part", "other"}]


@pytest.mark.parametrize(("backbone", "step"), [
    ({}, 3), ({"gradient_checkpointing": False}, 2), ({"adapter": "full"}, 4), ({"adapter": "frozen"}, 1),
    ({"adapter": "frozen", "cache_features": True}, None),
])  # fmt: skip
def test_hours_of_a_training_are_those_by_hand(backbone, step):
    forward = 2 * 6.979e9 * 2_100 / (989e12 * 0.3) / 3600  # hours of one document
    settings = make_settings(backbone)
    if step is None:
        assert estimate(settings, job("finetune")) is None
        assert estimate(settings, job("features")) == pytest.approx((47_719 + 1_631 + 3_372) * forward)
        return
    for rule in ("pretrain", "finetune"):
        assert estimate(settings, job(rule)) == pytest.approx(10 * (step * 47_719 + 1_631) * forward)
    assert estimate(settings, job("predict")) == pytest.approx((1_631 + 3_372) * forward)


def test_devices_share_the_documents_or_wait_for_one_another():
    one, data, layers = (
        build_plan(settings, {"all": frozenset([job("finetune")])}).row(0, named=True)
        for settings in (make_settings(), make_settings({"devices": 4}),
                         make_settings({"devices": 4, "parallel": "layers"}))
    )  # fmt: skip
    assert data["hours_a_job"] == pytest.approx(one["hours_a_job"] / 4)
    assert layers["hours_a_job"] == one["hours_a_job"]
    assert (one["devices"], data["devices"], layers["devices"]) == (1, 4, 4)


def test_what_has_run_takes_the_place_of_the_estimate(tmp_path):
    jobs = frozenset(job("finetune", seed, tmp_path) for seed in range(3)) | {job("predict", 0, tmp_path)}
    for seed, seconds in ((0, 3600), (1, 7200)):
        (tmp_path / f"finetune{seed}.tsv").write_text(f"s\tmax_rss\n{seconds}.0\t5\n", encoding="utf-8")
    settings = make_settings()
    write_plan(settings, {"all": jobs, "main": jobs}, tmp_path)
    predict, finetune = pl.read_csv(tmp_path / "plan.csv").sort("jobs").to_dicts()
    assert (finetune["jobs"], finetune["have_run"], finetune["device_hours"]) == (3, 2, 4.5)
    assert predict["hours_a_job"] == pytest.approx(estimate(settings, job("predict")))


def test_sizes_come_from_the_config_or_the_corpus_and_a_subset_is_bounded_by_its_dataset(tmp_path):
    datasets = {
        "mimic3_full": {"source": "mimic3", "path": "data", "expected": {"train": 80}},
        "part": {"source": "subset", "of": "mimic3_full", "labels": {"top": 50}, "train_size": 7},
    }
    experiment = {"dataset": "part", "backbone": "mistral_7b", "variants": ["plant"], "reference": "plant"}
    settings = make_settings(results=str(tmp_path), datasets=datasets, experiments={"part": experiment})
    folder = tmp_path / "corpus" / "mimic3_full"
    splits = {name: {"documents": count} for name, count in (("train", 70), ("val", 10), ("test", 20))}
    write_json(folder / "statistics.json", {"labels": 150, "splits": splits})
    write_json(folder / "mistral_7b" / "statistics.json", {"tokens_per_document": {"mean": 61.5}})
    whole = {"train": 80, "val": 10, "test": 20, "tokens": 61.5}
    assert find_sizes(settings, "mimic3_full", "mistral_7b") == whole
    assert find_sizes(settings, "part", "mistral_7b") == whole | {"train": 7}
    without_tokens = {name: size for name, size in whole.items() if name != "tokens"}
    assert find_sizes(settings, "mimic3_full", "") == without_tokens  # a job without a backbone, such as `corpus`


def test_a_job_without_a_known_time_is_named_and_not_counted(tmp_path):
    settings = make_settings({"parameters": None})
    write_plan(settings, {"all": frozenset([job("finetune")]), "main": frozenset()}, tmp_path)
    assert pl.read_csv(tmp_path / "plan.csv")["hours_a_job"].to_list() == [None]
    page = (tmp_path / "plan.md").read_text(encoding="utf-8")
    assert "there is no estimate: finetune of mimic3_full with mistral_7b." in page


def test_the_page_adds_up_and_two_calls_write_the_same_bytes(tmp_path, everything):
    for name in ("a", "b"):
        write_plan(*everything, tmp_path / name)
    page = (tmp_path / "a" / "plan.md").read_text(encoding="utf-8")
    assert page == (tmp_path / "b" / "plan.md").read_text(encoding="utf-8")
    frame = pl.read_csv(tmp_path / "a" / "plan.csv")
    assert f"**{frame.filter(~pl.col('on_request'))['jobs'].sum():,} jobs**" in page
    rules = re.findall(r"^\| (\w+) \| ([\d,]+) \| [\d,]+ \| [\d,]+ \| \S+ \| \S+ \|$", page, re.MULTILINE)
    experiments = everything[0].experiments
    assert sum(int(count) for name, count in rules if name not in experiments) == frame["jobs"].sum()


def test_a_cell_whose_head_cannot_move_is_named_and_a_tuned_rate_takes_it_off(tmp_path):
    sizes = {"mimic3_full": {"source": "mimic3", "path": "data", "expected": {**SIZES, "train": 136}}}
    short = {"datasets": sizes, "finetunings": {"focal": {"epochs": 5}}}  # 25 updates of 2e-5
    run = {"mimic3_full/mistral_7b/plant+focal": {"head_learning_rate": 0.002, "learning_rate": 0.00002}}
    for tuned in ({}, run):
        write_plan(
            make_settings(**short, tuned=tuned), {"all": frozenset([job("finetune")]), "main": frozenset()}, tmp_path
        )
        page = (tmp_path / "plan.md").read_text(encoding="utf-8")
        assert (f"({START:g}) on: mimic3_full with mistral_7b." in page) == (not tuned)
    assert START == EMBEDDING_STD


def test_a_training_that_a_time_limit_cuts_off_is_said_with_its_retries(tmp_path):
    hours = estimate(make_settings(), job("finetune"))
    for limit, words in ((hours / 2.5, "set `retries: 2` in slurm/profile.yaml"), (1e6, "none is cut off")):
        settings = make_settings(hardware={"job_hours": limit})
        write_plan(settings, {"all": frozenset([job("finetune")]), "main": frozenset()}, tmp_path)
        assert words in (tmp_path / "plan.md").read_text(encoding="utf-8")


@cache
def grid() -> Settings:
    return load(shipped("paper.yaml"))


def test_all_backbones_of_the_grid_read_the_same_text_but_the_one_that_does_not_fit():
    used = {experiment.backbone for experiment in grid().experiments.values()}
    read = {name: (grid().backbones[name].max_tokens, grid().backbones[name].chunk_tokens) for name in used}
    assert read.pop("deepseek_v3") == (3000, 3000)
    assert len(read) == 3
    assert set(read.values()) == {(4000, 4000)}


def test_the_grid_ablates_the_labels_of_stage_1_and_goes_beyond_its_ten_epochs():
    variants = [grid().variants[name] for name in grid().experiments["mimic4_full_llama3"].variants]
    recipes = {variant.pretraining: grid().pretrainings.get(variant.pretraining) for variant in variants}
    assert {name for name, recipe in recipes.items() if recipe is not None and recipe.negatives is None} == {
        "all_labels"
    }
    after = {(variant.pretraining, variant.pretraining_epoch) for variant in variants if variant.pretraining_epoch}
    assert after == {("plant", epoch) for epoch in range(1, 11)} | {("plant_20_epochs", 15), ("plant_20_epochs", 20)}
