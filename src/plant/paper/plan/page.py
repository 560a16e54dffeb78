"""What a config will cost before anything runs: jobs, FLOPs, GPU hours, memory. Derived in docs/cost-model.md.

Snakemake says which jobs there are; all else is a pure function of the config (and of a corpus' own statistics, where
the config gives no sizes).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from plant.ground.files import write_text
from plant.ground.settings import Settings
from plant.paper.plan import work
from plant.paper.plan.jobs import GPU_RULES, Job
from plant.paper.plan.rows import TRAINING, Plan, Row, build_plan, jobs_by_rule
from plant.paper.render import to_csv
from plant.paper.systems import find_roles
from plant.paper.wording import MISSING

ASSUMPTIONS = (
    "FP32_SLOWER", "FLOPS_A_BYTE", "DEQUANTISATION_BYTES", "NF4_BYTES", "TRAINED_BYTES", "KEPT_COPIES", "LAST_PIECE",
    "LONGEST", "POSITIVES", "DESCRIPTION_TOKENS", "FEATURE_TOKENS", "WORKSPACE_GB", "START", "ONE_PASS",
)  # fmt: skip
"""Constants of plant.paper.plan.work; docs/cost-model.md gives the source of each."""
_ORDER = (
    "synthetic", "corpus", "subset", "marked", "tokenizer", "tokens", "random_backbone", "features", "label_embeddings",
    "relevance", "shortlist", "residual", "pretrain", "finetune", "predict", "attention", "tfidf_linear",
    "mig_log_odds", "combined", "tfidf_characters", "category_log_odds", "descriptions", "mentions", "evidence",
    "metrics",
)  # fmt: skip

_PAIRS_NOTE = (
    "One GPU: {hardware.name}, {hardware.memory_gb:g} GB. Hours of all seeds and recipes; memory of the largest job, a "
    "device. Scores: what label attention would add without a fused kernel.\n"
)


def write_plan(settings: Settings, jobs: Mapping[str, frozenset[Job]], folder: Path) -> None:
    """Write plan.csv (a row for each rule, dataset, backbone and recipe) and plan.md (sums, and how they are derived).

    The log gets the first part of plan.md, and the path.
    """
    plan, page = build_plan(settings, jobs), Path(folder) / "plan.md"
    for path, text in ((page.with_suffix(".csv"), to_csv(to_frame(plan))), (page, to_page(plan))):
        write_text(path, text)
    first = "\n".join([_headline(plan), _answers(plan), *_unknown(plan)])
    logging.getLogger("plant").info("plan\n\n%s\nMore in %s", first.replace("**", ""), page)


def to_frame(plan: Plan) -> pl.DataFrame:
    """The plan as a table at full precision; null where something is not known."""
    limit = plan.settings.hardware.memory_gb
    return pl.DataFrame(
        [
            {
                "rule": row.rule, "dataset": row.dataset, "backbone": row.backbone, "recipe": row.recipe,
                "jobs": row.jobs, "on_request": row.on_request, "experiments": " ".join(row.experiments),
                "sizes_from": ", ".join(row.sizes.sources) if row.sizes else None,
                "labels": row.sizes.labels if row.sizes else None, "documents": row.documents, "tokens": row.tokens,
                "epochs_at_most": row.epochs, "patience": row.patience, "updates": row.updates,
                "head_moves_at_most": row.movement, "head_is_stuck": None if row.movement is None else row.is_stuck,
                "flops_a_job": row.work.flops if row.work else None,
                "label_attention_flops_a_job": row.work.head if row.work else None,
                "gpu_hours_a_job": row.gpu_hours, "gpu_hours": row.gpu_hours and row.total_gpu_hours,
                "devices": row.devices or None, "memory_gb_a_device": row.memory.total if row.memory else None,
                "unfused_scores_gb": row.memory.scores if row.memory else None,
                "fits": row.memory.total <= limit if row.memory else None,
            }
            for row in plan.rows
        ],
        infer_schema_length=None,
    )  # fmt: skip


def to_page(plan: Plan) -> str:
    """The plan in words and sums, as Markdown."""
    rows, hardware = plan.asked, plan.settings.hardware
    parts = [
        "# Plan\n",
        _headline(plan),
        "## What can answer something\n",
        _answers(plan),
        "## Jobs and GPU hours of each rule\n",
        _rules(plan),
        "## By dataset and backbone\n",
        _PAIRS_NOTE.format(hardware=hardware),
        _pairs(rows, hardware.memory_gb),
        "## Sums\n",
        _sums("Dataset", rows, lambda row: row.dataset),
        _sums("Backbone", rows, lambda row: row.backbone),
        "An experiment alone, with the jobs that it shares with others (so these add up to more than the whole):\n",
        _experiments(plan),
    ]
    if asked_for := [row for row in plan.rows if row.on_request]:
        parts += [
            "## On request only\n",
            "No part of the target `all`; `experiment_<name>` runs them.\n",
            _pairs(asked_for, hardware.memory_gb),
        ]
    parts += _unknown(plan)
    parts += ["## How this is derived\n", _derivation(plan.settings)]
    return "\n".join(parts)


def _headline(plan: Plan) -> str:
    rows, hardware = plan.asked, plan.settings.hardware
    jobs, on_gpu = sum(row.jobs for row in rows), sum(row.jobs for row in rows if row.rule in GPU_RULES)
    hours = sum(row.total_gpu_hours for row in rows)
    waits = any(row.patience is not None for row in rows)
    too_large = [row for row in rows if row.memory and row.memory.total > hardware.memory_gb]
    misfits = ", ".join(sorted({row.backbone for row in too_large}))
    unfit = (
        f" {_hours(sum(row.total_gpu_hours for row in too_large))} of them are of jobs that do not fit the memory of "
        f"their devices ({misfits}): they say what the work would take, not that this hardware can do it."
        if too_large
        else ""
    )
    early = " Early stopping (patience) shortens it: every recipe is counted with all of its epochs." if waits else ""
    items = len(plan.settings.paper.items)
    grid = f" Beside them: {items} tables and figures of the paper, the cost table and this plan." if items else ""
    return (
        f"The target `all` has **{jobs:,} jobs**, {on_gpu:,} of them with a network. They take at most "
        f"**{_hours(hours)} GPU hours** on {hardware.name} ({hardware.tflops:g} TFLOP/s of dense bf16, of which "
        f"{hardware.utilisation:.0%} is reached).{unfit}{early} Runs that several experiments share are counted "
        f"once.{grid} No energy is claimed: it is measured, not planned (tables/cost).\n"
    )


def _answers(plan: Plan) -> str:
    """Which training cannot move the head, the cheapest comparison, and what a time limit does to the longest job."""
    hours, training = {}, [row for row in plan.asked if row.rule in TRAINING]
    for name, experiment in plan.settings.experiments.items():
        roles, rows = find_roles(plan.settings, experiment), plan.of(name)
        known = all(row.gpu_hours is not None for row in rows if row.rule in TRAINING)
        if roles.planted and roles.control and known and not experiment.on_request:
            hours[name] = sum(row.total_gpu_hours for row in rows)
    able = [name for name in hours if not any(row.is_stuck for row in plan.of(name))]
    stuck = sorted({f"{row.dataset} with {row.backbone}" for row in training if row.is_stuck})
    return (
        f"- The head cannot move as far as its random start is wide ({work.START:g}) in: {', '.join(stuck) or 'none'}. "
        "AdamW moves a weight by updates x rate / 2 at most (`head_moves_at_most` in plan.csv). A larger "
        "`head_learning_rate` or more epochs help; the target `tune` chooses them on validation.\n"
        f"- Cheapest comparison of planting with a random start: {_cheapest(hours, hours)}; without such a head: "
        f"{_cheapest(hours, able)}.\n"
        f"- {_limit(training, plan.settings.hardware.job_hours)}\n"
    )


def _cheapest(hours: Mapping[str, float], names: Iterable[str]) -> str:
    name = min(names, key=hours.__getitem__, default=None)
    return "none" if name is None else f"`experiment_{name}` ({_hours(hours[name])} GPU hours)"


def _limit(training: Iterable[Row], limit: float) -> str:
    hours = {row: (row.gpu_hours or 0.0) / max(1, row.devices) for row in training}
    cut_off = [row for row in hours if hours[row] > limit]
    if not cut_off:
        return f"No training takes longer than {limit:g} hours (`hardware.job_hours`): none is cut off."
    row = max(cut_off, key=hours.__getitem__)
    again = math.ceil(hours[row] / limit) - 1
    return (
        f"{len(cut_off)} of {len(hours)} trainings take longer than the {limit:g} hours after which a job is cut off "
        f"(`hardware.job_hours`); training goes on from its last state when the job is sent again. The longest "
        f"({row.rule}, {row.dataset} with {row.backbone}, {_hours(hours[row])} hours) is sent again {again} times: set "
        f"`retries: {again}` in slurm/profile.yaml, or a longer `max_runtime` in slurm/partitions.yaml."
    )


def _rules(plan: Plan) -> str:
    counts, extra = jobs_by_rule(plan.asked), jobs_by_rule(row for row in plan.rows if row.on_request)
    names = sorted({*counts, *extra}, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    hours = {name: sum(row.total_gpu_hours for row in plan.asked if row.rule == name) for name in names}
    body = [(name, f"{counts[name]:,}", f"{extra[name]:,}", _hours(hours[name]) if name in GPU_RULES else MISSING)
            for name in names]  # fmt: skip
    body.append(("all", f"{counts.total():,}", f"{extra.total():,}", _hours(sum(hours.values()))))
    return _table(("Rule", "Jobs of `all`", "on request", "GPU hours of `all`"), body)


def _pairs(rows: Iterable[Row], limit: float) -> str:
    """A row a dataset, backbone and stage; the recipes of a stage together."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.rule in (*TRAINING, "predict", "features"):
            groups.setdefault((row.dataset, row.backbone, row.rule), []).append(row)
    body = []
    for (dataset, backbone, rule), group in sorted(groups.items()):
        first, jobs = group[0], sum(row.jobs for row in group)
        if first.work is None or first.sizes is None:
            body.append((dataset, backbone, rule, f"{jobs:,}", *["not known"] * 3, *[MISSING] * 5))
            continue
        memories = [row.memory for row in group if row.memory]
        largest = max((memory.total for memory in memories), default=None)
        scores = max((memory.scores for memory in memories), default=None)
        body.append((
            dataset, backbone, rule, f"{jobs:,}", f"{first.documents:,}", f"{first.tokens:,.0f}",
            f"{sum(row.work.flops for row in group if row.work) / len(group) / 1e15:,.3g}",
            _hours(max(row.gpu_hours or 0.0 for row in group)), _hours(sum(row.total_gpu_hours for row in group)),
            MISSING if largest is None else f"{largest:,.0f} GB",
            MISSING if scores is None else f"{scores:,.0f} GB", _fits(largest, limit, first.devices),
        ))  # fmt: skip
    return _table(
        ("Dataset", "Backbone", "Stage", "Jobs", "Documents", "Tokens a document", "PFLOP a job (mean)",
         "GPU h a job (most)", "GPU h in all", "Memory", "+ scores", "Fits"), body, text=3,
    )  # fmt: skip


