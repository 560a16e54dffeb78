"""The plan as a table: one row for each kind of job, with its work, GPU hours and memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import polars as pl

from plant.ground.settings import Finetuning, Pretraining, Settings, WordNetwork, Words
from plant.paper.plan.jobs import GPU_RULES, Job
from plant.paper.plan.networks import find_network
from plant.paper.plan.sizes import Sizes, find_sizes
from plant.paper.plan.work import (
    DESCRIPTION_TOKENS,
    START,
    Setup,
    Work,
    count_updates,
    device_memory,
    encode,
    largest_movement,
    predict,
    stage1,
    stage2,
)

TRAINING = ("pretrain", "finetune")
KIND = ("rule", "dataset", "backbone", "recipe")
COLUMNS = (
    *KIND, "jobs", "on_request", "experiments", "sizes_from", "labels", "documents", "tokens", "epochs_at_most",
    "patience", "updates", "head_moves_at_most", "head_is_stuck", "flops_a_job", "label_attention_flops_a_job",
    "gpu_hours_a_job", "gpu_hours", "devices", "memory_gb_a_device", "unfused_scores_gb", "fits",
)  # fmt: skip
"""Of plan.csv. What one job takes, apart from `jobs` and `gpu_hours` (of all jobs of the row); null: not known."""
_TYPES: dict[str, Any] = dict.fromkeys(("experiments", "sizes_from"), pl.String)
_TYPES |= dict.fromkeys(("patience", "labels"), pl.Int64) | dict.fromkeys(("head_is_stuck", "fits"), pl.Boolean)
_TYPES |= dict.fromkeys(
    ("flops_a_job", "gpu_hours_a_job", "gpu_hours", "memory_gb_a_device", "unfused_scores_gb"), pl.Float64
)


def build_plan(settings: Settings, jobs: Mapping[str, frozenset[Job]]) -> pl.DataFrame:
    """One row for each rule, dataset, backbone and recipe. Its jobs differ in their seeds.

    Args:
        settings: the config.
        jobs: as `find_jobs` returns them. A job that several experiments need is counted once.
    """
    rows = []
    for kind, group in groupby(sorted(frozenset().union(*jobs.values()), key=_kind), key=_kind):
        same = list(group)
        needed_by = [name for name in jobs if not jobs[name].isdisjoint(same)]
        row = dict.fromkeys(COLUMNS) | dict(zip(KIND, kind, strict=True))
        row |= {"jobs": len(same), "on_request": "all" not in needed_by}
        row |= {"experiments": " ".join(name for name in needed_by if name != "all")}
        rows.append(row | _estimate(settings, *kind))
    plan = pl.DataFrame(rows, schema_overrides=_TYPES, infer_schema_length=None)
    return plan.with_columns(gpu_hours=pl.col("jobs") * pl.col("gpu_hours_a_job"))


def part_of(plan: pl.DataFrame, jobs: frozenset[Job]) -> pl.DataFrame:
    """The rows of some of the jobs, with their number and their hours."""
    kinds = pl.DataFrame([_kind(job) for job in jobs], schema=dict.fromkeys(KIND, pl.String), orient="row")
    counts = kinds.group_by(KIND).agg(jobs=pl.len().cast(pl.Int64))
    rows = plan.drop("jobs").join(counts, on=KIND, maintain_order="left")
    return rows.with_columns(gpu_hours=pl.col("jobs") * pl.col("gpu_hours_a_job"))


def _kind(job: Job) -> tuple[str, str, str, str]:
    return job.rule, job.dataset, job.backbone, job.recipe


def _estimate(settings: Settings, rule: str, dataset: str, name: str, recipe: str) -> dict[str, Any]:
    """What one job takes, as far as it is known: some of COLUMNS."""
    backbone = settings.backbones.get(name)
    if rule not in GPU_RULES or backbone is None or isinstance(backbone, Words):
        return {}
    if rule not in TRAINING and backbone.parallel == "data":
        backbone = backbone.model_copy(update={"devices": 1})
    sizes = find_sizes(settings, dataset, name)
    network = None if isinstance(backbone, WordNetwork) else find_network(backbone)  # the cost model is of transformers
    stage = _recipe(settings, rule, dataset, name, recipe)
    found: dict[str, Any] = {"devices": backbone.devices}
    if rule in TRAINING and stage is not None:
        found |= {"epochs_at_most": stage.epochs, "patience": stage.patience}
    if sizes is None:
        return found
    documents = _documents(settings, rule, sizes)
    if isinstance(stage, Pretraining) and stage.lists == "vocabulary":
        documents = sizes.labels  # a list for each label, and no document
    found |= {"sizes_from": ", ".join(sizes.sources), "labels": sizes.labels}
    found |= {"documents": documents, "tokens": sizes.tokens_of(backbone)}
    if rule in TRAINING and stage is not None:
        moves = largest_movement(documents, stage)
        found |= {"updates": count_updates(documents, stage)}
        found |= {"head_moves_at_most": moves, "head_is_stuck": moves < START}
    if network is None or isinstance(backbone, WordNetwork):
        return found
    setup = Setup(network, backbone, sizes)
    work = _work(rule, setup, stage, documents)
    found |= {"flops_a_job": work.flops, "label_attention_flops_a_job": work.head}
    found |= {"gpu_hours_a_job": work.gpu_hours(settings.hardware, backbone)}
    if stage is not None and rule != "attention":
        memory = device_memory(setup, stage, training=rule in TRAINING)
        found |= {"memory_gb_a_device": memory.total, "unfused_scores_gb": memory.scores}
        found |= {"fits": memory.total <= settings.hardware.memory_gb}
    return found


def _recipe(settings: Settings, rule: str, dataset: str, backbone: str, name: str) -> Pretraining | Finetuning | None:
    """The recipe that the job trains by or that it predicts with; None for a job that only runs the backbone."""
    if rule == "pretrain":
        return settings.pretrainings[name]
    return settings.stage2(dataset, backbone, name) if rule in ("finetune", "predict", "attention") else None


def _documents(settings: Settings, rule: str, sizes: Sizes) -> int:
    """Texts that one pass of the job reads."""
    return {
        "pretrain": sizes.train,
        "finetune": sizes.train,
        "predict": sizes.val + sizes.test,
        "attention": settings.evaluation.attention_documents,
        "features": sizes.train + sizes.val + sizes.test,
        "label_embeddings": sizes.labels,
    }[rule]


def _work(rule: str, setup: Setup, recipe: Pretraining | Finetuning | None, documents: int) -> Work:
    if isinstance(recipe, Pretraining):
        return stage1(setup, recipe)
    if recipe is not None:
        return stage2(setup, recipe) if rule == "finetune" else predict(setup, recipe, documents)
    shorter = DESCRIPTION_TOKENS / setup.computed if rule == "label_embeddings" else 1.0
    return encode(setup, documents) * shorter
