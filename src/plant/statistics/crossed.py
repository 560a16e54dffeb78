"""Differences over training seeds AND test documents: what another training run on another test set would show.

The intervals of the paper resample documents only: they say how sure a difference between these very runs is. A claim
about two methods also has to hold over training seeds. For the difference D_s of seed s on the same N documents (or the
value D_s of one system)

    D_s = Delta + a_s + noise of the documents,      V = V_documents + V_seeds,
    V_documents   squared standard error of the mean over seeds, from halves of the documents (choice C11),
    V_seeds       s^2 / S, with s^2 the variance of D_s over the S seeds.

The part of the documents' noise that differs from seed to seed is in both, so V is too large by at most that part
divided by S, never too small. Interval and test use Student's t with Satterthwaite's degrees of freedom,
V^2 / (V_seeds^2 / (S - 1)): V_documents comes from many halves.

With few seeds the interval promises too much where the noise of seeds is larger than that of documents: s^2 can come
out small by chance, and the degrees of freedom large with it. A nominal 95 % is 95 % where documents dominate. It is at
worst 94 % with five seeds, 92 % with three and 87 % with two (near V_seeds = 9 V_documents; simulated).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from plant.baselines.registry import baselines
from plant.ground import seeds
from plant.ground.errors import InputError
from plant.statistics.resampling import draw_halves, half_sampling_error
from plant.statistics.systems import Comparison, mean_values, number_of_documents

SCHEMA = pa.schema([
    ("system", pa.string()), ("against", pa.string()), ("metric", pa.string()),
    ("value", pa.float64()), ("value_against", pa.float64()), ("difference", pa.float64()),
    ("error_documents", pa.float64()), ("error_seeds", pa.float64()), ("n_seeds", pa.uint32()),
    ("degrees", pa.float64()), ("low", pa.float64()), ("high", pa.float64()), ("p", pa.float64()),
])  # fmt: skip


@dataclass(frozen=True)
class Crossed:
    """A difference with both sources of error.

    Attributes:
        difference: mean over seeds.
        error_documents: standard error over test documents, the runs as they are.
        error_seeds: standard error over training seeds, the documents as they are; NaN for one seed.
        degrees: of freedom (Satterthwaite); inf where the seeds do not differ.
        low, high: interval at the level that was asked for; NaN with one seed, which says nothing about others.
        p: two-sided, of no difference.
    """

    difference: float
    error_documents: float
    error_seeds: float
    degrees: float
    low: float
    high: float
    p: float

    @property
    def error(self) -> float:
        return float(np.hypot(self.error_documents, self.error_seeds))


def crossed(differences: np.ndarray, error_documents: float, confidence: float, *, trained: bool = True) -> Crossed:
    """Put the two sources together.

    Args:
        differences: (S,), of each seed, paired where both systems were trained with it.
        error_documents: standard error of their mean over test documents.
        confidence: level of the interval.
        trained: whether one run is too few, because another seed could give another difference. False takes the
            interval of one run over documents alone: for systems without randomness, or said to be of one seed.

    >>> found = crossed(np.array([0.1, 0.1, 0.1]), 0.02, 0.95)  # seeds agree: a normal interval over documents
    >>> round(found.low, 4), round(found.high, 4), found.degrees
    (0.0608, 0.1392, inf)
    """
    from scipy.stats import t as student  # its import takes most of a second

    mean, count = float(np.mean(differences)), len(differences)
    if count < 1 + trained or not np.isfinite(error_documents) or not np.isfinite(mean):
        nan = float("nan")
        return Crossed(mean, error_documents, nan, nan, nan, nan, nan)
    error_seeds = float(np.std(differences, ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    variance = error_documents**2 + error_seeds**2
    agree = error_seeds <= 1e-12 * abs(mean)  # seeds that differ by rounding alone
    degrees = float("inf") if agree else variance**2 / (error_seeds**4 / (count - 1))
    error = float(np.sqrt(variance))
    if error == 0:
        return Crossed(mean, 0.0, 0.0, degrees, mean, mean, 1.0 if mean == 0 else 0.0)
    reach = float(student.ppf((1 + confidence) / 2, degrees)) * error
    p = 2 * float(student.sf(abs(mean) / error, degrees))
    return Crossed(mean, error_documents, error_seeds, degrees, mean - reach, mean + reach, p)


def crossed_table(comparison: Comparison, pairs: Sequence[tuple[str, str]]) -> pa.Table:
    """One row a pair of systems and metric; differences are the first minus the second.

    Two baselines have no randomness: their interval is over documents alone. Seeds are paired by their order where both
    systems have as many; a system with one run (a baseline) is compared with every seed of the other.

    Raises:
        InputError: two systems of a pair have other numbers of seeds, both above one.
    """
    for pair in pairs:
        require_paired({name: len(comparison.systems[name]) for name in pair})
    documents, settings = number_of_documents(comparison), comparison.settings
    halves = draw_halves(documents, settings.resamples, seeds.generator(settings.seed, "statistics", "halves"))
    values = mean_values(comparison, [halves], settings.metrics)
    rows = []
    for system, against in pairs:
        for metric in settings.metrics:
            ours, theirs = values[system, metric], values[against, metric]
            names = {name.rpartition(":")[2] for name in (system, against)}  # without another experiment's
            found = crossed(
                ours[0] - theirs[0], half_sampling_error(ours[1][0] - theirs[1][0], documents),
                settings.confidence, trained=not names <= baselines().keys(),
            )  # fmt: skip
            rows.append(_row(found, {
                "system": system, "against": against, "metric": metric, "value": float(ours[0].mean()),
                "value_against": float(theirs[0].mean()), "n_seeds": max(len(ours[0]), len(theirs[0])),
            }))  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def require_paired(seeds: Mapping[str, int]) -> None:
    """Raises InputError where two systems have other numbers of seeds, both above one."""
    if len({1, *seeds.values()}) > 2:
        raise InputError(
            f"difference of {' and '.join(seeds)}", expected="as many seeds of one as of the other",
            got=" and ".join(map(str, seeds.values())), fix="Run the missing seeds.",
        )  # fmt: skip


def _row(found: Crossed, rest: Mapping[str, Any]) -> dict[str, Any]:
    row = dict(rest) | {name: getattr(found, name) for name in
                        ("difference", "error_documents", "error_seeds", "degrees", "low", "high", "p")}  # fmt: skip
    return {key: None if isinstance(cell, float) and np.isnan(cell) else cell for key, cell in row.items()}
