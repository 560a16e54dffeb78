"""What runs cost: how a provenance sidecar is read, and the means that both cost tables print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

MEASURES: dict[str, Any] = (
    dict.fromkeys(("wall_seconds", "cpu_seconds", "peak_host_mb", "peak_device_mb"), pl.Float64)
    | {"trained_parameters": pl.Int64}
    | dict.fromkeys(("energy_device_joules", "energy_host_joules"), pl.Float64)
)
"""Columns of every table of costs, with their types."""


def cost_of(sidecar: Mapping[str, Any], *, trains: bool) -> dict[str, Any]:
    """The cost of one run as a flat record: `seed`, the columns of MEASURES, `devices` and `device`.

    Args:
        sidecar: content of provenance.json.
        trains: whether the run moves weights. If not, `trained_parameters` is None.
    """
    resources, device = sidecar["resources"], sidecar["device"]
    energy = resources.get("energy_joules") or {}
    return {
        "seed": sidecar["seed"],
        **{key: resources[key] for key in ("wall_seconds", "cpu_seconds", "peak_host_mb", "peak_device_mb")},
        "trained_parameters": sidecar.get("trainable_parameters") if trains else None,
        "energy_device_joules": energy.get("device"),
        "energy_host_joules": energy.get("host"),
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


def mean_joules(runs: pl.DataFrame) -> float | None:
    """Energy of devices and host together, as a mean over the runs that measured one; None where no run did."""
    parts = ("energy_device_joules", "energy_host_joules")
    measured = runs.filter(pl.any_horizontal(pl.col(*parts).is_not_null()))
    return mean(measured.select(pl.sum_horizontal(*parts, ignore_nulls=True).alias("sum")), "sum")
