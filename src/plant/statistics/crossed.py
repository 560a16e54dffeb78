"""Differences over training seeds AND test documents: what another training run on another test set would give.

The paper's intervals resample documents only: they say how sure the difference between these very runs is. A claim
about two methods must also hold for other training seeds. Let D_s be the difference of seed s on the same N documents
(or the value of one system), for S seeds. The model and the variance of the mean over seeds are

    D_s = Delta + a_s + noise of the documents,      V = V_documents + V_seeds,
    V_documents   squared standard error of the mean over test documents, from halves of the documents (choice C11),
    V_seeds       s^2 / S, with s^2 the variance of D_s over the seeds.

Noise of the documents that differs between seeds is counted in both terms. So V can be too large, by at most this
noise divided by S, and never too small. Interval and test use Student's t with Satterthwaite's degrees of freedom,
V^2 / (V_seeds^2 / (S - 1)); V_documents has no term there because it comes from many halves.

With few seeds the interval is too short if seeds vary more than documents: s^2 can be small by chance, and then the
degrees of freedom are large. A nominal 95 % interval covers 95 % where documents dominate. In simulations (near V_seeds
= 9 V_documents) it covers at least 94 % with five seeds, 92 % with three and 87 % with two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from plant.baselines.registry import baselines
from plant.ground.errors import InputError
from plant.statistics.systems import ComparedSystems, resampled_values, to_table

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
        error_documents: standard error over test documents, for these runs.
        error_seeds: standard error over training seeds, for these documents.
        degrees: of freedom (Satterthwaite); inf if the seeds do not differ.
        low, high: interval.
        p: two-sided p-value of no difference.

    With one seed of a trained system only `difference` and `error_documents` are numbers; the others are NaN.
    """

    difference: float
    error_documents: float
    error_seeds: float
    degrees: float
    low: float
    high: float
    p: float


def crossed(differences: np.ndarray, error_documents: float, confidence: float, *, trained: bool = True) -> Crossed:
    """Combine the errors over seeds and over documents (see the head of this file).

    Args:
        differences: (S,), the difference of each seed.
        error_documents: standard error of their mean over test documents.
        trained: True: one run has no interval, because another seed could give another difference. False: the
            interval of one run is over documents alone, for systems without randomness. Then `error_seeds` is 0.

    >>> both = crossed(np.array([0.1, 0.1, 0.1]), 0.02, 0.95)  # seeds agree: a normal interval over documents
    >>> round(both.low, 4), round(both.high, 4), both.degrees
    (0.0608, 0.1392, inf)
    """
    from scipy.stats import t as student  # its import takes most of a second

    mean, count = float(np.mean(differences)), len(differences)
    if count < 1 + trained or not np.isfinite(error_documents) or not np.isfinite(mean):
        nan = float("nan")
        return Crossed(mean, error_documents, nan, nan, nan, nan, nan)
    error_seeds = float(np.std(differences, ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    variance = error_documents**2 + error_seeds**2
    agree = error_seeds <= 1e-12 * abs(mean)  # the seeds differ by rounding alone
    degrees = float("inf") if agree else variance**2 / (error_seeds**4 / (count - 1))
    error = float(np.sqrt(variance))
    if error == 0:
        return Crossed(mean, 0.0, 0.0, degrees, mean, mean, 1.0 if mean == 0 else 0.0)
    reach = float(student.ppf((1 + confidence) / 2, degrees)) * error
    p = 2 * float(student.sf(abs(mean) / error, degrees))
    return Crossed(mean, error_documents, error_seeds, degrees, mean - reach, mean + reach, p)


def crossed_table(comparison: ComparedSystems, pairs: Sequence[tuple[str, str]]) -> pa.Table:
    """One row per pair of systems and metric; differences are the first minus the second.

    Seeds are paired by their order. A system with one run (a baseline) is compared with every seed of the other. Two
    baselines have no randomness: their interval is over documents alone.

    Raises:
        InputError: the two systems of a pair have different numbers of seeds, both above one.
    """
    for pair in pairs:
        require_paired({name: len(comparison.systems[name]) for name in pair})
    settings, rows = comparison.settings, []
    values = resampled_values(comparison, ["halves"], settings.metrics)
    for system, against in pairs:
        names = {name.rpartition(":")[2] for name in (system, against)}  # without the name of another experiment
        for metric in settings.metrics:
            ours, theirs = values[system, metric], values[against, metric]
            difference = ours - theirs
            both = crossed(
                difference.by_seed, difference.error, settings.confidence, trained=not names <= baselines().keys()
            )
            rows.append({
                "system": system, "against": against, "metric": metric, "value": float(ours.by_seed.mean()),
                "value_against": float(theirs.by_seed.mean()), "n_seeds": difference.by_seed.size, **asdict(both),
            })  # fmt: skip
    return to_table(rows, SCHEMA)


def require_paired(seeds: Mapping[str, int]) -> None:
    """Raises InputError if two systems have different numbers of seeds, both above one."""
    if len({1, *seeds.values()}) > 2:
        raise InputError(
            f"difference of {' and '.join(seeds)}", expected="as many seeds of one as of the other",
            got=" and ".join(map(str, seeds.values())), fix="Run the missing seeds.",
        )  # fmt: skip
