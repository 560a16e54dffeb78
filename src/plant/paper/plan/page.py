"""What a config will cost before anything runs: jobs, FLOPs, GPU hours and memory. docs/cost-model.md derives it.

Snakemake says which jobs there are. All else is computed from the config, and from the statistics of a corpus where the
config gives no sizes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from plant.ground.files import write_text
from plant.ground.settings import Settings, WordNetwork
from plant.paper.plan import work
from plant.paper.plan.jobs import GPU_RULES, Job
from plant.paper.plan.rows import TRAINING, build_plan, part_of
from plant.paper.plan.sizes import find_sizes
from plant.paper.render import to_csv
from plant.paper.systems import find_roles
from plant.paper.wording import MISSING

ASSUMPTIONS = {name: value for name, value in vars(work).items() if name.isupper()}
"""The constants of the cost model."""
_ORDER = (
    "synthetic", "corpus", "subset", "marked", "tokenizer", "tokens", "random_backbone", "features", "label_embeddings",
    "relevance", "shortlist", "residual", "pretrain", "finetune", "predict", "attention", "tfidf_linear",
    "mig_log_odds", "combined", "tfidf_characters", "category_log_odds", "descriptions", "mentions", "evidence",
    "average", "metrics",
)  # fmt: skip
"""Rules in the order of the story; others follow by name."""
_PAIRS_NOTE = (
    "One GPU: {hardware.name}, {hardware.memory_gb:g} GB. Hours of all seeds and recipes; memory of the largest job, a "
    "device. Scores: what label attention would add without a fused kernel.\n"
)


def write_plan(settings: Settings, jobs: Mapping[str, frozenset[Job]], folder: Path) -> None:
    """Write plan.csv (one row for each rule, dataset, backbone and recipe) and plan.md (sums, and their derivation).

    The log gets the first part of plan.md, and the path.
    """
    plan, path = build_plan(settings, jobs), Path(folder) / "plan.md"
    page = to_page(settings, jobs, plan)
    for file, text in ((path.with_suffix(".csv"), to_csv(plan)), (path, page)):
        write_text(file, text)
    first, _, _ = page.removeprefix("# Plan\n").partition("## Jobs and GPU hours")
    said = "\n".join([first.strip(), *_unknown(settings, plan)]).replace("**", "")
    logging.getLogger("plant").info("plan\n\n%s\nMore in %s", said, path)


def to_page(settings: Settings, jobs: Mapping[str, frozenset[Job]], plan: pl.DataFrame) -> str:
    """The plan in words and sums, as Markdown."""
    asked, on_request = plan.filter(~pl.col("on_request")), plan.filter("on_request")
    alone = {name: part_of(plan, jobs[name]) for name in settings.experiments}
    hardware = settings.hardware
    parts = [
        "# Plan\n",
        _headline(settings, asked),
        "## What can answer something\n",
        _answers(settings, asked, alone),
        "## Jobs and GPU hours of each rule\n",
        _rules(asked, on_request),
        "## By dataset and backbone\n",
        _PAIRS_NOTE.format(hardware=hardware),
        _pairs(asked, hardware.memory_gb),
        "## Sums\n",
        *(_table((key.capitalize(), "Jobs", "GPU hours"), [
            (name, *_sums(own)) for (name,), own in asked.sort(key).group_by(key, maintain_order=True) if name
        ]) for key in ("dataset", "backbone")),
        "An experiment alone, with the jobs that it shares with others (so these add up to more than the whole):\n",
        _table(("Experiment", "Jobs", "GPU hours"), [
            (name + (" (on request)" if settings.experiments[name].on_request else ""), *_sums(rows))
            for name, rows in alone.items()
        ]),
    ]  # fmt: skip
    if on_request.height:
        said = "No part of the target `all`; `experiment_<name>` runs them.\n"
        parts += ["## On request only\n", said, _pairs(on_request, hardware.memory_gb)]
    return "\n".join([*parts, *_unknown(settings, plan), "## How this is derived\n", _derivation(settings)])


def _headline(settings: Settings, asked: pl.DataFrame) -> str:
    hardware, on_gpu = settings.hardware, asked.filter(pl.col("rule").is_in(GPU_RULES))
    too_large = asked.filter(~pl.col("fits"))
    unfit = early = grid = ""
    if too_large.height:
        names = ", ".join(too_large["backbone"].unique().sort())
        unfit = (
            f" {_hours(_total(too_large))} of them are of jobs that do not fit the memory of their devices "
            f"({names}): they say what the work would take, not that this hardware can do it."
        )
    if asked["patience"].is_not_null().any():
        early = " Early stopping (patience) shortens it: every recipe is counted with all of its epochs."
    if items := len(settings.paper.items):
        grid = f" Beside them: {items} tables and figures of the paper, the cost table and this plan."
    return (
        f"The target `all` has **{asked['jobs'].sum():,} jobs**, {on_gpu['jobs'].sum():,} of them with a network. They "
        f"take at most **{_hours(_total(asked))} GPU hours** on {hardware.name} ({hardware.tflops:g} "
        f"TFLOP/s of dense bf16, of which {hardware.utilisation:.0%} is reached).{unfit}{early} Runs that several "
        f"experiments share are counted once.{grid} No energy is claimed: it is measured, not planned (tables/cost).\n"
    )


def _answers(settings: Settings, asked: pl.DataFrame, alone: Mapping[str, pl.DataFrame]) -> str:
    """Which training cannot move the head, the cheapest comparison, and what a time limit does to the longest job."""
    hours: dict[str, float] = {}
    able: dict[str, float] = {}
    training = asked.filter(pl.col("rule").is_in(TRAINING))
    for name, rows in alone.items():
        roles = find_roles(settings, settings.experiments[name])
        known = rows.filter(pl.col("rule").is_in(TRAINING))["gpu_hours"].is_not_null().all()
        if roles.planted and roles.control and known and not settings.experiments[name].on_request:
            hours[name] = _total(rows)
            if not rows["head_is_stuck"].any():
                able[name] = hours[name]
    stuck = training.filter("head_is_stuck").select(pl.format("{} with {}", "dataset", "backbone").unique().sort())
    return (
        f"- The head cannot move as far as its random start is wide ({work.START:g}) in: "
        f"{', '.join(stuck.to_series()) or 'none'}. "
        "AdamW moves a weight by updates x rate / 2 at most (`head_moves_at_most` in plan.csv). A larger "
        "`head_learning_rate` or more epochs help; the target `tune` chooses them on validation.\n"
        f"- Cheapest comparison of planting with a random start: {_cheapest(hours)}; without such a head: "
        f"{_cheapest(able)}.\n"
        f"- {_limit(training, settings.hardware.job_hours)}\n"
    )


def _cheapest(hours: Mapping[str, float]) -> str:
    name = min(hours, key=hours.__getitem__, default=None)
    return "none" if name is None else f"`experiment_{name}` ({_hours(hours[name])} GPU hours)"


def _limit(training: pl.DataFrame, limit: float) -> str:
    """What a cluster's time limit does to the trainings."""
    lasting = training.with_columns(hours=pl.col("gpu_hours_a_job").fill_null(0.0) / pl.col("devices"))
    cut_off = lasting.filter(pl.col("hours") > limit)
    if cut_off.is_empty():
        return f"No training takes longer than {limit:g} hours (`hardware.job_hours`): none is cut off."
    row = cut_off.row(int(cut_off["hours"].arg_max() or 0), named=True)
    again = math.ceil(row["hours"] / limit) - 1
    return (
        f"{cut_off.height} of {training.height} trainings take longer than the {limit:g} hours after which a job is "
        f"cut off (`hardware.job_hours`); training goes on from its last state when the job is sent again. The longest "
        f"({row['rule']}, {row['dataset']} with {row['backbone']}, {_hours(row['hours'])} hours) is sent again {again} "
        f"times: set `retries: {again}` in slurm/profile.yaml, or a longer `max_runtime` in slurm/partitions.yaml."
    )


