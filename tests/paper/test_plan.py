"""The plan: jobs as Snakemake plans them, sums, bounds and what is not known."""

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

from plant.ground.files import write_json
from plant.ground.settings import Settings, load
from plant.paper.plan.jobs import NOT_COUNTED, Job, find_jobs
from plant.paper.plan.page import ASSUMPTIONS, write_plan
from plant.paper.plan.rows import build_plan, part_of
from plant.paper.plan.sizes import Sizes, find_sizes

ROOT = Path(__file__).parents[2]
SIZES = {"train": 47_719, "val": 1_631, "test": 3_372, "labels": 8_929, "tokens": 2_100}
MISTRAL = {
    "kind": "pretrained", "path": "mistralai/Mistral-7B-Instruct-v0.3", "quantization": "nf4", "precision": "bf16",
    "gradient_checkpointing": True, "chunk_tokens": 4096,
}  # fmt: skip


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


def make_settings(**changes: Any) -> Settings:
    """One experiment of published size on one backbone."""
    config = {
        "datasets": {"mimic3_full": {"source": "mimic3", "path": "data", "expected": SIZES}},
        "backbones": {"mistral_7b": MISTRAL},
        "pretrainings": {"plant": {}}, "finetunings": {"focal": {}},
        "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}},
        "experiments": {"main": {"dataset": "mimic3_full", "backbone": "mistral_7b", "variants": ["plant"],
                                 "reference": "plant"}},
    }  # fmt: skip
    return load(config | changes)


def jobs_of(settings: Settings) -> dict[str, frozenset[Job]]:
    """Training and prediction of each experiment's variants, by hand."""
    found = {}
    for name, experiment in settings.experiments.items():
        runs = [(settings.variants[variant], seed) for variant in experiment.variants for seed in experiment.seeds]
        place = (experiment.dataset, experiment.backbone)
        found[name] = frozenset(
            Job(rule, *place, variant.pretraining if rule == "pretrain" else variant.network, seed)
            for variant, seed in runs
            for rule in ("pretrain", "finetune", "predict")
            if rule != "pretrain" or variant.pretraining != "none"
        )
    return found | {"all": frozenset().union(*found.values())}


def plan_of(settings: Settings, rule: str) -> pl.DataFrame:
    """The rows of one rule."""
    return build_plan(settings, jobs_of(settings)).filter(rule=rule)


def write(settings: Settings, folder: Path) -> None:
    write_plan(settings, jobs_of(settings), folder)


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
def everything() -> tuple[Settings, dict[str, frozenset[Job]], pl.DataFrame]:
    """The settings of `make_config`, their jobs and the plan."""
    settings = load(make_config())
    jobs = find_jobs(settings, ROOT / "Snakefile")
    return settings, jobs, build_plan(settings, jobs)


def test_planned_jobs_are_those_of_a_dry_run(tmp_path, everything):
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(make_config()), encoding="utf-8")
    found = dry_run(tmp_path, config)
    planned = everything[2].filter(~pl.col("on_request")).group_by("rule").agg(pl.col("jobs").sum())
    assert {rule: count for rule, count in found.items() if rule not in {"all", *NOT_COUNTED}} == dict(planned.rows())


def test_shared_runs_are_counted_once_and_runs_on_request_are_no_part_of_all(everything):
    _, jobs, plan = everything
    first, second = jobs["first"], jobs["second"]
    stage1 = {job for job in first | second if job.rule == "pretrain"}
    assert stage1 == {
        Job("pretrain", "notes", "tiny", recipe, seed) for recipe in ("plant", "random") for seed in range(4)
    }
    # plant = same; early and bare are their own; seed 3 is the second experiment's
    assert sum(job.rule == "finetune" for job in first) == 9
    assert sum(job.rule == "finetune" for job in first | second) == 9 + 1 + 4
    assert part_of(plan, first)["jobs"].sum() == len(first)
    assert plan["jobs"].sum() == len(frozenset().union(*jobs.values()))
    training = plan.filter(rule="pretrain")
    assert set(training.filter(~pl.col("on_request"))["dataset"]) == {"notes", "part"}
    assert set(training.filter("on_request")["dataset"]) == {"other"}


