"""Faults that only a look at several sections shows: unknown names, and combinations that cannot work."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from plant.ground.errors import nearest
from plant.ground.settings.base import NO_PRETRAINING
from plant.ground.settings.corpus import Subset
from plant.ground.settings.model import Words
from plant.ground.settings.tuning import run_name

if TYPE_CHECKING:
    from plant.ground.settings.load import Settings


def unknown_names(settings: Settings) -> Iterator[str]:
    """A line for each name that no section declares."""
    for path, name, known in _names(settings):
        if name is not None and name not in known:
            yield f"{path}: unknown name {name!r}. {nearest(name, known)}"


def _names(settings: Settings) -> Iterator[tuple[str, str | None, Collection[str]]]:
    """(key, name, known names) of every place that names an entry of another section. None: it names nothing."""
    wholes = [name for name, dataset in settings.datasets.items() if not isinstance(dataset, Subset)]
    for name, dataset in settings.datasets.items():
        if isinstance(dataset, Subset):
            yield f"datasets.{name}.of", dataset.of, wholes
    yield "paper.main_backbone", settings.paper.main_backbone, settings.backbones
    for name, variant in settings.variants.items():
        path = f"variants.{name}"
        yield f"{path}.pretraining", variant.pretraining, [*settings.pretrainings, NO_PRETRAINING]
        yield f"{path}.finetuning", variant.finetuning, settings.finetunings
        yield f"{path}.evidence", variant.evidence, settings.evidences
        yield f"{path}.average_with", variant.average_with, settings.backbones
    for name, experiment in settings.experiments.items():
        path = f"experiments.{name}"
        yield f"{path}.dataset", experiment.dataset, settings.datasets
        yield f"{path}.backbone", experiment.backbone, settings.backbones
        yield from ((f"{path}.variants", each, settings.variants) for each in experiment.variants)
    for name, study in settings.studies.items():
        for place, cell in enumerate(study.cells):
            path = f"studies.{name}.cells.{place}"
            yield f"{path}.experiment", cell.experiment, settings.experiments
            yield f"{path}.against_experiment", cell.against_experiment, settings.experiments
    for name, tuning in settings.tunings.items():
        yield f"tunings.{name}.experiment", tuning.experiment, settings.experiments
        yield from ((f"tunings.{name}.also", each, settings.experiments) for each in tuning.also)


def combination_faults(settings: Settings) -> Iterator[str]:
    """A line for each combination of sections that cannot work. All names that they use must exist."""
    if not settings.experiments:
        yield "experiments: at least one is needed"
    if set("{}[]*?") & set(settings.results):  # to Snakemake and to polars
        yield f"results: {{ }} [ ] * ? make a pattern of a path, got {settings.results!r}"
    if NO_PRETRAINING in settings.pretrainings:
        yield f"pretrainings.{NO_PRETRAINING}: this name is reserved for random initialisation"
    if "best" in settings.variants:
        yield "variants.best: this name belongs to the folder of the best system (results/serving)"
    for name, pretraining in settings.pretrainings.items():
        if pretraining.k > settings.relevance.k:
            yield f"pretrainings.{name}.k: {pretraining.k} is more than relevance.k = {settings.relevance.k}"
    used = {experiment.dataset for experiment in settings.experiments.values()}
    used |= set(map(settings.whole, used))
    for name in settings.datasets:
        if name not in used:
            yield (
                f"datasets.{name}: no experiment uses it. Name it in one (`dataset: {name}`; with `on_request: true` "
                "it is no part of `all`), or leave it out"
            )
    for name in settings.variants:
        yield from _variant_faults(settings, name)
    for name in settings.experiments:
        yield from _experiment_faults(settings, name)
    for name in settings.studies:
        yield from _study_faults(settings, name)
    for name in settings.tunings:
        yield from _tuning_faults(settings, name)
    runs = [
        run_name(experiment, settings.variants[variant])
        for experiment in settings.experiments.values()
        for variant in experiment.variants
    ]
    for key in settings.tuned:
        if key not in runs:
            yield f"tuned: no experiment has a run {key!r}. {nearest(key, runs)}"


def _variant_faults(settings: Settings, name: str) -> Iterator[str]:
    variant, path = settings.variants[name], f"variants.{name}"
    stage1, stage2 = settings.pretrainings.get(variant.pretraining), settings.finetunings[variant.finetuning]
    ranks_words = stage1 is not None and stage1.lists == "vocabulary"
    if stage2.differentiable_attention and not ranks_words:
        yield (
            f"{path}: {variant.finetuning} has differentiable_attention, which needs a pretraining with "
            f"`lists: vocabulary`; got {variant.pretraining}"
        )
    if ranks_words and not stage2.differentiable_attention:
        yield (
            f"{path}: {variant.pretraining} has `lists: vocabulary`, which only differentiable_attention "
            f"reads; {variant.finetuning} has none"
        )
    if variant.average_with is not None:
        if isinstance(settings.backbones[variant.average_with], Words):
            yield f"{path}.average_with: {variant.average_with!r} has no network"
        if variant.evidence is not None:
            yield f"{path}.average_with: a variant has `average_with` or `evidence`, not both"
    epoch, key = variant.pretraining_epoch, f"{path}.pretraining_epoch"
    if epoch is None:
        return
    if stage1 is None:
        yield f"{key}: needs a Stage 1 recipe"
    elif not stage1.keep_epochs:
        yield f"{key}: needs pretrainings.{variant.pretraining}.keep_epochs: true"
    elif stage1.patience is not None:
        yield f"{key}: needs pretrainings.{variant.pretraining}.patience: null (else that epoch may not be reached)"
    elif epoch > stage1.epochs:
        yield f"{key}: {variant.pretraining} has {stage1.epochs} epochs, got {epoch}"


def _experiment_faults(settings: Settings, name: str) -> Iterator[str]:
    experiment, path = settings.experiments[name], f"experiments.{name}"
    if name in ("tables", "figures"):
        yield f"{path}: this name belongs to a folder of results/paper"
    if isinstance(settings.backbones[experiment.backbone], Words) and experiment.variants:
        yield f"{path}.backbone: {experiment.backbone!r} has no network; variants need one"
    for variant in experiment.variants:
        if settings.variants[variant].average_with == experiment.backbone:
            yield f"variants.{variant}.average_with: {path} has this backbone itself; name another one"


def _study_faults(settings: Settings, name: str) -> Iterator[str]:
    study = settings.studies[name]
    for metric in study.metrics:
        if metric not in settings.statistics.metrics:
            yield f"studies.{name}.metrics: {metric!r} is not among statistics.metrics"
    for place, cell in enumerate(study.cells):
        path = f"studies.{name}.cells.{place}"
        for key, (where, system) in zip(("system", "against"), cell.sides, strict=True):
            known = settings.experiments[where].systems
            if system not in known:
                yield f"{path}.{key}: {where} has no {system!r}. {nearest(system, known)}"
        ours, theirs = (settings.experiments[where] for where, _ in cell.sides)
        own, other = settings.whole(ours.dataset), settings.whole(theirs.dataset)
        if own != other:
            yield f"{path}.against_experiment: its dataset is cut from {other!r}, not from {own!r}"
        if not set(ours.seeds) <= set(theirs.seeds):
            has = f"it has the seeds {list(theirs.seeds)}, {list(ours.seeds)} are compared"
            yield f"{path}.against_experiment: {has}"


def _tuning_faults(settings: Settings, name: str) -> Iterator[str]:
    tuning, path = settings.tunings[name], f"tunings.{name}"
    known = settings.experiments[tuning.experiment].variants
    for arm in tuning.variants:
        if arm not in known:
            yield f"{path}.variants: {tuning.experiment} has no {arm!r}. {nearest(arm, known)}"
        else:
            taken = settings.finetunings.keys() & tuning.points(settings.variants[arm].finetuning).keys()
            yield from (f"finetunings.{recipe}: this name belongs to a point of {path}" for recipe in sorted(taken))
