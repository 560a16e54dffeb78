"""What runs cost: how a provenance sidecar is read, and the numbers that both cost tables print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from plant.paper.wording import energy, megabytes, seconds, weights

MEASURES: dict[str, Any] = dict.fromkeys(
    ("wall_seconds", "cpu_seconds", "peak_host_mb", "peak_device_mb"), pl.Float64
) | {"trained_parameters": pl.Int64, "energy_device_joules": pl.Float64}
"""Columns of every table of costs, with their types."""


def cost_of(sidecar: Mapping[str, Any], *, trains: bool) -> dict[str, Any]:
    """The cost of one run as a flat record: `seed`, the columns of MEASURES, `devices` and `device`.

    Args:
        sidecar: content of provenance.json.
        trains: whether the run moves weights. If not, `trained_parameters` is None.
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


def largest(runs: pl.DataFrame, column: str) -> float | None:
    """The largest value of a column; None where no run has one."""
    value = runs.get_column(column).max()
    return float(value) if isinstance(value, int | float) else None