def _rules(asked: pl.DataFrame, on_request: pl.DataFrame) -> str:
    names = {*asked["rule"], *on_request["rule"]}
    body = []
    for name in sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)):
        jobs, hours = _sums(asked.filter(rule=name))
        extra, _ = _sums(on_request.filter(rule=name))
        body.append((name, jobs, extra, hours if name in GPU_RULES else MISSING))
    jobs, hours = _sums(asked)
    body.append(("all", jobs, _sums(on_request)[0], hours))
    return _table(("Rule", "Jobs of `all`", "on request", "GPU hours of `all`"), body)


def _pairs(rows: pl.DataFrame, limit: float) -> str:
    """One row for each dataset, backbone and stage, with all recipes of the stage."""
    groups = (
        rows.filter(pl.col("rule").is_in([*TRAINING, "predict", "features"]))
        .group_by("dataset", "backbone", "rule")
        .agg(
            pl.col("jobs", "gpu_hours").sum(),
            pl.col("documents", "tokens", "devices").first(),
            pl.col("gpu_hours_a_job", "memory_gb_a_device", "unfused_scores_gb").max(),
            pl.col("flops_a_job").mean(),
        )
        .sort("dataset", "backbone", "rule")
    )
    body = []
    for row in groups.iter_rows(named=True):
        name = (row["dataset"], row["backbone"], row["rule"], f"{row['jobs']:,}")
        if row["flops_a_job"] is None:
            body.append((*name, *["not known"] * 3, *[MISSING] * 5))
            continue
        memory, scores, fits = row["memory_gb_a_device"], row["unfused_scores_gb"], MISSING
        if memory is not None:
            fits = f"{'yes' if memory <= limit else '**no**'} ({row['devices']} x {limit:g} GB)"
        body.append((
            *name, f"{row['documents']:,}", f"{row['tokens']:,.0f}", f"{row['flops_a_job'] / 1e15:,.3g}",
            _hours(row["gpu_hours_a_job"]), _hours(row["gpu_hours"]),
            *(MISSING if gb is None else f"{gb:,.0f} GB" for gb in (memory, scores)), fits,
        ))  # fmt: skip
    return _table(
        ("Dataset", "Backbone", "Stage", "Jobs", "Documents", "Tokens a document", "PFLOP a job (mean)",
         "GPU h a job (most)", "GPU h in all", "Memory", "+ scores", "Fits"), body, text=3,
    )  # fmt: skip


