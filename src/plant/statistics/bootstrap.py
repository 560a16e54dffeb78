"""Intervals: the paper's percentile bootstrap (appendix F), and one that is right for label-macro metrics."""

from typing import Any

import numpy as np
import pyarrow as pa

from plant.metrics.names import BRIER_SKILL
from plant.statistics.crossed import crossed, require_paired
from plant.statistics.resampling import Resampling, percentile_interval
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
            own, least = values[name, metric], -np.inf if metric == BRIER_SKILL else 0.0  # a metric is at most 1
            low, high = _interval(own, settings.confidence, least, 1)
            row: dict[str, Any] = {
                "system": name, "metric": metric, "reference": reference, "value": float(own.by_seed.mean()),
                "seed_sd": float(own.by_seed.std(ddof=1)) if own.by_seed.size > 1 else None,
                "n_seeds": own.by_seed.size, "low": low, "high": high,
            }  # fmt: skip
            if name != reference:
                other = values[reference, metric]
                gains = (own - other).resampled["bootstrap"]
                defined, paper = gains[~np.isnan(gains)], percentile_interval(gains, settings.confidence)
                low, high = _interval(own - other, settings.confidence, least - 1, 1 - least)
                row |= {
                    "difference": float(own.by_seed.mean() - other.by_seed.mean()), "diff_low": low, "diff_high": high,
                    "paper_gain": float(defined.mean()) if defined.size else None,
                    "paper_low": paper.low, "paper_high": paper.high,
                }  # fmt: skip
            rows.append(row)
    return to_table(rows, SCHEMA)


def _interval(values: MetricValues, confidence: float, least: float, most: float) -> tuple[float, float]:
    """Over seeds and documents, cut at the smallest and largest possible value of the metric."""
    both = crossed(values.by_seed, values.error, confidence, trained=False)
    return float(np.clip(both.low, least, most)), float(np.clip(both.high, least, most))