def test_a_plan_needs_no_data_and_credentialed_text_has_no_attention_jobs(everything):
    hidden = make_config()
    hidden["datasets"]["notes"] = {"source": "mimic3", "path": "nowhere"}
    settings = load(hidden)
    jobs = find_jobs(settings, ROOT / "Snakefile")
    assert {job.dataset for job in jobs["first"] if job.rule == "corpus"} == {"notes"}
    shown = {job.dataset for job in frozenset().union(*jobs.values()) if job.rule == "attention"}
    assert shown == {"other"}
    assert set(everything[2].filter(rule="attention")["dataset"]) == {"notes", "part", "other"}


def changed(**sizes: Any) -> dict[str, Any]:
    return {"mimic3_full": {"source": "mimic3", "path": "data", "expected": SIZES | sizes}}


@pytest.mark.parametrize(("changes", "factor"), [
    ({"datasets": changed(train=2 * SIZES["train"], val=2 * SIZES["val"])}, 2),
    ({"finetunings": {"focal": {"epochs": 5}}}, 1 / 2),
    ({"hardware": {"tflops": 2 * 989}}, 1 / 2),
    ({"hardware": {"utilisation": 0.6}}, 1 / 2),
])  # fmt: skip
def test_hours_grow_with_documents_and_epochs_and_shrink_with_the_machine(changes, factor):
    before, after = (plan_of(make_settings(**each), "finetune")["gpu_hours"].sum() for each in ({}, changes))
    assert after == pytest.approx(factor * before)


def test_the_backbone_cuts_the_tokens_and_may_say_how_many_weights_it_has():
    def row(**backbone: Any) -> dict[str, Any]:
        backbones = {"mistral_7b": {**MISTRAL, **backbone}}
        return plan_of(make_settings(datasets=changed(tokens=9_000), backbones=backbones), "pretrain").to_dicts()[0]

    assert row(max_tokens=4096)["tokens"] == 4096
    plain, double = (each["flops_a_job"] - each["label_attention_flops_a_job"]
                     for each in (row(), row(parameters=2 * 6.979321856)))  # fmt: skip
    assert 1.8 < double / plain < 2


@cache
def grid() -> Settings:
    return load(yaml.safe_load((ROOT / "config" / "paper.yaml").read_text(encoding="utf-8")))


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


def test_a_model_that_does_not_fit_is_said_not_to_fit(tmp_path):
    large = {**MISTRAL, "path": "deepseek-ai/DeepSeek-V3", "devices": 2, "parallel": "layers"}
    write(make_settings(backbones={"mistral_7b": large}), tmp_path)
    frame = pl.read_csv(tmp_path / "plan.csv").filter(pl.col("rule") == "finetune")
    assert frame["fits"].to_list() == [False]
    assert frame["memory_gb_a_device"].item() > 668.2 * 0.516 / 2  # billions of 4-bit weights on two devices
    assert "do not fit the memory of their devices (mistral_7b)" in (tmp_path / "plan.md").read_text(encoding="utf-8")


def test_unknown_size_and_unknown_shape_are_said_and_not_counted(tmp_path):
    config = {
        "datasets": {"mimic3_full": {"source": "mimic3", "path": "data"}},
        "backbones": {"mistral_7b": {**MISTRAL, "path": "somebody/something"}},
    }
    write(make_settings(**config), tmp_path)
    assert pl.read_csv(tmp_path / "plan.csv").filter(rule="finetune")["gpu_hours"].to_list() == [None]
    assert "Size not known" in (tmp_path / "plan.md").read_text(encoding="utf-8")
    write(make_settings(backbones=config["backbones"]), tmp_path)
    assert "Shape not known" in (tmp_path / "plan.md").read_text(encoding="utf-8")


def test_sizes_come_from_the_corpus_where_the_config_gives_none(tmp_path):
    settings = make_settings(results=str(tmp_path), datasets={"mimic3_full": {"source": "mimic3", "path": "data"}})
    assert find_sizes(settings, "mimic3_full", "mistral_7b") is None
    folder = tmp_path / "corpus" / "mimic3_full"
    splits = {name: {"documents": count} for name, count in (("train", 70), ("val", 10), ("test", 20))}
    write_json(folder / "statistics.json", {"labels": 150, "splits": splits})
    write_json(folder / "mistral_7b" / "statistics.json", {"tokens_per_document": {"mean": 61.5}})
    assert find_sizes(settings, "mimic3_full", "mistral_7b") == Sizes(70, 10, 20, 150, 61.5, ("corpus",))


