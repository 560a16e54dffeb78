"""The rows of the plan: every kind of job of a config with its number, work, GPU hours and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from plant.ground.settings import Finetuning, Pretraining, Settings, WordNetwork, Words
from plant.paper.plan.jobs import GPU_RULES, Job
from plant.paper.plan.networks import NetworkBackbone, find_network
from plant.paper.plan.sizes import Sizes, find_sizes
from plant.paper.plan.work import (
    DESCRIPTION_TOKENS,
    FEATURE_TOKENS,
    START,
    Memory,
    Setup,
    Work,
    count_updates,
    device_memory,
    labels_in_play,
    largest_movement,
    predict,
    stage1,
    stage2,
)

TRAINING = ("pretrain", "finetune")


@dataclass(frozen=True)
class Row:
    """The jobs of one rule on one dataset with one backbone and recipe; they differ in their seeds."""

    rule: str
    dataset: str
    backbone: str
    recipe: str
    jobs: int
    experiments: tuple[str, ...]
    """That need them."""
    on_request: bool
    """The target `all` does not need them."""
    sizes: Sizes | None = None
    """None: not known, or of no matter."""
    tokens: float | None = None
    """Of the mean document, cut at max_tokens."""
    documents: int | None = None
    """That one pass reads."""
    epochs: int | None = None
    """At most."""
    patience: int | None = None
    updates: int | None = None
    """Of all epochs."""
    movement: float | None = None
    """Largest movement of a weight of the head, about. None: not known, or no training."""
    work: Work | None = None
    """Of one job. None: sizes or network not known, or a rule without a network."""
    gpu_hours: float | None = None
    """Of one job, all its devices together."""
    devices: int = 0
    """GPUs of one job."""
    memory: Memory | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether the head cannot move as far as its random start is wide."""
        return self.movement is not None and self.movement < START

    @property
    def total_gpu_hours(self) -> float:
        """Of all jobs of the row; 0 where it is not known."""
        return self.jobs * (self.gpu_hours or 0.0)


@dataclass(frozen=True)
class Plan:
    """Rows, and the jobs that they count."""

    settings: Settings
    rows: tuple[Row, ...]
    jobs: Mapping[str, frozenset[Job]]
    """"all" and each experiment -> its jobs; shared ones stand in each."""

    @property
    def asked(self) -> tuple[Row, ...]:
        """Rows of the target `all`."""
        return tuple(row for row in self.rows if not row.on_request)

    def of(self, experiment: str) -> tuple[Row, ...]:
        """Rows that an experiment needs, each with the jobs that it needs of them."""
        return tuple(_rows(self.settings, {experiment: self.jobs[experiment]}))


def build_plan(settings: Settings, jobs: Mapping[str, frozenset[Job]]) -> Plan:
    """Rows of `all` and of all experiments, jobs that several need counted once."""
    return Plan(settings, tuple(_rows(settings, jobs)), jobs)


def _rows(settings: Settings, jobs: Mapping[str, frozenset[Job]]) -> Iterable[Row]:
    for kind, group in groupby(sorted(frozenset().union(*jobs.values()), key=_kind), key=_kind):
        same = list(group)
        row = Row(
            *kind, jobs=len(same), on_request=jobs.get("all", frozenset()).isdisjoint(same),
            experiments=tuple(name for name in jobs if name != "all" and not jobs[name].isdisjoint(same)),
        )  # fmt: skip
        yield _sized(settings, row) if row.rule in GPU_RULES else row


def _kind(job: Job) -> tuple[str, str, str, str]:
    return job.rule, job.dataset, job.backbone, job.recipe


def _sized(settings: Settings, row: Row) -> Row:
    """The row with its work, hours and memory, as far as they are known."""
    backbone, sizes = settings.backbones[row.backbone], find_sizes(settings, row.dataset, row.backbone)
    if isinstance(backbone, Words | WordNetwork):  # the cost model is one of transformers
        return row
    if row.rule not in TRAINING and backbone.parallel == "data":
        backbone = backbone.model_copy(update={"devices": 1})
    recipe = _recipe(settings, row) if row.rule in TRAINING else None
    facts: dict[str, Any] = {"sizes": sizes, "devices": backbone.devices}
    if recipe is not None:
        facts |= {"epochs": recipe.epochs, "patience": recipe.patience}
    if recipe is not None and sizes is not None:
        facts |= {"updates": count_updates(sizes.train, recipe), "movement": largest_movement(sizes.train, recipe)}
    if sizes is not None:
        facts |= {"tokens": sizes.tokens_of(backbone), "documents": _documents(settings, row.rule, sizes)}
    setup = make_setup(backbone, sizes)
    if setup is not None:
        work = _work(settings, row, setup)
        facts |= {
            "work": work, "gpu_hours": work.gpu_hours(settings.hardware, backbone),
            "memory": _memory(settings, row, setup),
        }  # fmt: skip
    return Row(**{**vars(row), **facts})


def _recipe(settings: Settings, row: Row) -> Pretraining | Finetuning:
    """What a job of Stage 1 or Stage 2 is trained by."""
    return settings.pretrainings[row.recipe] if row.rule == "pretrain" else _stage2(settings, row)


def _stage2(settings: Settings, row: Row) -> Finetuning:
    return settings.stage2(row.dataset, row.backbone, row.recipe)


def make_setup(backbone: NetworkBackbone, sizes: Sizes | None) -> Setup | None:
    """Backbone and corpus together; None where either is not known."""
    network = find_network(backbone)
    if network is None or sizes is None:
        return None
    given = getattr(backbone, "parameters", None)
    return Setup(network, backbone, sizes, passed=network.passed if given is None else given * 1e9)


def _documents(settings: Settings, rule: str, sizes: Sizes) -> int:
    match rule:
        case "pretrain" | "finetune":
            return sizes.train
        case "predict":
            return sizes.val + sizes.test
        case "features":
            return sizes.train + sizes.val + sizes.test
        case "label_embeddings":
            return sizes.labels
    return settings.evaluation.attention_documents


def _work(settings: Settings, row: Row, setup: Setup) -> Work:
    documents = _documents(settings, row.rule, setup.sizes)
    match row.rule:
        case "pretrain":
            return stage1(setup, settings.pretrainings[row.recipe])
        case "finetune":
            return stage2(setup, _stage2(settings, row))
        case "predict" | "attention":
            return predict(setup, _stage2(settings, row), documents)
    uncached = Setup(
        setup.network, setup.backbone.model_copy(update={"cache_features": False}), setup.sizes, setup.passed
    )
    read = uncached.read(documents, batch=max(1, int(FEATURE_TOKENS / setup.tokens)), training=False)
    return read if row.rule == "features" else read * (DESCRIPTION_TOKENS / setup.computed)


def _memory(settings: Settings, row: Row, setup: Setup) -> Memory | None:
    labels = setup.sizes.labels
    if row.rule == "pretrain":
        batch = settings.pretrainings[row.recipe].batch_size
        return device_memory(setup, batch=batch, labels=0, kept=0, training=True, whole=False)
    if row.rule not in ("finetune", "predict"):
        return None
    recipe = _stage2(settings, row)
    pool, kept = labels_in_play(labels, recipe)
    training = row.rule == "finetune"
    return device_memory(
        setup, batch=recipe.batch_size, labels=pool, kept=kept * training, training=training, whole=True
    )


def jobs_by_rule(rows: Iterable[Row]) -> Counter[str]:
    """Rule -> number of jobs."""
    found: Counter[str] = Counter()
    for row in rows:
        found[row.rule] += row.jobs
    return found
