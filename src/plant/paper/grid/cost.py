"""What everything cost: time, memory, weights and energy of every stage for each dataset and backbone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json
from plant.ground.settings import Settings
from plant.paper.costs import MEASURES, cost_cells, cost_of, mean
from plant.paper.inputs import STAGE1, STAGE2, TRAINING
from plant.paper.render import Table, TableCell, row_of, write_table
from plant.paper.wording import MISSING, seconds

STAND_IN = "†"
ROOMS = {
    "corpus": "corpus", "relevance": "relevance", "model": "model", "pretraining": STAGE1, "finetuning": STAGE2,
    "evaluation": "scores",
}  # fmt: skip
"""Folder of results -> the stage whose jobs write there, in the order of the table."""
SIDECAR = "provenance.json"
SCHEMA: dict[str, Any] = (
    dict.fromkeys(("dataset", "backbone", "stage", "name"), pl.String)
    | {"seed": pl.Int64, "stand_in": pl.Boolean, **MEASURES, "devices": pl.Int64, "device": pl.String}
)  # fmt: skip


def write_costs(settings: Settings, folder: Path) -> None:
    """Write tables/cost.{csv,md,tex} into `folder`, from whatever has run."""
    write_table(cost_table(settings, read_runs(settings)), Path(folder) / "tables")


def read_runs(settings: Settings) -> pl.DataFrame:
    """One row for each provenance sidecar of the config's datasets: SCHEMA.

    A stage is the room of the sidecar and the part of it that the sidecar is about: `relevance mig`, `scores metrics`.
    """
    rows = []
    for room, stage in ROOMS.items():
        base = Path(settings.results) / room
        for path in sorted(base.rglob(f"*{SIDECAR}")):
            dataset, backbone, name, *_ = (*path.parent.relative_to(base).parts, "", "")
            if dataset in settings.datasets:
                part = path.name.removesuffix(SIDECAR).rstrip(".")
                rows.append(cost_of(read_json(path), trains=stage in TRAINING) | {
                    "dataset": dataset, "backbone": backbone, "name": name, "stand_in": settings.is_stand_in(dataset),
                    "stage": " ".join(filter(None, ("tokens" if room == "corpus" and backbone else stage, part))),
                })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


def cost_table(settings: Settings, runs: pl.DataFrame) -> Table:
    """One row for each dataset, backbone and stage."""
    rows: list[tuple[TableCell, ...]] = []
    rules: list[int] = []
    for (dataset, backbone), place in runs.group_by("dataset", "backbone", maintain_order=True):
        rules += [len(rows)] if rows else []
        title = f"{dataset}{STAND_IN}" if settings.is_stand_in(str(dataset)) else str(dataset)
        stage2 = mean(place.filter(stage=STAGE2), "wall_seconds")
        for (stage,), own in place.group_by("stage", maintain_order=True):
            share = MISSING if not stage2 else f"{100 * (mean(own, 'wall_seconds') or 0.0) / stage2:,.0f}%"
            took = seconds(float(own["wall_seconds"].sum()))
            rows.append(row_of(
                title, str(backbone) or MISSING, str(stage), f"{own.height}", took, *cost_cells(own), share,
            ))  # fmt: skip
    return Table(
        name="cost",
        title="Cost of every stage, dataset and backbone",
        columns=(
            "Dataset", "Backbone", "Stage", "Runs", "Time in all", "Time a run", "Peak memory", "Peak device memory",
            "Weights trained", "Energy a run", "Time a run, of Stage 2",
        ),
        rows=tuple(rows),
        data=runs,
        notes=tuple(_notes(runs)),
        rules=tuple(rules),
        text_columns=3,
    )  # fmt: skip


def _notes(runs: pl.DataFrame) -> Iterator[str]:
    yield (
        "Means over runs (seeds and recipes); memory is the largest of the runs. Time is that of the job, without the "
        "start of Python. Statistics and what the paper's tables and figures take are left out."
    )
    yield "What planting costs on top of Stage 2 is the time of `relevance mig` and of Stage 1."
    if runs["stand_in"].any():
        yield f"{STAND_IN} Synthetic text in the corpus' raw form: its cost says nothing about the corpus."
    if runs.height:
        devices = runs["device"].str.replace(r":\d+ ", " ")  # `cuda:0` and `cuda:1` are one kind
        yield f"Devices: {', '.join(sorted(devices.unique()))}."
        yield (
            f"Energy is that of the devices: {runs['energy_device_joules'].count()} of {runs.height} runs measured it. "
            "The energy of processors is not measured."
        )
