"""What every stage of every experiment cost, read from the provenance sidecars: one record a run, whoever shares it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from plant.baselines.registry import baselines
from plant.corpus.reader import SPLITS, load_labels, load_tokens
from plant.ground.files import read_json
from plant.ground.settings import Settings
from plant.paper.costs import MEASURES, cost_of
from plant.paper.inputs import STAGE1, STAGE2, TRAINING, Inputs, read_table

MIG, PREDICTION, STAGE3 = "MIG", "prediction", "Stage 3"
STAGES = (
    "corpus", "tokens", "features", MIG, STAGE1, STAGE2, PREDICTION, STAGE3, "label embeddings", "shortlist",
    "other relevance", "random backbone", "baselines", "metrics", "statistics",
)  # fmt: skip
"""In the order of the table."""
SIDECAR = "provenance.json"
Tokens = Callable[[str, str], Mapping[str, int]]
"""(dataset, backbone) -> tokens of each split."""
_MODEL_STAGES = {"backbone": "random backbone", "features": "features", "label_embeddings": "label embeddings"}


@dataclass(frozen=True)
class Place:
    """Where a run's sidecar is, or will be."""

    stage: str
    dataset: str
    backbone: str
    """Empty for what no backbone plays a part in."""
    name: str
    """Recipe, system folder, measure, baseline or experiment."""
    sidecar: Path


@dataclass(frozen=True)
class Costs:
    """Every run once, and the runs that left no sidecar yet."""

    frame: pl.DataFrame
    """One row a run, with the columns of SCHEMA; `experiments` are those that use the run."""
    missing: tuple[Place, ...]


SCHEMA: dict[str, Any] = (
    dict.fromkeys(("dataset", "backbone", "stage", "name"), pl.String)
    | {"seed": pl.Int64, "stand_in": pl.Boolean, **MEASURES}
    | {"devices": pl.Int64, "tokens": pl.Int64, "tokens_per_second": pl.Float64, "device": pl.String}
    | {"experiments": pl.String}
)


def read_grid_costs(settings: Settings, paths: Mapping[str, Inputs]) -> Costs:
    """Read the sidecars behind the paths of all experiments.

    A run that several experiments share (a corpus, Stage 1 of several variants, two variants of the same recipes) is
    one record.

    Args:
        settings: the whole config.
        paths: experiment -> its paths. Files may be missing.
    """
    users: dict[Place, dict[str, None]] = {}
    for experiment, inputs in paths.items():
        for place in _places(settings, experiment, inputs):
            users.setdefault(place, {})[experiment] = None
    corpora = {settings.experiments[name].dataset: Path(inputs.corpus) for name, inputs in paths.items()}
    tokens = cache(lambda dataset, backbone: _split_tokens(corpora[dataset], corpora[dataset] / backbone))
    runs = [
        _record(place, settings, tokens) | {"experiments": " ".join(names)}
        for place, names in users.items()
        if place.sidecar.is_file()
    ]
    order = {stage: number for number, stage in enumerate(STAGES)}
    runs.sort(key=lambda run: (run["dataset"], run["backbone"], order[run["stage"]], run["name"], run["seed"] or 0))
    missing = tuple(place for place in users if not place.sidecar.is_file())
    return Costs(pl.DataFrame(runs, schema=SCHEMA, strict=False), missing)