def test_a_subset_is_bounded_by_its_dataset_and_a_held_out_split_has_its_share_of_train():
    datasets = changed(val=None)  # of 0.7 / 0.1 / 0.2
    datasets["part"] = {"source": "subset", "of": "mimic3_full", "labels": {"top": 50}, "train_size": 136}
    experiment = {"dataset": "part", "backbone": "mistral_7b", "variants": ["plant"], "reference": "plant"}
    settings = make_settings(datasets=datasets, experiments={"part": experiment})
    whole, part = (find_sizes(settings, name, "mistral_7b") for name in ("mimic3_full", "part"))
    val = SIZES["train"] // 8
    assert whole == Sizes(SIZES["train"], val, 3_372, 8_929, 2_100, ("published",))
    assert part == Sizes(136, val, 3_372, 50, 2_100, ("upper bound",))


def test_the_page_adds_up_and_two_calls_write_the_same_bytes(tmp_path, everything):
    for name in ("a", "b"):
        write_plan(*everything[:2], tmp_path / name)
    text = (tmp_path / "a" / "plan.md").read_text(encoding="utf-8")
    assert text == (tmp_path / "b" / "plan.md").read_text(encoding="utf-8")
    frame = pl.read_csv(tmp_path / "a" / "plan.csv")
    asked = frame.filter(~pl.col("on_request"))
    assert f"**{asked['jobs'].sum():,} jobs**" in text
    rules = dict(re.findall(r"^\| (\w+) \| ([\d,]+) \| [\d,]+ \| \S.* \|$", text, re.MULTILINE))
    assert sum(int(count) for rule, count in rules.items() if rule != "all") == int(rules["all"].replace(",", ""))


def test_a_cell_whose_head_cannot_move_is_named_and_a_tuned_rate_takes_it_off(tmp_path):
    sizes = {"mimic3_full": {"source": "mimic3", "path": "data", "expected": {**SIZES, "train": 136}}}
    short = {
        "datasets": sizes,
        "pretrainings": {"plant": {"head_learning_rate": 0.01}},
        "finetunings": {"focal": {"epochs": 5}},
    }
    run = {"mimic3_full/mistral_7b/plant+focal": {"head_learning_rate": 0.002, "learning_rate": 0.00002}}
    found = {}
    for name, tuned in (("a", {}), ("b", run)):
        write(make_settings(**short, tuned=tuned), tmp_path / name)
        (found[name],) = pl.read_csv(tmp_path / name / "plan.csv").filter(rule="finetune").to_dicts()
    assert (found["a"]["updates"], found["a"]["head_is_stuck"]) == (25, True)
    assert found["a"]["head_moves_at_most"] == pytest.approx(2.5e-4)
    assert (found["b"]["head_moves_at_most"], found["b"]["head_is_stuck"]) == (pytest.approx(0.025), False)
    pages = {name: (tmp_path / name / "plan.md").read_text(encoding="utf-8") for name in found}
    assert "in: mimic3_full with mistral_7b." in pages["a"]
    assert "in: none." in pages["b"]


def test_the_cheapest_comparison_is_named_and_how_often_the_longest_training_is_cut_off(tmp_path):
    names = {"plant": {"pretraining": "plant", "finetuning": "focal"}, "bare": {"finetuning": "focal"}}
    small = {"source": "subset", "of": "mimic3_full", "train_size": 750}
    both = {"mimic3_full": {"source": "mimic3", "path": "data", "expected": SIZES}, "part": small}
    pair = {"backbone": "mistral_7b", "variants": ["plant", "bare"], "reference": "plant", "seeds": [0]}
    alone = {**pair, "dataset": "part", "variants": ["plant"]}
    experiments = {"whole": {**pair, "dataset": "mimic3_full"}, "part": {**pair, "dataset": "part"}, "alone": alone}
    settings = make_settings(datasets=both, variants=names, experiments=experiments)
    write(settings, tmp_path)
    page = (tmp_path / "plan.md").read_text(encoding="utf-8")
    assert re.search(r"with a random start: `experiment_part` .*; without such a head: `experiment_whole`", page)
    longest = pl.read_csv(tmp_path / "plan.csv")["gpu_hours_a_job"].max()
    starts = 0  # a day each, until the work is done
    while longest > 0:
        starts, longest = starts + 1, longest - 24
    assert f"is sent again {starts - 1} times: set `retries: {starts - 1}`" in page


def test_every_assumption_is_explained_with_its_value():
    page = (ROOT / "docs" / "cost-model.md").read_text(encoding="utf-8")
    explained = dict(re.findall(r"^\| `([A-Z0-9_]+)` \| (\S+) \|", page, re.MULTILINE))
    assert explained == {name: f"{value:g}" for name, value in ASSUMPTIONS.items()}