def _total(rows: pl.DataFrame) -> float:
    """GPU hours of some rows."""
    return float(rows["gpu_hours"].sum())


def _sums(rows: pl.DataFrame) -> tuple[str, str]:
    """Jobs and GPU hours of some rows."""
    return f"{rows['jobs'].sum():,}", _hours(_total(rows))


def _unknown(settings: Settings, plan: pl.DataFrame) -> list[str]:
    """What has no number, and what to do about it."""
    sized = plan.filter(pl.col("labels").is_not_null())
    without = plan.filter(pl.col("rule").is_in(TRAINING) & pl.col("flops_a_job").is_null())
    shapeless = without.filter(pl.col("labels").is_not_null())
    over_words = [name for name, backbone in settings.backbones.items() if isinstance(backbone, WordNetwork)]
    said: dict[str, Iterable[str]] = {
        "Size not known, not counted (give `datasets.<name>.expected`, or make the corpus first)": (
            without.filter(pl.col("labels").is_null())["dataset"]
        ),
        "Shape not known, not counted (add it to src/plant/paper/plan/architectures.yaml, or give a local folder with "
        "its config.json)": shapeless.filter(~pl.col("backbone").is_in(over_words))["backbone"],
        "Network over words, its hours not counted (the cost model is one of transformers)": (
            shapeless.filter(pl.col("backbone").is_in(over_words))["backbone"]
        ),
        "Sizes taken from the dataset that it is a part of, an upper bound": (
            sized.filter(pl.col("sizes_from").str.contains("upper bound"))["dataset"]
        ),
        "Length of documents not known, counted with max_tokens": [
            dataset
            for dataset, backbone in sized.select("dataset", "backbone").unique().rows()
            if (sizes := find_sizes(settings, dataset, backbone)) and sizes.tokens is None
        ],
    }
    named = {what: sorted(set(names)) for what, names in said.items()}
    lines = [f"- {what}: {', '.join(names)}." for what, names in named.items() if names]
    return ["## What is not known\n", "\n".join(lines) + "\n"] if lines else []


def _derivation(settings: Settings) -> str:
    hardware = settings.hardware
    return f"""\
Full derivation, sources and checks: docs/cost-model.md. P weights that a token passes through, n tokens, h hidden size,
L labels, m labels with a gradient, b documents a micro-batch, s self-attention's products a token.

- Backbone, a token: forward 2P + s + 2 LoRA. Backward 2P (gradients of the inputs; 4P if all weights train) + 2s +
  4 LoRA, and with gradient checkpointing the forward pass once more. A frozen backbone has no backward pass.
- Label attention and head, a micro-batch: keys and values 4bnh², queries and head vectors 4Lh², scores and sums 4bmnh;
  with gradient three times that. Stage 2 finds hard negatives in a pass over all labels without gradient, then trains
  on the positives and the m hardest. Stage 1: keys 2nh², queries and scores 2mh² + 2mnh of its sampled labels.
- After every epoch the validation split is predicted. Everything is counted at the recipe's largest number of epochs.
- GPU hours = (backbone + {work.FP32_SLOWER:g} x fp32 products + {work.DEQUANTISATION_BYTES * work.FLOPS_A_BYTE:,.0f} \
FLOPs a weight that is unpacked from NF4) / ({hardware.tflops:g} TFLOP/s x {hardware.utilisation:g}). Data parallelism
  leaves the sum as it is; layers spread over devices run one after the other: times the devices.
- Memory: weights (NF4 {work.NF4_BYTES} bytes, bf16 2, fp32 4), 4 + \
{work.TRAINED_BYTES} bytes a trained weight, activations, fp32 states of label attention, {work.WORKSPACE_GB:g} GB of
  work space; at the longest documents, so it is an upper estimate.

{_table(("Assumption", "Value"), [(name, f"{value:g}") for name, value in ASSUMPTIONS.items()])}"""


def _hours(value: float) -> str:
    """GPU hours with two or three figures.

    >>> _hours(0.04), _hours(3.14159), _hours(1234.5)
    ('< 0.1', '3.1', '1,234')
    """
    if value == 0:
        return "0"
    if value < 0.1:
        return "< 0.1"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _table(columns: Sequence[str], body: Iterable[Sequence[str]], *, text: int = 1) -> str:
    dashes = ["---"] * text + ["---:"] * (len(columns) - text)
    lines = [columns, dashes, *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
