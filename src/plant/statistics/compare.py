"""Every system against the reference: intervals, signed-rank tests and randomisation tests, each to its own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plant.ground import files
from plant.ground.settings import Evaluation, Statistics
from plant.statistics.bootstrap import intervals
from plant.statistics.crossed import crossed_table
from plant.statistics.randomization import randomization_tests
from plant.statistics.systems import Comparison, open_comparison
from plant.statistics.wilcoxon import wilcoxon_tests

Systems = Mapping[str, Sequence[Path]]


@dataclass(frozen=True)
class Results:
    """One row a system and metric in each; differences are row - reference."""

    intervals: pa.Table
    wilcoxon: pa.Table
    randomization: pa.Table


def compare(
    systems: Systems, *, reference: str, labels_parquet: Path, evaluation: Evaluation, settings: Statistics
) -> Results:
    """All three tables.

    Args:
        systems: name -> evaluation folders with val and test scores, one a seed.
        reference: the system that every other is compared with.
        labels_parquet: of the corpus.
        evaluation: section `evaluation` of the config.
        settings: section `statistics` of the config: metrics, resamples, confidence, seed.

    Raises:
        InputError: unknown names, unreadable scores, or systems with other test documents than the reference.
    """
    comparison = open_comparison(
        systems, reference=reference, labels_parquet=labels_parquet, evaluation=evaluation, settings=settings
    )
    return Results(intervals(comparison), wilcoxon_tests(comparison), randomization_tests(comparison))


def write_intervals(
    target: Path,
    systems: Systems,
    *,
    reference: str,
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> None:
    """Write intervals.parquet (see `bootstrap.intervals`); arguments as `compare`."""
    _write(target, intervals, open_comparison(
        systems, reference=reference, labels_parquet=labels_parquet, evaluation=evaluation, settings=settings
    ))  # fmt: skip


def write_wilcoxon(
    target: Path,
    systems: Systems,
    *,
    reference: str,
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> None:
    """Write wilcoxon.parquet (see `wilcoxon.wilcoxon_tests`); arguments as `compare`."""
    _write(target, wilcoxon_tests, open_comparison(
        systems, reference=reference, labels_parquet=labels_parquet, evaluation=evaluation, settings=settings
    ))  # fmt: skip


def write_randomization(
    target: Path,
    systems: Systems,
    *,
    reference: str,
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> None:
    """Write randomization.parquet (see `randomization.randomization_tests`); arguments as `compare`."""
    _write(target, randomization_tests, open_comparison(
        systems, reference=reference, labels_parquet=labels_parquet, evaluation=evaluation, settings=settings
    ))  # fmt: skip


def _write(target: Path, make: Callable[[Comparison], pa.Table], comparison: Comparison) -> None:
    table = make(comparison)
    files.write_with(Path(target), lambda path: pq.write_table(table, path))


def write_contrasts(
    target: Path,
    systems: Systems,
    *,
    pairs: Sequence[tuple[str, str]],
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> None:
    """Write contrasts.parquet (see `crossed.crossed_table`) of pairs of systems.

    Raises:
        InputError: as `compare`, and where two systems of a pair have other numbers of seeds, both above one.
    """
    named = {name: folders for name, folders in systems.items() if any(name in pair for pair in pairs)}
    comparison = open_comparison(
        named, reference=pairs[0][1], labels_parquet=labels_parquet, evaluation=evaluation, settings=settings
    )
    _write(target, lambda each: crossed_table(each, pairs), comparison)
