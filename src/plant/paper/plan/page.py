"""What a config will take: its jobs, times what a job of each kind takes (docs/explanation/plan.md).

What a job takes is the mean of Snakemake's benchmarks of jobs like it. Before any has run, it is an estimate from the
number of weights that the config gives for the backbone (`backbones.<name>.parameters`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json, write_text
from plant.ground.settings import Finetuning, Pretrained, Pretraining, Settings, Subset
from plant.paper.costs import largest, mean
from plant.paper.plan.jobs import Job
from plant.paper.render import Table, row_of, to_csv, to_markdown
from plant.paper.wording import MISSING

TRAINING = ("pretrain", "finetune")
NETWORK_RULES = (*TRAINING, "predict", "features", "label_embeddings", "attention")
"""Rules whose jobs use a GPU if there is one."""
START = 0.02
"""Standard deviation of E at its random start (choice C10). A head that moves less than this stays where it began."""
_PLACE = ("rule", "dataset", "backbone")
_SCHEMA: dict[str, Any] = dict.fromkeys(Job._fields, pl.String) | {
    "on_request": pl.Boolean, "devices": pl.Int64, "seconds": pl.Float64, "estimated_hours": pl.Float64,
}  # fmt: skip


def write_plan(settings: Settings, jobs: Mapping[str, frozenset[Job]], folder: Path) -> None:
    """Write plan.csv (one row for each rule, dataset, backbone and recipe) and plan.md (sums).

    The log gets the first part of plan.md, and the path. Here and below `jobs` is what `find_jobs` returns.
    """
    plan, path = build_plan(settings, jobs), Path(folder) / "plan.md"
    page = to_page(settings, jobs, plan)
    kinds = plan.group_by(*_PLACE, "recipe", "on_request").agg(
        pl.len().alias("jobs"), pl.col("seconds").count().alias("have_run"), pl.col("hours_a_job", "devices").first(),
        (pl.col("hours_a_job") * pl.col("devices")).sum().alias("device_hours"),
    )  # fmt: skip
    write_text(path.with_suffix(".csv"), to_csv(kinds.sort(*_PLACE, "recipe", "on_request")))
    write_text(path, page)
    first, _, _ = page.removeprefix("# Plan\n").partition("**Jobs and hours")
    logging.getLogger("plant").info("plan\n\n%s\nMore in %s", first.strip().replace("**", ""), path)


def build_plan(settings: Settings, jobs: Mapping[str, frozenset[Job]]) -> pl.DataFrame:
    """One row for each job, with the fields of Job.

    Returns:
        Beside them `on_request` (no part of `all`), `devices` that the job holds, `seconds` if it has run, and
        `hours_a_job`: the mean of the jobs of its rule, dataset, backbone and recipe that have run, else of its rule,
        dataset and backbone, else the estimate; null where there is neither.
    """
    rows = [
        (*job, job not in jobs["all"], _devices(settings, job), _measured(job), estimate(settings, job))
        for job in sorted(frozenset().union(*jobs.values()))
    ]
    plan, seconds = pl.DataFrame(rows, schema=_SCHEMA, orient="row"), pl.col("seconds").mean()
    alike = (seconds.over(*_PLACE, "recipe") / 3600, seconds.over(*_PLACE) / 3600)
    return plan.with_columns(hours_a_job=pl.coalesce(*alike, "estimated_hours"))


def estimate(settings: Settings, job: Job) -> float | None:
    """Hours of a job by 2P FLOPs a token and pass over a backbone of P weights; None where the config does not say P.

    A training step is a forward pass and a backward pass of the same size, twice the size where all weights are
    trained, and the forward pass again with gradient checkpointing. All epochs are counted. Each ends with a forward
    pass over the validation split.
    """
    backbone, sizes = settings.backbones.get(job.backbone), find_sizes(settings, job.dataset, job.backbone)
    if not isinstance(backbone, Pretrained) or backbone.parameters is None or "train" not in sizes:
        return None
    train, val, test = (sizes.get(name, 0) for name in ("train", "val", "test"))
    step = 1 if backbone.adapter == "frozen" else 2 + (backbone.adapter == "full") + backbone.gradient_checkpointing
    passes = {"predict": val + test, "features": train + val + test}
    if backbone.cache_features:
        passes |= {"predict": 0}
    elif (recipe := recipe_of(settings, job)) is not None:
        passes[job.rule] = recipe.epochs * (step * train + val)
    if job.rule not in passes:
        return None
    tokens = min(sizes.get("tokens", backbone.max_tokens), backbone.max_tokens)
    flops = 2 * backbone.parameters * 1e9 * tokens * passes[job.rule]
    together = backbone.devices if backbone.parallel == "data" and job.rule in TRAINING else 1
    return flops / (settings.hardware.tflops * 1e12 * settings.hardware.utilisation * together) / 3600


def recipe_of(settings: Settings, job: Job) -> Pretraining | Finetuning | None:
    """The recipe of a training; None for another job."""
    if job.rule == "pretrain":
        return settings.pretrainings[job.recipe]
    return settings.stage2(job.dataset, job.backbone, job.recipe) if job.rule == "finetune" else None


def find_sizes(settings: Settings, dataset: str, backbone: str) -> dict[str, float]:
    """Documents of each split and mean tokens of a document, as far as they are known.

    The numbers are those that the config expects, else those of the corpus that has been made, else, for a subset,
    those of the dataset that it is a part of. Jobs without a backbone name "".
    """
    chosen = settings.datasets.get(dataset)
    if chosen is None:
        return {}
    sizes = find_sizes(settings, chosen.of, backbone) if isinstance(chosen, Subset) else {}
    corpus = Path(settings.results) / "corpus" / dataset
    if (statistics := corpus / "statistics.json").is_file():
        sizes |= {name: part["documents"] for name, part in read_json(statistics)["splits"].items()}
    if backbone and (statistics := corpus / backbone / "statistics.json").is_file():
        sizes["tokens"] = read_json(statistics)["tokens_per_document"]["mean"]
    sizes |= chosen.expected.model_dump(exclude_none=True)
    for split, most in (("train", chosen.train_size), ("val", chosen.val_size)):
        if most is not None:
            sizes[split] = min(most, sizes.get(split, most))
    return sizes


def to_page(settings: Settings, jobs: Mapping[str, frozenset[Job]], plan: pl.DataFrame) -> str:
    """The plan in words and sums, as Markdown."""
    asked = plan.filter(~pl.col("on_request"))
    alone = []
    for name, experiment in settings.experiments.items():
        own = plan.filter(pl.col("benchmark").is_in([job.benchmark for job in jobs[name]]))
        alone.append(((name + (" (on request)" if experiment.on_request else ""),), own))
    return "\n".join([
        "# Plan\n",
        *_headline(settings, asked),
        _sums("Jobs and hours of each rule", ("Rule",), plan.sort("rule").group_by("rule", maintain_order=True)),
        _sums(
            "The same by dataset and backbone, of jobs with a network", ("Dataset", "Backbone", "Rule"),
            asked.filter(pl.col("rule").is_in(NETWORK_RULES)).sort("dataset", "backbone", "rule")
            .group_by("dataset", "backbone", "rule", maintain_order=True),
        ),
        _sums("Every experiment alone, with the jobs that it shares with others", ("Experiment",), alone),
    ])  # fmt: skip


def _headline(settings: Settings, asked: pl.DataFrame) -> Iterator[str]:
    """What the target `all` takes, what is not known, and what stands in the way of a training."""
    hardware, networks = settings.hardware, asked.filter(pl.col("rule").is_in(NETWORK_RULES))
    unknown = networks.filter(pl.col("hours_a_job").is_null())
    known, have_run = _hours(_device_hours(networks)), asked["seconds"].count()
    yield (
        f"The target `all` has **{asked.height:,} jobs**, {networks.height:,} of them with a network. Those whose time "
        f"is known take about **{known} device hours**. {have_run:,} of all jobs have run here: jobs like them are "
        "counted with their mean time. For others the time is a lower bound by `parameters` of the backbone, on "
        f"{hardware.name} at {hardware.utilisation:.0%} of {hardware.tflops:g} TFLOP/s, with all epochs of each recipe "
        "(docs/explanation/plan.md). Runs that several experiments share are counted once.\n"
    )
    if unknown.height:
        places = unknown.select(pl.format("{} of {} with {}", *_PLACE).unique().sort()).to_series()
        yield f"Not counted, as nothing like it has run and there is no estimate: {', '.join(places)}.\n"
    yield _limit(networks.filter(pl.col("rule").is_in(TRAINING)), hardware.job_hours)
    jobs = (Job(*row) for row in asked.select(Job._fields).rows())
    if stuck := sorted({f"{job.dataset} with {job.backbone}" for job in jobs if _is_stuck(settings, job)}):
        yield (
            f"The head cannot move as far as its random start is wide ({START:g}) on: {', '.join(stuck)}. AdamW moves "
            "a weight by updates x rate / 2 at most. A larger `head_learning_rate` or more epochs help; the target "
            "`tune` chooses them on validation.\n"
        )


def _is_stuck(settings: Settings, job: Job) -> bool:
    """Whether the head of a training moves less than START: by its rate at every update, which the cosine halves."""
    recipe, sizes = recipe_of(settings, job), find_sizes(settings, job.dataset, job.backbone)
    if recipe is None or "train" not in sizes or getattr(recipe, "lists", "documents") == "vocabulary":
        return False
    updates = math.ceil(sizes["train"] / (recipe.batch_size * recipe.accumulation)) * recipe.epochs
    return updates * recipe.head_learning_rate / 2 < START


def _limit(training: pl.DataFrame, limit: float) -> str:
    """What the time limit of a cluster does to the trainings."""
    cut_off = training.filter(pl.col("hours_a_job") > limit)
    if cut_off.is_empty():
        return f"No training is known to take longer than {limit:g} hours (`hardware.job_hours`): none is cut off.\n"
    row = cut_off.sort("hours_a_job").row(-1, named=True)
    again = math.ceil(row["hours_a_job"] / limit) - 1
    return (
        f"{cut_off.height} of {training.height} trainings take longer than the {limit:g} hours after which a job is "
        f"cut off (`hardware.job_hours`). Training goes on from its last state when the job is sent again. The longest "
        f"({row['rule']}, {row['dataset']} with {row['backbone']}, {_hours(row['hours_a_job'])} hours) is sent again "
        f"{again} times: set `retries: {again}` in slurm/profile.yaml, or a longer `max_runtime` in "
        "slurm/partitions.yaml.\n"
    )


def _sums(title: str, names: tuple[str, ...], groups: Iterable[tuple[Sequence[Any], pl.DataFrame]]) -> str:
    """One row for each group of jobs: how many, how many on request alone, how many have run, and hours."""
    body = []
    for group, own in groups:
        longest = largest(own, "hours_a_job")
        numbers = (own.height, int(own["on_request"].sum()), own["seconds"].count())
        hours = (None if longest is None else _device_hours(own), longest)
        body.append(row_of(*map(str, group), *(f"{number:,}" for number in numbers), *map(_hours, hours)))
    columns = (*names, "Jobs", "of them on request", "have run", "Device hours", "Hours of the longest")
    return to_markdown(Table("plan", title, columns, tuple(body), pl.DataFrame(), text_columns=len(names)))


def _device_hours(jobs: pl.DataFrame) -> float:
    """Hours of all devices that the jobs hold, as far as they are known."""
    return float((jobs["hours_a_job"] * jobs["devices"]).sum())


def _hours(value: float | None) -> str:
    """Hours with two or three figures.

    >>> _hours(0.04), _hours(3.14159), _hours(1234.5), _hours(None)
    ('< 0.1', '3.1', '1,234', '–')
    """
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    return "< 0.1" if value < 0.1 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _devices(settings: Settings, job: Job) -> int:
    """Devices that a job holds: those of its backbone where it trains, or where the layers need all of them."""
    backbone = settings.backbones.get(job.backbone)
    shared = job.rule in TRAINING or getattr(backbone, "parallel", "data") == "layers"
    return getattr(backbone, "devices", 1) if job.rule in NETWORK_RULES and shared else 1


def _measured(job: Job) -> float | None:
    """Seconds of a job that has run, by Snakemake's benchmark."""
    path = Path(job.benchmark)
    return mean(pl.read_csv(path, separator="\t"), "s") if path.is_file() else None
