"""What every stage of every experiment cost, from the provenance sidecars: one record for each run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
_MODEL_STAGES = {"backbone": "random backbone", "features": "features", "label_embeddings": "label embeddings"}


class Run(NamedTuple):
    """A run, and the sidecar that it leaves or will leave."""

    stage: str
    dataset: str
    backbone: str
    """Empty for a run without a backbone."""
    name: str
    """Recipe, system folder, measure, baseline or experiment."""
    sidecar: Path


class Costs(NamedTuple):
    """Every run once, and the runs that have left no sidecar yet."""

    frame: pl.DataFrame
    """One row for each run, with the columns of SCHEMA; `experiments` are those that use the run."""
    missing: tuple[Run, ...]


SCHEMA: dict[str, Any] = (
    dict.fromkeys(("dataset", "backbone", "stage", "name"), pl.String)
    | {"seed": pl.Int64, "stand_in": pl.Boolean, **MEASURES}
    | {"devices": pl.Int64, "tokens": pl.Int64, "tokens_per_second": pl.Float64, "device": pl.String}
    | {"experiments": pl.String}
)


def read_grid_costs(settings: Settings, paths: Mapping[str, Inputs]) -> Costs:
    """Read the sidecars of all experiments.

    A run that several experiments share (a corpus, Stage 1 of several variants, two variants of the same recipes) is
    one record.

    Args:
        settings: the whole config.
        paths: experiment -> its paths. Files may be missing.
    """
    users: dict[Run, dict[str, None]] = {}
    for experiment, inputs in paths.items():
        for run in _runs(settings, experiment, inputs):
            users.setdefault(run, {})[experiment] = None
    corpora = {settings.experiments[name].dataset: Path(inputs.corpus) for name, inputs in paths.items()}
    tokens = cache(lambda dataset, backbone: _split_tokens(corpora[dataset], corpora[dataset] / backbone))
    records = []
    for run, names in users.items():
        if run.sidecar.is_file():
            cost = cost_of(read_json(run.sidecar), trains=run.stage in TRAINING)
            passes = run.stage in (*TRAINING, PREDICTION)
            passed = _tokens_passed(run, tokens(run.dataset, run.backbone)) if passes else None
            records.append(cost | {
                "dataset": run.dataset, "backbone": run.backbone, "stage": run.stage, "name": run.name,
                "stand_in": settings.is_stand_in(run.dataset), "tokens": passed,
                "tokens_per_second": passed / cost["wall_seconds"] if passed and cost["wall_seconds"] else None,
                "device": re.sub(r":\d+ ", " ", cost["device"], count=1), "experiments": " ".join(names),
            })  # fmt: skip
    frame = pl.DataFrame(records, schema=SCHEMA, strict=False)
    order = pl.col("stage").replace_strict({stage: place for place, stage in enumerate(STAGES)}, return_dtype=pl.Int64)
    frame = frame.sort("dataset", "backbone", order, "name", pl.col("seed").fill_null(0), maintain_order=True)
    return Costs(frame, tuple(run for run in users if not run.sidecar.is_file()))


def _runs(settings: Settings, experiment: str, inputs: Inputs) -> Iterator[Run]:
    """The runs of an experiment: all that it must have, and of optional ones those that are there."""
    chosen = settings.experiments[experiment]
    dataset, backbone, corpus = chosen.dataset, chosen.backbone, Path(inputs.corpus)
    backbones = [*([backbone] if chosen.variants else []), *(["words"] if chosen.baselines else [])]
    yield Run("corpus", dataset, "", "", corpus / SIDECAR)
    for name in backbones:
        yield Run("tokens", dataset, name, "", corpus / name / SIDECAR)
        for folder in inputs.stages.get("relevance", ()):
            for sidecar in sorted((Path(folder).parent / name).glob(f"*.{SIDECAR}")):
                measure = sidecar.name.removesuffix(
                    f".{SIDECAR}"
                )  # mig.provenance.json, mig.shortlist200.provenance.json
                other = "shortlist" if ".shortlist" in measure else "other relevance"
                yield Run(MIG if measure == "mig" else other, dataset, name, measure, sidecar)
    for folder in inputs.stages.get("backbone", ()):
        for part, stage in _MODEL_STAGES.items():
            if (sidecar := Path(folder) / f"{part}.{SIDECAR}").is_file():
                yield Run(stage, dataset, backbone, "", sidecar)
    for stage, runs in ((STAGE1, inputs.pretrainings), (STAGE2, inputs.finetunings)):
        for folder in (Path(folder) for folders in runs.values() for folder in folders):
            yield Run(stage, dataset, backbone, folder.parent.name, folder / SIDECAR)
    for system, folders in inputs.evaluations.items():
        for folder in map(Path, folders):
            yield from _scoring(settings, system, dataset, backbone, folder)
    for sidecar in sorted(Path(inputs.statistics).glob(f"*.{SIDECAR}")):
        yield Run("statistics", dataset, backbone, experiment, sidecar)


def _scoring(settings: Settings, system: str, dataset: str, backbone: str, folder: Path) -> Iterator[Run]:
    """What makes the scores of one seed of a system, and its metrics."""
    name, where = folder.parent.name, "words" if system in baselines() else backbone
    if system in baselines():
        yield Run("baselines", dataset, where, name, folder / SIDECAR)
    elif name == settings.variants[system].network:
        yield Run(PREDICTION, dataset, where, name, folder / SIDECAR)
    else:
        yield Run(STAGE3, dataset, where, name, folder / SIDECAR)
        if settings.reads_network(system):
            network = settings.variants[system].network
            yield Run(PREDICTION, dataset, where, network, folder.parents[1] / network / folder.name / SIDECAR)
    yield Run("metrics", dataset, where, name, folder / f"metrics.{SIDECAR}")


def _tokens_passed(run: Run, tokens: Mapping[str, int]) -> int | None:
    """Tokens that passed through the network; in training without the validation after epochs. None: not known."""
    if not tokens:
        return None
    if run.stage == PREDICTION:
        return tokens["val"] + tokens["test"]
    history = run.sidecar.with_name("history.parquet")
    return tokens["train"] * read_table(history, ["epoch"]).height if history.is_file() else None


def _split_tokens(corpus: Path, folder: Path) -> dict[str, int]:
    """Tokens of each split; empty where the corpus or its tokens are not there."""
    if not (corpus / "labels.safetensors").is_file() or not (folder / "tokens.safetensors").is_file():
        return {}
    labels, offsets = load_labels(corpus), load_tokens(folder).offsets
    edges = [0, *(int(offsets[labels.rows(split).stop]) for split in SPLITS)]
    return {split: end - start for split, start, end in zip(SPLITS, edges, edges[1:], strict=False)}
