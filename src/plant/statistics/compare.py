"""Every system against the reference: intervals, signed-rank tests and randomisation tests, each to its own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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


def write_table(
    make: Callable[[Comparison], pa.Table],
    target: Path,
    systems: Systems,
    *,
    reference: str,
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> None:
    """Write the table of a comparison as parquet.

    Args:
        make: the table; one row a system and metric, differences are row - reference.
        target: the parquet file.
        systems: name -> evaluation folders with val and test scores, one a seed.
        reference: the system that every other is compared with.
        labels_parquet: of the corpus.
        evaluation: section `evaluation` of the config.
        settings: section `statistics` of the config: metrics, resamples, confidence, seed.

    Raises:
        InputError: unknown names, unreadable scores, or systems with other test documents than the reference.
    """
    table = make(
        open_comparison(
            systems, reference=reference, labels_parquet=labels_parquet, evaluation=evaluation, settings=settings
        )
    )
    files.write_with(Path(target), lambda path: pq.write_table(table, path))


write_intervals = partial(write_table, intervals)
write_wilcoxon = partial(write_table, wilcoxon_tests)
write_randomization = partial(write_table, randomization_tests)


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
        InputError: as `write_table`, and where two systems of a pair have other numbers of seeds, both above one.
    """
    named = {name: folders for name, folders in systems.items() if any(name in pair for pair in pairs)}
    write_table(
        partial(crossed_table, pairs=pairs), target, named, reference=pairs[0][1], labels_parquet=labels_parquet,
        evaluation=evaluation, settings=settings,
    )  # fmt: skip
