"""Intervals: the paper's percentile bootstrap (appendix F), and one that is right for label-macro metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from plant.ground import seeds
from plant.statistics.crossed import crossed, require_paired
from plant.statistics.resampling import (
    Interval,
    bootstrap_error,
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

    `value` is the mean over the system's seeds, `seed_sd` their spread.
    `low`, `high`, `diff_low`, `diff_high`: over training seeds and test documents together (`crossed`), the error over
    documents by `statistics.interval` (choice C11). Where both sides have one run they are over documents alone.
    `paper_gain`, `paper_low`, `paper_high`: mean and percentiles of the bootstrap differences (appendix F).
    Rows of the reference have no difference; what is not defined is null.

    Raises:
        InputError: a system has another number of seeds than the reference, both above one.
    """
    documents, settings = number_of_documents(comparison), comparison.settings
    halves = draw_halves(documents, settings.resamples, seeds.generator(settings.seed, "statistics", "halves"))
    weights = [bootstrap_weights(comparison)]
    if settings.interval == "half_sampling":
        weights.append(halves)
    values = mean_values(comparison, weights, settings.metrics)
    rows = []
    for name, folders in comparison.systems.items():
        require_paired({name: len(folders), comparison.reference: len(comparison.systems[comparison.reference])})
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
    low, high = _interval(by_seed, _error(resampled, documents), comparison, limits=(0, 1))
    spread = float(by_seed.std(ddof=1)) if by_seed.size > 1 else float("nan")
    return {"value": float(by_seed.mean()), "seed_sd": spread, "n_seeds": by_seed.size, "low": low, "high": high}


def _difference(values: _Values, reference: _Values, documents: int, comparison: Comparison) -> dict[str, float]:
    resampled = [ours - theirs for ours, theirs in zip(values[1], reference[1], strict=True)]
    paper = percentile_interval(resampled[0], comparison.settings.confidence)
    defined = resampled[0][~np.isnan(resampled[0])]
    own = _interval(values[0] - reference[0], _error(resampled, documents), comparison, limits=(-1, 1))
    return {
        "difference": float(values[0].mean() - reference[0].mean()),
        "paper_gain": float(defined.mean()) if defined.size else float("nan"),
        "paper_low": paper.low, "paper_high": paper.high, "diff_low": own.low, "diff_high": own.high,
    }  # fmt: skip


def _interval(by_seed: np.ndarray, error: float, comparison: Comparison, *, limits: tuple[float, float]) -> Interval:
    """Over seeds and documents, cut at the limits of what the metric can be."""
    found = crossed(by_seed, error, comparison.settings.confidence, trained=False)
    return Interval(*(float(bound) for bound in np.clip((found.low, found.high), *limits)))


def _error(resampled: list[np.ndarray], documents: int) -> float:
    """Standard error from the halves where they were drawn, else from the bootstrap."""
    if len(resampled) == 1:
        return bootstrap_error(resampled[0])
    return half_sampling_error(resampled[1], documents)
