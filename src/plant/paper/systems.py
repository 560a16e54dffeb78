"""The rows of every table: which systems an experiment has, how they are printed, and what they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from plant.baselines.registry import baselines, read_by
from plant.finetuning.losses import STAGE_2_LOSSES
from plant.ground.settings import NO_PRETRAINING, Experiment, Finetuning, Settings, Variant
from plant.relevance.measures import MEASURES

Kind = Literal["planted", "control", "unplanted", "no network"]
KIND_TITLES: dict[Kind, str] = {
    "planted": "relevance is planted: by Stage 1, or as static attention",
    "control": "the same with random or shuffled relevance",
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
    """One row."""

    name: str
    """Key of its files: the name of a variant or of a baseline."""
    title: str
    kind: Kind
    pretraining: str | None = None
    """Name of the Stage 1 recipe; None without Stage 1."""


@dataclass(frozen=True)
class Roles:
    """The systems that the headline compares. A role is None if the experiment has no such system."""

    planted: System | None
    control: System | None
    """The random initialisation that is nearest to `planted` in loss and number of epochs."""
    equal_compute: bool
    """True if `control` has the loss of `planted`, as many epochs as its two stages together, and no early stopping."""
    baselines: tuple[System, ...]


def list_systems(settings: Settings, experiment: Experiment) -> tuple[System, ...]:
    """All systems of an experiment in table order: variants, baselines, and the reference last (Table 6)."""
    names = dict.fromkeys([*experiment.variants, *experiment.baselines])
    ordered = [*(name for name in names if name != experiment.reference), experiment.reference]
    return tuple(find_system(settings, name) for name in ordered)


def find_roles(settings: Settings, experiment: Experiment) -> Roles:
    """The planted system (the reference if it is planted), its fairest control, and the baselines."""
    systems = list_systems(settings, experiment)
    of_kind: dict[Kind, list[System]] = {kind: [s for s in systems if s.kind == kind] for kind in KIND_TITLES}
    planted = next((s for s in of_kind["planted"] if s.name == experiment.reference), None)
    planted = planted or next(iter(of_kind["planted"]), None)
    control: System | None = None
    equal_compute = False
    if planted and of_kind["unplanted"]:
        name = planted.name
        control = min(of_kind["unplanted"], key=lambda s: _unfairness(settings, experiment, name, s.name))
        early = any(may_stop_early(settings, experiment, system.name) for system in (planted, control))
        equal_compute = not early and _unfairness(settings, experiment, name, control.name) == (False, 0)
    return Roles(planted, control, equal_compute, tuple(of_kind["no network"]))


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


def group_systems(settings: Settings, experiment: Experiment) -> dict[str, list[System]]:
    """The systems by what sets them apart from the reference: one stage, several stages, or having no network.

    Returns:
        group -> its systems in table order, without the reference and without empty groups. A reference without
        stages of its own (a baseline) has one group of networks.
    """
    *others, reference = list_systems(settings, experiment)
    parts = _stages(settings, reference)
    groups: dict[str, list[System]] = {
        **{f"Stage {stage} differs": [] for stage in (1, 2, 3)}, "several stages differ": [], "networks": [],
        "no network": [],
    }  # fmt: skip
    for system in others:
        if system.kind == "no network":
            group = "no network"
        elif parts is None:
            group = "networks"
        else:
            changed = [i for i, pair in enumerate(zip(parts, _stages(settings, system) or (), strict=True), 1)
                       if pair[0] != pair[1]]  # fmt: skip
            group = f"Stage {changed[0]} differs" if len(changed) == 1 else "several stages differ"
        groups[group].append(system)
    return {group: systems for group, systems in groups.items() if systems}


def _stages(settings: Settings, system: System) -> tuple[object, ...] | None:
    """What a variant does in Stages 1, 2 and 3; None of a system without a network."""
    if system.kind == "no network":
        return None
    variant = settings.variants[system.name]
    return variant.initial, variant.finetuning, variant.evidence


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


def stage_epochs(settings: Settings, experiment: Experiment, name: str) -> tuple[int, int]:
    """Epochs of Stage 1 and of Stage 2 of a variant. They all run, unless a stage has `patience` (choice C16)."""
    variant = settings.variants[name]
    stage1 = settings.pretrainings.get(variant.pretraining)
    before = variant.pretraining_epoch or (stage1.epochs if stage1 else 0)
    return before, settings.stage2_of(experiment, name).epochs


def total_epochs(settings: Settings, experiment: Experiment, name: str) -> int:
    """Epochs of both stages of a variant together; those of both networks for an average."""
    networks = 1 if settings.variants[name].average_with is None else 2
    return networks * sum(stage_epochs(settings, experiment, name))


def may_stop_early(settings: Settings, experiment: Experiment, name: str) -> bool:
    """Whether a stage of a variant has `patience`."""
    stages = (settings.pretrainings.get(settings.variants[name].pretraining), settings.stage2_of(experiment, name))
    return any(stage is not None and stage.patience is not None for stage in stages)


def budget_notes(
    settings: Settings, experiment: Experiment, systems: Sequence[System], reference: str
) -> tuple[str, ...]:
    """Which networks have another number of epochs than the reference, and which may stop early."""
    networks = {system.name: system.title for system in systems if system.kind != "no network"}
    epochs = {name: total_epochs(settings, experiment, name) for name in (reference, *networks)}
    others = [f"{title} {epochs[name]}" for name, title in networks.items() if epochs[name] != epochs[reference]]
    early = [title for name, title in networks.items() if may_stop_early(settings, experiment, name)]
    title = networks.get(reference, reference)
    notes = []
    if others:
        ours = f"{title} has {epochs[reference]} epochs in all"
        notes.append(f"Not equal compute: {ours}; {', '.join(others)} (choice C16).")
    if early:
        notes.append(f"May stop before their last epoch (`patience`): {', '.join(early)} (choice C16).")
    return tuple(notes)


def find_system(settings: Settings, name: str) -> System:
    """A variant or a baseline as a row."""
    if name in baselines():
        return System(name, baselines()[name].title, "no network")
    variant = settings.variants[name]
    title = variant.title or name
    if not settings.reads_network(name):
        return System(name, title, "no network")
    stage1 = settings.pretrainings.get(variant.pretraining)
    stage2 = settings.finetunings[variant.finetuning]
    measures = {stage1.measure} if stage1 else set()
    if stage2.static_attention:
        measures.add(stage2.static_measure)
    is_control = all(MEASURES[measure].control for measure in measures)
    kind: Kind = "unplanted" if not measures else "control" if is_control else "planted"
    return System(name, title, kind, variant.pretraining if stage1 else None)


def unequal_parts(settings: Settings, experiment: Experiment, first: str, second: str) -> list[str]:
    """What makes a comparison of two variants one of unequal compute or of unequal methods, in clauses; empty: nothing.

    Args:
        first, second: names of variants.
    """
    titles = [find_system(settings, name).title for name in (first, second)]
    epochs = [total_epochs(settings, experiment, name) for name in (first, second)]
    methods = [_method(settings, name) for name in (first, second)]
    parts = []
    if epochs[0] != epochs[1]:
        by = f"{abs(epochs[0] - epochs[1])} {'more' if epochs[1] > epochs[0] else 'fewer'}"
        parts.append(f"{titles[0]} has {epochs[0]} epochs in all, {titles[1]} {epochs[1]} ({by})")
    for key in methods[0]:
        if methods[0][key] != methods[1][key]:
            values = ", ".join(
                f"{_shown(method[key])} in {title}" for title, method in zip(titles, methods, strict=True)
            )
            parts.append(f"`{key}` differs ({values})")
    early = [
        title for title, name in zip(titles, (first, second), strict=True) if may_stop_early(settings, experiment, name)
    ]
    if early:
        parts.append(f"early stopping (`patience`) may end {' and '.join(early)} sooner")
    return parts


def _shown(value: object) -> object:
    """A setting as a sentence shows it."""
    return (
        "none" if value in (None, {}) else ", ".join(map(str, value.channels)) if hasattr(value, "channels") else value
    )


def _unfairness(settings: Settings, experiment: Experiment, planted: str, control: str) -> tuple[bool, int]:
    """Whether Stage 3 or the loss of Stage 2 differs, and by how many epochs. (False, 0) is a fair control."""
    epochs = [total_epochs(settings, experiment, name) for name in (planted, control)]
    return _method(settings, planted) != _method(settings, control), abs(epochs[0] - epochs[1])


@cache
def _loss_keys() -> tuple[str, ...]:
    """Keys of a Stage 2 recipe that say what its loss is, in the order of the recipe."""
    losses = STAGE_2_LOSSES.folder
    keys = {"loss", "loss_options", "hard_negatives"}.union(*map(losses.options, losses.names()))
    return tuple(key for key in Finetuning.model_fields if key in keys)


def _method(settings: Settings, name: str) -> dict[str, object]:
    """Loss of Stage 2, Stage 3 and averaging of a variant, by the keys of the config."""
    variant = settings.variants[name]
    stage2 = settings.finetunings[variant.finetuning]
    return {key: getattr(stage2, key) for key in _loss_keys()} | {
        "evidence": settings.evidence_of(name), "average_with": variant.average_with,
    }  # fmt: skip
