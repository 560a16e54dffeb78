"""Which jobs a config asks for, without asking Snakemake: the rules of workflow/rules in one place, as pure functions.

A test compares the counts with a real dry run, so that a rule which changes is noticed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plant.baselines.registry import Baseline, baselines, read_by
from plant.ground.settings import NO_PRETRAINING, Experiment, Random, Settings, Subset, Variant, Words
from plant.paper.systems import System, find_roles, list_systems

WORDS = "words"
"""Backbone of the baselines."""
GPU_RULES = ("features", "label_embeddings", "pretrain", "finetune", "predict", "attention")
"""Rules that take a GPU where there is one."""
TESTS = ("bootstrap", "wilcoxon", "randomization")
PAGES = ("write_tables", "write_figures", "write_report")
EVIDENCE = "mig"
"""Relevance that attention figures, shortlists and the log-odds baseline read."""


@dataclass(frozen=True, order=True)
class Job:
    """One job. Two experiments that need the same output share it: equal jobs are one job."""

    rule: str
    dataset: str = ""
    backbone: str = ""
    recipe: str = ""
    """What tells the rule's jobs apart: a Stage 1 recipe, system folder, relevance measure, baseline or experiment."""
    seed: int | None = None


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


def list_jobs(settings: Settings, experiment: str) -> set[Job]:
    """Every job of one experiment, from raw files to its report; downloads are left out."""
    chosen = settings.experiments[experiment]
    jobs = set(_of_the_corpus(settings, chosen.dataset))
    if chosen.variants:
        jobs |= set(_of_the_network(settings, chosen))
    for baseline in chosen.baselines:
        jobs |= set(_of_a_baseline(chosen.dataset, baseline))
    if chosen.report:
        jobs |= {Job(rule, recipe=experiment) for rule in (*TESTS, *PAGES)}
        jobs |= set(_of_the_attention(settings, chosen))
    return jobs


def _of_the_corpus(settings: Settings, dataset: str) -> Iterator[Job]:
    chosen, whole = settings.datasets[dataset], settings.whole(dataset)
    if isinstance(chosen, Subset):
        yield Job("subset", dataset)
    yield Job("corpus", whole)
    if settings.is_stand_in(dataset):
        yield Job("synthetic", whole)


def _of_the_network(settings: Settings, experiment: Experiment) -> Iterator[Job]:
    dataset, backbone = experiment.dataset, experiment.backbone
    network = settings.backbones[backbone]
    for name in experiment.variants:
        for seed in experiment.seeds:
            yield from _of_the_scores(settings, name, dataset, backbone, seed)
    trained = [settings.variants[name] for name in experiment.variants if settings.reads_network(name)]
    if not trained:
        return
    yield Job("tokens", dataset, backbone)
    if isinstance(network, Random):
        yield Job("tokenizer", dataset, backbone)
        yield Job("random_backbone", dataset, backbone)
    if not isinstance(network, Words) and network.cache_features:
        yield Job("features", dataset, backbone)
    for variant in trained:
        stage2 = settings.finetunings[variant.finetuning]
        stage1 = settings.pretrainings.get(variant.pretraining)
        if stage1 is not None:
            yield Job("relevance", dataset, backbone, stage1.measure)
        if (stage1 or stage2).initialisation == "descriptions":
            yield Job("label_embeddings", dataset, backbone)
        if stage2.shortlist is not None:
            yield Job("relevance", dataset, backbone, EVIDENCE)
            yield Job("shortlist", dataset, backbone, f"{EVIDENCE} {stage2.shortlist}")
        if stage2.static_attention:
            yield Job("relevance", dataset, backbone, stage2.static_measure)
        if stage2.residual is not None:
            yield Job("residual", dataset, backbone, f"{EVIDENCE} {stage2.residual}x{stage2.residual_folds}")
        for seed in experiment.seeds:
            if variant.pretraining != NO_PRETRAINING:
                yield Job("pretrain", dataset, backbone, variant.pretraining, seed)
            yield Job("finetune", dataset, backbone, variant.network, seed)


def _of_the_scores(settings: Settings, name: str, dataset: str, backbone: str, seed: int) -> Iterator[Job]:
    variant = settings.variants[name]
    yield Job("metrics", dataset, backbone, system_of(variant), seed)
    evidence = settings.evidence_of(name)
    if settings.reads_network(name):
        yield Job("predict", dataset, backbone, variant.network, seed)
    if evidence is not None:
        yield Job("evidence", dataset, backbone, system_of(variant), seed)
        for baseline in read_by(evidence):
            yield from _of_its_scores(dataset, baseline)


def _of_a_baseline(dataset: str, baseline: str) -> Iterator[Job]:
    yield Job("metrics", dataset, WORDS, baseline, 0)
    yield from _of_its_scores(dataset, baselines()[baseline])


def _of_its_scores(dataset: str, baseline: Baseline) -> Iterator[Job]:
    yield Job(baseline.name, dataset, WORDS, baseline.name, 0)
    if "tokens" in baseline.inputs:
        yield Job("tokens", dataset, WORDS)
    if "relevance" in baseline.inputs:
        yield Job("relevance", dataset, WORDS, EVIDENCE)
    if "mentions" in baseline.inputs:
        yield Job("marked", dataset)


def _of_the_attention(settings: Settings, experiment: Experiment) -> Iterator[Job]:
    """Attention figures of the planted system and its control, unless the text must not be shown."""
    if not settings.documents_shown(experiment.dataset):
        return
    roles = find_roles(settings, experiment)
    for system in (roles.planted, roles.control):
        if system is not None and system.name not in baselines():
            yield Job("relevance", experiment.dataset, experiment.backbone, EVIDENCE)
            recipe = settings.variants[system.name].network
            yield Job("attention", experiment.dataset, experiment.backbone, recipe, experiment.seeds[0])
