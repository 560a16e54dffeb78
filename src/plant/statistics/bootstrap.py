"""Intervals: the paper's percentile bootstrap (appendix F), and one that is right for label-macro metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from plant.metrics.names import BRIER_SKILL
from plant.statistics.crossed import crossed, require_paired
from plant.statistics.resampling import Interval, Resampling, percentile_interval
from plant.statistics.systems import ComparedSystems, MetricValues, resampled_values, to_table

SCHEMA = pa.schema([
    ("system", pa.string()), ("metric", pa.string()),
    ("value", pa.float64()), ("seed_sd", pa.float64()), ("n_seeds", pa.uint32()),
    ("low", pa.float64()), ("high", pa.float64()),
    ("reference", pa.string()), ("difference", pa.float64()),
    ("paper_gain", pa.float64()), ("paper_low", pa.float64()), ("paper_high", pa.float64()),
    ("diff_low", pa.float64()), ("diff_high", pa.float64()),
])  # fmt: skip


def intervals(comparison: ComparedSystems) -> pa.Table:
    """One row per system and metric: values, differences to the reference (row - reference), and their intervals.

    - `value`: mean over the system's seeds; `seed_sd`: their standard deviation.
    - `low`, `high`, `diff_low`, `diff_high`: intervals over training seeds and test documents together (`crossed`). The
      error over documents is that of `statistics.interval` (choice C11). With one run on each side they are over
      documents alone.
    - `paper_gain`, `paper_low`, `paper_high`: mean and percentiles of the bootstrap differences (appendix F).

    Rows of the reference have no difference. What is not defined is null.

    Raises:
        InputError: a system has another number of seeds than the reference, both above one.
    """
    settings, reference = comparison.settings, comparison.reference
    kinds: list[Resampling] = ["bootstrap", "halves"] if settings.interval == "half_sampling" else ["bootstrap"]
    for name, folders in comparison.systems.items():
        require_paired({name: len(folders), reference: len(comparison.systems[reference])})
    values, rows = resampled_values(comparison, kinds, settings.metrics), []
    for name in comparison.systems:
        for metric in settings.metrics:
            row: dict[str, Any] = {"system": name, "metric": metric, "reference": reference}
            least = -np.inf if metric == BRIER_SKILL else 0.0  # a metric is at most 1
            row |= _own(values[name, metric], settings.confidence, least)
            if name != reference:
                row |= _difference(values[name, metric], values[reference, metric], settings.confidence, 1 - least)
            rows.append(row)
    return to_table(rows, SCHEMA)


def _own(values: MetricValues, confidence: float, least: float) -> dict[str, float]:
    by_seed = values.by_seed
    low, high = _interval(values, confidence, limits=(least, 1))
    spread = float(by_seed.std(ddof=1)) if by_seed.size > 1 else float("nan")
    return {"value": float(by_seed.mean()), "seed_sd": spread, "n_seeds": by_seed.size, "low": low, "high": high}


def _difference(values: MetricValues, reference: MetricValues, confidence: float, largest: float) -> dict[str, float]:
    difference = values - reference
    gains = difference.resampled["bootstrap"]
    paper = percentile_interval(gains, confidence)
    own = _interval(difference, confidence, limits=(-largest, largest))
    defined = gains[~np.isnan(gains)]
    return {
        "difference": float(values.by_seed.mean() - reference.by_seed.mean()),
        "paper_gain": float(defined.mean()) if defined.size else float("nan"),
        "paper_low": paper.low, "paper_high": paper.high, "diff_low": own.low, "diff_high": own.high,
    }  # fmt: skip


def _interval(values: MetricValues, confidence: float, *, limits: tuple[float, float]) -> Interval:
    """Over seeds and documents, cut at the smallest and largest possible value of the metric."""
    both = crossed(values.by_seed, values.error, confidence, trained=False)
    return Interval(*(float(bound) for bound in np.clip((both.low, both.high), *limits)))
