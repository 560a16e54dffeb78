"""Every system against the reference: intervals, signed-rank tests and randomisation tests, each in its own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plant.ground import files
from plant.statistics.bootstrap import intervals
from plant.statistics.crossed import crossed_table
from plant.statistics.randomization import randomization_tests
from plant.statistics.systems import ComparedSystems, open_comparison
from plant.statistics.wilcoxon import wilcoxon_tests

Systems = Mapping[str, Sequence[Path]]


def write_table(make: Callable[[ComparedSystems], pa.Table], target: Path, systems: Systems, **options: Any) -> None:
    """Write a table of a comparison as parquet.

    Args:
        make: the table, of one row per system and metric.
        target: the parquet file.
        systems, options: see `plant.statistics.systems.open_comparison`.

    Raises:
        InputError: unknown names, unreadable scores, or systems with other test documents than the reference.
    """
    table = make(open_comparison(systems, **options))
    files.write_with(Path(target), lambda path: pq.write_table(table, path))


write_intervals = partial(write_table, intervals)
write_wilcoxon = partial(write_table, wilcoxon_tests)
write_randomization = partial(write_table, randomization_tests)


def write_contrasts(target: Path, systems: Systems, *, pairs: Sequence[tuple[str, str]], **options: Any) -> None:
    """Write the table of `crossed.crossed_table` for some pairs of systems; the rest is as in `write_table`."""
    named = {name: folders for name, folders in systems.items() if any(name in pair for pair in pairs)}
    write_table(partial(crossed_table, pairs=pairs), target, named, reference=pairs[0][1], **options)
