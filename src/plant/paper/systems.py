"""The rows of every table: which systems ran, how they are printed and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from plant.baselines.registry import baselines, read_by
from plant.ground.settings import NO_PRETRAINING, Experiment, Settings, Variant

Kind = Literal["planted", "control", "unplanted", "no network"]
KIND_TITLES: dict[Kind, str] = {
    "planted": "Stage 1 on relevance",
    "control": "Stage 1 on random or shuffled relevance",
    "unplanted": "random initialisation, no Stage 1",
    "no network": "no network",
}
KIND_COLOURS: dict[Kind, str] = {
    "planted": "#0072B2",
    "control": "#AA4499",
    "unplanted": "#D55E00",
    "no network": "#444444",
}
"""Hues of the palettes of Okabe and Ito and of Tol, which colour-blind readers can tell apart."""


@dataclass(frozen=True)
class System:
    """One row. `name` is the key of every input file, `title` is what is printed."""

    name: str
    title: str
    kind: Kind
    pretraining: str | None = None
    """Name of the Stage 1 recipe; None without one."""


@dataclass(frozen=True)
class Roles:
    """Who is compared with whom in the headline. Each is None where the experiment has no such system."""

    planted: System | None
    control: System | None
    """The random initialisation nearest to `planted` in loss and budget."""
    equal_compute: bool
    """True if `control` has the loss of `planted`, as many epochs as its two stages together, and all of them run."""
    baselines: tuple[System, ...]


def list_systems(settings: Settings, experiment: Experiment) -> tuple[System, ...]:
    """All systems of an experiment in table order: variants, baselines, and the reference last (Table 6)."""
    names = dict.fromkeys([*experiment.variants, *experiment.baselines])
    ordered = [name for name in names if name != experiment.reference] + [experiment.reference]
    return tuple(_system(settings, name) for name in ordered)


def find_roles(settings: Settings, experiment: Experiment) -> Roles:
    """The planted system (the reference if it is one), its fairest random initialisation, and the baselines."""
    systems = list_systems(settings, experiment)
    planted = next((s for s in reversed(systems) if s.kind == "planted" and s.name == experiment.reference), None)
    planted = planted or next((s for s in systems if s.kind == "planted"), None)
    unplanted = [s for s in systems if s.kind == "unplanted"]
    control = (
        min(unplanted, key=lambda s: _unfairness(settings, experiment, planted, s), default=None) if planted else None
    )
    return Roles(
        planted=planted,
        control=control,
        equal_compute=planted is not None
        and control is not None
        and _unfairness(settings, experiment, planted, control) == (False, 0)
        and not any(may_stop_early(settings, experiment, system.name) for system in (planted, control)),
        baselines=tuple(s for s in systems if s.kind == "no network"),
    )


def system_of(variant: Variant) -> str:
    """Folder name of a variant's scores: two variants of the same recipes are one run.

    >>> system_of(Variant(finetuning="bce", evidence="all")), system_of(Variant(finetuning="bce"))
    ('none+bce+all', 'none+bce')
    """
    return variant.network + ("" if variant.evidence is None else f"+{variant.evidence}")


def list_networks(settings: Settings, experiment: Experiment) -> dict[str, System]:
    """The networks of an experiment: the variant that the files stand under -> the system that the network is alone.

    Variants that differ in Stage 3 share one. Where no variant is the network alone, it is titled by its recipes.
    """
    systems = {system.name: system for system in list_systems(settings, experiment)}
    first: dict[str, str] = {}
    alone: dict[str, System] = {}
    for name in filter(settings.reads_network, experiment.variants):
        folder = settings.variants[name].network
        first.setdefault(folder, name)
        if settings.variants[name].evidence is None:
            alone.setdefault(folder, systems[name])
    return {name: alone.get(folder) or replace(systems[name], title=folder) for folder, name in first.items()}


def cut_settings(settings: Settings, name: str) -> Settings:
    """The settings without what the experiment `name` does not depend on: other experiments, recipes, datasets.

    The paper room gives the same output for both, so that a workflow can pass the smaller one and rerun less.
    """
    experiment = settings.experiments[name]
    variants = {key: settings.variants[key] for key in experiment.variants}
    datasets = (settings.whole(experiment.dataset), experiment.dataset)
    stage1 = {v.pretraining for v in variants.values()} - {NO_PRETRAINING}
    stage2 = {v.finetuning for v in variants.values()}
    evidences = {v.evidence for v in variants.values()}
    words = bool(experiment.baselines) or any(e and read_by(e) for e in map(settings.evidence_of, variants))
    runs = {f"{experiment.dataset}/{experiment.backbone}/{variant.network}" for variant in variants.values()}
    backbones = {experiment.backbone, *(("words",) if words else ())}
    return settings.model_copy(
        update={
            "datasets": {key: settings.datasets[key] for key in datasets},
            "downloads": {},
            "backbones": {key: value for key, value in settings.backbones.items() if key in backbones},
            "pretrainings": {key: value for key, value in settings.pretrainings.items() if key in stage1},
            "finetunings": {key: value for key, value in settings.finetunings.items() if key in stage2},
            "evidences": {key: value for key, value in settings.evidences.items() if key in evidences},
            "variants": variants,
            "experiments": {name: experiment},
            "tunings": {},
            "tuned": {key: value for key, value in settings.tuned.items() if key in runs},
            "paper": settings.paper.model_copy(update={"items": (), "main_backbone": None}),
        }
    )


def total_epochs(settings: Settings, experiment: Experiment, name: str) -> int:
    """Epochs of both stages of a variant together: all of them run, unless a stage has `patience` (choice C16)."""
    variant = settings.variants[name]
    stage1 = settings.pretrainings.get(variant.pretraining)
    before = variant.pretraining_epoch or (stage1.epochs if stage1 else 0)
    return before + settings.stage2_of(experiment, name).epochs


def may_stop_early(settings: Settings, experiment: Experiment, name: str) -> bool:
    """Whether a stage of a variant has `patience`."""
    stages = (settings.pretrainings.get(settings.variants[name].pretraining), settings.stage2_of(experiment, name))
    return any(stage is not None and stage.patience is not None for stage in stages)


def budget_notes(
    settings: Settings, experiment: Experiment, systems: Sequence[System], reference: str
) -> tuple[str, ...]:
    """Which networks have other epochs than the reference, and which may stop early; empty where none does."""
    networks = {system.name: system.title for system in systems if system.kind != "no network"}
    epochs = {name: total_epochs(settings, experiment, name) for name in (reference, *networks)}
    others = [f"{title} {epochs[name]}" for name, title in networks.items() if epochs[name] != epochs[reference]]
    early = [title for name, title in networks.items() if may_stop_early(settings, experiment, name)]
    title = networks.get(reference, reference)
    return (
        *([f"Not equal compute: {title} has {epochs[reference]} epochs in all; {', '.join(others)} (choice C16)."]
          if others else []),
        *([f"May stop before their last epoch (`patience`): {', '.join(early)} (choice C16)."] if early else []),
    )  # fmt: skip


def _system(settings: Settings, name: str) -> System:
    if name in baselines():
        return System(name, baselines()[name].title, "no network")
    variant = settings.variants[name]
    if not settings.reads_network(name):
        return System(name, variant.title or name, "no network")
    if variant.pretraining == NO_PRETRAINING:
        return System(name, variant.title or name, "unplanted")
    measure = settings.pretrainings[variant.pretraining].measure
    kind: Kind = "control" if measure in ("random", "shuffled") else "planted"
    return System(name, variant.title or name, kind, variant.pretraining)


def _unfairness(
    settings: Settings, experiment: Experiment, planted: System | None, control: System
) -> tuple[bool, int]:
    """Whether Stage 3 or the losses of Stage 2 differ, and by how many epochs in all: (False, 0) is a fair control."""
    if planted is None:
        return True, 0
    ours = settings.finetunings[settings.variants[planted.name].finetuning]
    theirs = settings.finetunings[settings.variants[control.name].finetuning]
    other = any(getattr(ours, key) != getattr(theirs, key) for key in ("gamma", "epsilon", "hard_negatives"))
    other |= settings.evidence_of(planted.name) != settings.evidence_of(control.name)
    return other, abs(
        total_epochs(settings, experiment, planted.name) - total_epochs(settings, experiment, control.name)
    )
