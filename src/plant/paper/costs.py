"""What runs cost: how a provenance sidecar is read, what both cost tables print, and the table `cost` of everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json
from plant.ground.settings import Settings
from plant.paper.render import Table, breaks, row_of, write_table
from plant.paper.wording import MISSING, energy, megabytes, seconds, weights

STAGE1 = "Stage 1"
"""A run of Stage 1 is named by its recipe, not by a system."""
STAGE2 = "Stage 2"
TRAINING = (STAGE1, STAGE2)
MEASURES: dict[str, Any] = dict.fromkeys(
    ("wall_seconds", "cpu_seconds", "peak_host_mb", "peak_device_mb"), pl.Float64
) | {"trained_parameters": pl.Int64, "energy_device_joules": pl.Float64}
"""Columns of every table of costs, with their types."""
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


def cost_of(sidecar: Mapping[str, Any], *, trains: bool) -> dict[str, Any]:
    """The cost of one run, from its provenance.json: `seed`, the columns of MEASURES, `devices` and `device`.

    `trained_parameters` is None where the run trains nothing.
    """
    resources, device = sidecar["resources"], sidecar["device"]
    return {
        "seed": sidecar["seed"],
        **{key: resources[key] for key in ("wall_seconds", "cpu_seconds", "peak_host_mb", "peak_device_mb")},
        "trained_parameters": sidecar.get("trainable_parameters") if trains else None,
        "energy_device_joules": (resources.get("energy_joules") or {}).get("device"),
        "devices": resources.get("devices"),
        "device": f"{device['kind']} ({device['name']})",
    }


def mean(runs: pl.DataFrame, column: str) -> float | None:
    """The mean of a column over the runs that have a value; None where no run has one."""
    value = runs.get_column(column).mean()
    return float(value) if isinstance(value, int | float) else None


def largest(runs: pl.DataFrame, column: str) -> float | None:
    """The largest value of a column; None where no run has one."""
    value = runs.get_column(column).max()
    return float(value) if isinstance(value, int | float) else None


def cost_cells(runs: pl.DataFrame) -> tuple[str, ...]:
    """Wall time (mean), memory of host and device (largest), weights trained, and energy (mean) of some runs, printed.

    Energy is that of the devices, over the runs that measured it.
    """
    return (
        seconds(mean(runs, "wall_seconds")),
        *(megabytes(largest(runs, column)) for column in ("peak_host_mb", "peak_device_mb")),
        weights(runs["trained_parameters"].drop_nulls().to_list()),
        energy(mean(runs, "energy_device_joules")),
    )


def write_costs(settings: Settings, folder: Path) -> None:
    """Write tables/cost.{csv,md,tex} into `folder`: time, memory, weights and energy, from whatever has run."""
    write_table(cost_table(settings, read_runs(settings)), folder / "tables")


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
    rows, places = [], []
    for (dataset, backbone), place in runs.group_by("dataset", "backbone", maintain_order=True):
        title = f"{dataset}{STAND_IN}" if settings.is_stand_in(str(dataset)) else str(dataset)
        stage2 = mean(place.filter(stage=STAGE2), "wall_seconds")
        for (stage,), own in place.group_by("stage", maintain_order=True):
            share = MISSING if not stage2 else f"{100 * (mean(own, 'wall_seconds') or 0.0) / stage2:,.0f}%"
            took = seconds(float(own["wall_seconds"].sum()))
            rows.append(row_of(
                title, str(backbone) or MISSING, str(stage), f"{own.height}", took, *cost_cells(own), share,
            ))  # fmt: skip
            places.append((dataset, backbone))
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
        rules=breaks(places),
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
