"""Intervals: the paper's percentile bootstrap (appendix F), and one that is right for label-macro metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from plant import seeds
from plant.statistics.resampling import (
    bootstrap_error,
    centred_interval,
    draw_bootstrap,
    draw_halves,
    half_sampling_error,
    percentile_interval,
)
from plant.statistics.systems import Comparison, mean_values, number_of_documents

SCHEMA = pa.schema([
    ("system", pa.string()), ("metric", pa.string()),
    ("value", pa.float64()), ("seed_sd", pa.float64()), ("n_seeds", pa.uint32()),
    ("low", pa.float64()), ("high", pa.float64()),
    ("reference", pa.string()), ("difference", pa.float64()),
    ("paper_gain", pa.float64()), ("paper_low", pa.float64()), ("paper_high", pa.float64()),
    ("diff_low", pa.float64()), ("diff_high", pa.float64()),
])  # fmt: skip


def bootstrap_weights(comparison: Comparison) -> np.ndarray:
    """The paired bootstrap of a comparison: (N, B), the same for all systems and seeds, fixed by the config's seed."""
    settings = comparison.settings
    rng = seeds.generator(settings.seed, "statistics", "bootstrap")
    return draw_bootstrap(number_of_documents(comparison), settings.resamples, rng)


def intervals(comparison: Comparison) -> pa.Table:
    """Values, differences to the reference (row - reference) and both intervals of each system and metric.

    `value` is the mean over the system's seeds, `seed_sd` their spread (not part of any interval).
    `low`, `high`, `diff_low`, `diff_high`: value +- z * standard error, by `statistics.interval` (choice C11).
    `paper_gain`, `paper_low`, `paper_high`: mean and percentiles of the bootstrap differences (appendix F).
    Rows of the reference have no difference; what is not defined is null.
    """
    documents, settings = number_of_documents(comparison), comparison.settings
    halves = draw_halves(documents, settings.resamples, seeds.generator(settings.seed, "statistics", "halves"))
    weights = [bootstrap_weights(comparison)]
    if settings.interval == "half_sampling":
        weights.append(halves)
    values = mean_values(comparison, weights, settings.metrics)
    rows = []
    for name in comparison.systems:
        for metric in settings.metrics:
            row: dict[str, Any] = {"system": name, "metric": metric, "reference": comparison.reference}
            row |= _own(values[name, metric], documents, comparison)
            if name != comparison.reference:
                row |= _difference(values[name, metric], values[comparison.reference, metric], documents, comparison)
            rows.append(
                {key: None if isinstance(cell, float) and np.isnan(cell) else cell for key, cell in row.items()}
            )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


_Values = tuple[np.ndarray, list[np.ndarray]]


def _own(values: _Values, documents: int, comparison: Comparison) -> dict[str, Any]:
    by_seed, resampled = values
    value = float(by_seed.mean())
    error = _error(resampled, documents)
    low, high = centred_interval(value, error, comparison.settings.confidence, limits=(0, 1))
    spread = float(by_seed.std(ddof=1)) if by_seed.size > 1 else float("nan")
    return {"value": value, "seed_sd": spread, "n_seeds": by_seed.size, "low": low, "high": high}


def _difference(values: _Values, reference: _Values, documents: int, comparison: Comparison) -> dict[str, float]:
    difference = float(values[0].mean() - reference[0].mean())
    resampled = [ours - theirs for ours, theirs in zip(values[1], reference[1], strict=True)]
    paper = percentile_interval(resampled[0], comparison.settings.confidence)
    defined = resampled[0][~np.isnan(resampled[0])]
    error = _error(resampled, documents)
    own = centred_interval(difference, error, comparison.settings.confidence, limits=(-1, 1))
    return {
        "difference": difference, "paper_gain": float(defined.mean()) if defined.size else float("nan"),
        "paper_low": paper.low, "paper_high": paper.high, "diff_low": own.low, "diff_high": own.high,
    }  # fmt: skip


def _error(resampled: list[np.ndarray], documents: int) -> float:
    """Standard error from the halves where they were drawn, else from the bootstrap."""
    if len(resampled) == 1:
        return bootstrap_error(resampled[0])
    return half_sampling_error(resampled[1], documents)