def _fits(needed: float | None, limit: float, devices: int) -> str:
    if needed is None:
        return MISSING
    return f"{'yes' if needed <= limit else '**no**'} ({devices} x {limit:g} GB)"


def _sums(title: str, rows: Sequence[Row], key: Callable[[Row], str]) -> str:
    body = []
    for name in sorted({key(row) for row in rows} - {""}):
        own = [row for row in rows if key(row) == name]
        body.append((name, f"{sum(row.jobs for row in own):,}", _hours(sum(row.total_gpu_hours for row in own))))
    return _table((title, "Jobs", "GPU hours"), body)


def _experiments(plan: Plan) -> str:
    body = []
    for name, experiment in plan.settings.experiments.items():
        rows = plan.of(name)
        body.append((
            name + (" (on request)" if experiment.on_request else ""), f"{sum(row.jobs for row in rows):,}",
            _hours(sum(row.total_gpu_hours for row in rows)),
        ))  # fmt: skip
    return _table(("Experiment", "Jobs", "GPU hours"), body)


def _unknown(plan: Plan) -> list[str]:
    """What has no number, and what to do about it."""
    without = [row for row in plan.rows if row.rule in TRAINING and row.work is None]
    sizes = sorted({row.dataset for row in without if row.sizes is None})
    networks = sorted({row.backbone for row in without if row.sizes is not None})
    bounds = sorted({row.dataset for row in plan.rows if row.sizes and "upper bound" in row.sizes.sources})
    lengths = sorted({row.dataset for row in plan.rows if row.sizes and row.sizes.tokens is None})
    said = {
        "Size not known, not counted (give `datasets.<name>.expected`, or make the corpus first)": sizes,
        "Shape not known, not counted (add it to src/plant/paper/plan/architectures.yaml, or give a local folder with "
        "its config.json)": networks,
        "Sizes taken from the dataset that it is a part of, an upper bound": bounds,
        "Length of documents not known, counted with max_tokens": lengths,
    }
    lines = [f"- {what}: {', '.join(names)}." for what, names in said.items() if names]
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

{_table(("Assumption", "Value"), [(name, f"{getattr(work, name):g}") for name in ASSUMPTIONS])}"""


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
