"""The rows of every table: which systems an experiment has, how they are printed, and what they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from plant.baselines.registry import baselines, read_by
from plant.finetuning.losses import STAGE_2_LOSSES
from plant.ground.settings import NO_PRETRAINING, Experiment, Finetuning, Settings, Variant
from plant.relevance.measures import MEASURES

Kind = Literal["planted", "control", "unplanted", "no network"]
KIND_TITLES: dict[Kind, str] = {
    "planted": "relevance is planted: by Stage 1, or as static attention",
    "control": "the same with relevance that says nothing of the labels",
    "unplanted": "random initialisation, nothing planted",
    "no network": "no network",
}
KIND_COLOURS: dict[Kind, str] = {
    "planted": "#0072B2",
    "control": "#AA4499",
    "unplanted": "#D55E00",
    "no network": "#444444",
}
"""Hues of the palettes of Okabe and Ito and of Tol. Colour-blind readers can tell them apart."""


@dataclass(frozen=True)
class System:
    """One row. A system without a network has a name, a title and a kind alone."""

    name: str
    """Key of its files: the name of a variant or of a baseline."""
    title: str
    kind: Kind
    pretraining: str | None = None
    """Name of the Stage 1 recipe; None without Stage 1."""
    epochs: tuple[int, int] | None = None
    """Of Stage 1 and of Stage 2. They all run, unless a stage has `patience` (choice C16)."""
    total_epochs: int = 0
    """Of both stages together; of both networks for an average."""
    may_stop_early: bool = False
    """Whether a stage has `patience`."""
    stages: tuple[object, ...] = field(default=(), compare=False)
    """What it does in Stages 1, 2 and 3."""
    method: Mapping[str, object] = field(default_factory=dict, compare=False)
    """Loss of Stage 2, Stage 3 and averaging, by the keys of the config."""


@dataclass(frozen=True)
class Roles:
    """The systems that the headline compares. A role is None if the experiment has no such system."""

    planted: System | None
    control: System | None
    """The random initialisation that is nearest to `planted` in loss and number of epochs."""
    equal_compute: bool
    """True if `control` has the loss of `planted`, as many epochs as its two stages together, and no early stopping."""
    baselines: tuple[System, ...]


def system_title(settings: Settings, name: str) -> str:
    """How a variant or a baseline is printed."""
    return baselines()[name].title if name in baselines() else settings.variants[name].title or name


def find_system(settings: Settings, experiment: Experiment, name: str) -> System:
    """A variant or a baseline as a row."""
    if name in baselines() or not settings.reads_network(name):
        return System(name, system_title(settings, name), "no network")
    variant = settings.variants[name]
    stage1, stage2 = settings.pretrainings.get(variant.pretraining), settings.finetunings[variant.finetuning]
    measures = {stage1.measure} if stage1 else set()
    if stage2.static_attention:
        measures.add(stage2.static_measure)
    is_control = all(MEASURES[measure].control for measure in measures)
    tuned = settings.stage2_of(experiment, name)
    epochs = (variant.pretraining_epoch or (stage1.epochs if stage1 else 0), tuned.epochs)
    evidence = {"evidence": settings.evidence_of(name), "average_with": variant.average_with}
    return System(
        name,
        system_title(settings, name),
        kind="unplanted" if not measures else "control" if is_control else "planted",
        pretraining=variant.pretraining if stage1 else None,
        epochs=epochs,
        total_epochs=sum(epochs) * (1 if variant.average_with is None else 2),
        may_stop_early=any(stage is not None and stage.patience is not None for stage in (stage1, tuned)),
        stages=(variant.initial, variant.finetuning, variant.evidence),
        method={key: getattr(stage2, key) for key in _loss_keys()} | evidence,
    )


@cache
def _loss_keys() -> tuple[str, ...]:
    """Keys of a Stage 2 recipe that say what its loss is, in the order of the recipe."""
    losses = STAGE_2_LOSSES.folder
    keys = {"loss", "loss_options", "hard_negatives"}.union(*map(losses.options, losses.names()))
    return tuple(key for key in Finetuning.model_fields if key in keys)


def list_systems(settings: Settings, experiment: Experiment) -> tuple[System, ...]:
    """All systems of an experiment in table order: variants, baselines, and the reference last (Table 6)."""
    names = dict.fromkeys([*experiment.variants, *experiment.baselines])
    ordered = [*(name for name in names if name != experiment.reference), experiment.reference]
    return tuple(find_system(settings, experiment, name) for name in ordered)


def find_roles(settings: Settings, experiment: Experiment) -> Roles:
    """The planted system (the reference if it is planted), its fairest control, and the baselines."""
    systems = list_systems(settings, experiment)
    without_network = tuple(system for system in systems if system.kind == "no network")
    unplanted = [system for system in systems if system.kind == "unplanted"]
    candidates = [system for system in systems if system.kind == "planted"]
    planted = min(candidates, key=lambda system: system.name != experiment.reference, default=None)
    if planted is None or not unplanted:
        return Roles(planted, None, False, without_network)

    def unfairness(system: System) -> tuple[bool, int]:
        return planted.method != system.method, abs(planted.total_epochs - system.total_epochs)

    control = min(unplanted, key=unfairness)
    early = planted.may_stop_early or control.may_stop_early
    return Roles(planted, control, not early and unfairness(control) == (False, 0), without_network)


def system_of(variant: Variant) -> str:
    """Name of the folder of a variant's scores. Two variants of the same recipes share it.

    >>> system_of(Variant(finetuning="bce", evidence="all")), system_of(Variant(finetuning="bce"))
    ('none+bce+all', 'none+bce')
    >>> system_of(Variant(finetuning="bce", average_with="backward"))
    'none+bce+mean@backward'
    """
    if variant.average_with is not None:
        return f"{variant.network}+mean@{variant.average_with}"
    return variant.network + ("" if variant.evidence is None else f"+{variant.evidence}")


def group_systems(systems: Sequence[System]) -> dict[str, list[System]]:
    """The systems by what sets them apart from the last, the reference: one stage, several, or having no network.

    Returns:
        group -> its systems in table order, without the reference and without empty groups. A reference without
        stages of its own (a baseline) has one group of networks.
    """
    *others, reference = systems
    groups: dict[str, list[System]] = {
        **{f"Stage {stage} differs": [] for stage in (1, 2, 3)}, "several stages differ": [], "networks": [],
        "no network": [],
    }  # fmt: skip
    for system in others:
        if system.kind == "no network":
            group = "no network"
        elif not reference.stages:
            group = "networks"
        else:
            changed = [i for i in range(3) if system.stages[i] != reference.stages[i]]
            group = f"Stage {changed[0] + 1} differs" if len(changed) == 1 else "several stages differ"
        groups[group].append(system)
    return {group: systems for group, systems in groups.items() if systems}


def list_networks(settings: Settings, experiment: Experiment) -> dict[str, System]:
    """The trained networks: the variant that names a network's files -> the system that is this network alone.

    Variants that differ only in Stage 3 or in `average_with` share a network. The first of them names its files. If
    none of them is the network alone, the title is the names of its recipes.
    """
    systems = {system.name: system for system in list_systems(settings, experiment)}
    first: dict[str, str] = {}
    alone: dict[str, System] = {}
    for name in filter(settings.reads_network, experiment.variants):
        variant = settings.variants[name]
        first.setdefault(variant.network, name)
        if system_of(variant) == variant.network:
            alone.setdefault(variant.network, systems[name])
    return {name: alone.get(folder) or replace(systems[name], title=folder) for folder, name in first.items()}


def cut_settings(settings: Settings, name: str) -> Settings:
    """The settings without what the experiment `name` does not depend on: other experiments, recipes, datasets.

    Tables, figures and report of the experiment are the same for both. The workflow passes the smaller one, so that a
    change elsewhere in the config does not run them again.
    """
    experiment = settings.experiments[name]
    datasets = (settings.whole(experiment.dataset), experiment.dataset)
    variants = {key: settings.variants[key] for key in experiment.variants}
    words = bool(experiment.baselines) or any(e and read_by(e) for e in map(settings.evidence_of, variants))
    networks = {experiment.backbone, *(variant.average_with for variant in variants.values())} - {None}
    needed: dict[str, Collection[str | None]] = {
        "backbones": {*networks, *(("words",) if words else ())},
        "pretrainings": {variant.pretraining for variant in variants.values()} - {NO_PRETRAINING},
        "finetunings": {variant.finetuning for variant in variants.values()},
        "evidences": {variant.evidence for variant in variants.values()},
        "experiments": {name},
        "tuned": {
            f"{experiment.dataset}/{network}/{variant.network}" for network in networks for variant in variants.values()
        },
        "downloads": (),
        "tunings": (),
    }
    cut: dict[str, object] = {
        section: {key: value for key, value in getattr(settings, section).items() if key in keys}
        for section, keys in needed.items()
    }
    cut["datasets"] = {key: settings.datasets[key] for key in datasets}
    cut["variants"] = variants
    cut["paper"] = settings.paper.model_copy(update={"items": (), "main_backbone": None})
    return settings.model_copy(update=cut)


def budget_notes(systems: Sequence[System], reference: System) -> tuple[str, ...]:
    """Which networks have another number of epochs than the reference, and which may stop early."""
    networks = [system for system in systems if system.epochs]
    others = [f"{each.title} {each.total_epochs}" for each in networks if each.total_epochs != reference.total_epochs]
    early = [system.title for system in networks if system.may_stop_early]
    notes = []
    if others and reference.epochs:
        ours = f"{reference.title} has {reference.total_epochs} epochs in all"
        notes.append(f"Not equal compute: {ours}; {', '.join(others)} (choice C16).")
    if early:
        notes.append(f"May stop before their last epoch (`patience`): {', '.join(early)} (choice C16).")
    return tuple(notes)


def unequal_parts(first: System, second: System) -> list[str]:
    """What makes a comparison of two networks one of unequal compute or methods, in clauses; empty: nothing."""
    parts, more = [], second.total_epochs - first.total_epochs
    if more:
        by = f"{abs(more)} {'more' if more > 0 else 'fewer'}"
        parts.append(
            f"{first.title} has {first.total_epochs} epochs in all, {second.title} {second.total_epochs} ({by})"
        )
    for key, value in first.method.items():
        if value != second.method[key]:
            shown = (f"{_shown(each.method[key])} in {each.title}" for each in (first, second))
            parts.append(f"`{key}` differs ({', '.join(shown)})")
    if early := [each.title for each in (first, second) if each.may_stop_early]:
        parts.append(f"early stopping (`patience`) may end {' and '.join(early)} sooner")
    return parts


def _shown(value: object) -> object:
    """A setting as a sentence shows it."""
    if value in (None, {}):
        return "none"
    return ", ".join(map(str, value.channels)) if hasattr(value, "channels") else value