def _places(settings: Settings, experiment: str, inputs: Inputs) -> Iterator[Place]:
    """Every sidecar of an experiment that must come, and those of the folders that may hold several."""
    chosen = settings.experiments[experiment]
    dataset, backbone, corpus = chosen.dataset, chosen.backbone, Path(inputs.corpus)
    backbones = [*([backbone] if chosen.variants else []), *(["words"] if chosen.baselines else [])]
    yield Place("corpus", dataset, "", "", corpus / SIDECAR)
    for name in backbones:
        yield Place("tokens", dataset, name, "", corpus / name / SIDECAR)
    for folder in inputs.stages.get("relevance", ()):
        for name in backbones:
            for sidecar in sorted((Path(folder).parent / name).glob(f"*.{SIDECAR}")):
                yield _of_relevance(dataset, name, sidecar)
    for folder in inputs.stages.get("backbone", ()):
        for part, stage in _MODEL_STAGES.items():
            if (sidecar := Path(folder) / f"{part}.{SIDECAR}").is_file():
                yield Place(stage, dataset, backbone, "", sidecar)
    for recipe, folders in inputs.pretrainings.items():
        for folder in folders:
            yield Place(STAGE1, dataset, backbone, recipe, Path(folder) / SIDECAR)
    for folders in inputs.finetunings.values():
        for folder in folders:
            yield Place(STAGE2, dataset, backbone, Path(folder).parent.name, Path(folder) / SIDECAR)
    for system, folders in inputs.evaluations.items():
        bare = system in baselines()
        for folder in folders:
            name, where = Path(folder).parent.name, "words" if bare else backbone
            stage = "baselines" if bare else PREDICTION if settings.evidence_of(system) is None else STAGE3
            yield Place(stage, dataset, where, name, Path(folder) / SIDECAR)
            if stage == STAGE3 and settings.reads_network(system):
                network = settings.variants[system].network
                sidecar = Path(folder).parents[1] / network / Path(folder).name / SIDECAR
                yield Place(PREDICTION, dataset, backbone, network, sidecar)
            yield Place("metrics", dataset, where, name, Path(folder) / f"metrics.{SIDECAR}")
    for sidecar in sorted(Path(inputs.statistics).glob(f"*.{SIDECAR}")):
        yield Place("statistics", dataset, backbone, experiment, sidecar)


def _of_relevance(dataset: str, backbone: str, sidecar: Path) -> Place:
    """`mig.provenance.json` -> MIG; `mig.shortlist200.provenance.json` -> shortlist; others are other measures."""
    name = sidecar.name.removesuffix(f".{SIDECAR}")
    stage = MIG if name == "mig" else "shortlist" if ".shortlist" in name else "other relevance"
    return Place(stage, dataset, backbone, name, sidecar)


def _tokens_passed(place: Place, tokens: Tokens) -> int | None:
    """Tokens that passed through the network in training or prediction, without validation after epochs.

    None where it is not known.
    """
    splits = tokens(place.dataset, place.backbone) if place.stage in (*TRAINING, PREDICTION) else {}
    if not splits:
        return None
    if place.stage == PREDICTION:
        return splits["val"] + splits["test"]
    history = place.sidecar.with_name("history.parquet")
    return splits["train"] * read_table(history, ["epoch"]).height if history.is_file() else None


def _split_tokens(corpus: Path, folder: Path) -> dict[str, int]:
    """Tokens of each split; empty where the corpus or its tokens are not there."""
    if not (corpus / "labels.safetensors").is_file() or not (folder / "tokens.safetensors").is_file():
        return {}
    labels, offsets = load_labels(corpus), load_tokens(folder).offsets
    edges = [int(offsets[labels.rows(split).stop]) for split in SPLITS]
    return {split: end - start for split, start, end in zip(SPLITS, [0, *edges], edges, strict=False)}


def _record(place: Place, settings: Settings, tokens: Tokens) -> dict[str, Any]:
    cost = cost_of(read_json(place.sidecar), trains=place.stage in TRAINING)
    passed, wall = _tokens_passed(place, tokens), cost["wall_seconds"]
    return cost | {
        "stage": place.stage, "dataset": place.dataset, "backbone": place.backbone, "name": place.name,
        "stand_in": settings.is_stand_in(place.dataset), "tokens": passed,
        "tokens_per_second": passed / wall if passed and wall else None,
        "device": re.sub(r":\d+ ", " ", cost["device"], count=1),
    }  # fmt: skip
