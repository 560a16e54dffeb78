"""Every system against the reference: intervals, signed-rank tests and randomisation tests, each in its own file."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plant.ground import files
from plant.statistics.bootstrap import intervals
from plant.statistics.crossed import crossed_table
from plant.statistics.randomization import randomization_tests
from plant.statistics.systems import open_comparison
from plant.statistics.wilcoxon import wilcoxon_tests

Systems = Mapping[str, Sequence[Path]]


def write_comparison(systems: Systems, targets: Mapping[str, Path], **options: Any) -> None:
    """Write tables of one row per system and metric as parquet.

    Args:
        targets: name of a table (`intervals`, `wilcoxon`, `randomization`) -> its file.
        systems, options: see `plant.statistics.systems.open_comparison`.

    Raises:
        InputError: unknown names, unreadable scores, or systems with other test documents than the reference.
    """
    comparison = open_comparison(systems, **options)
    tables = {"intervals": intervals, "wilcoxon": wilcoxon_tests, "randomization": randomization_tests}
    for name, target in targets.items():
        files.write_with(target, partial(pq.write_table, tables[name](comparison)))


def write_contrasts(target: Path, systems: Systems, *, pairs: Sequence[tuple[str, str]], **options: Any) -> None:
    """Write the table of `crossed.crossed_table` for some pairs of systems; the rest is as in `write_comparison`."""
    named = {name: folders for name, folders in systems.items() if any(name in pair for pair in pairs)}
    comparison = open_comparison(named, reference=pairs[0][1], **options)
    files.write_with(target, partial(pq.write_table, crossed_table(comparison, pairs)))
