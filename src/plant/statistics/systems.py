"""The systems of a comparison: each has one run a seed, all on the same test documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from plant.evaluation.runs import Run, load_run
from plant.evaluation.values import metric_values
from plant.ground.errors import InputError, nearest
from plant.ground.settings import Evaluation, Statistics
from plant.metrics.groups import LabelSpace, read_label_space
from plant.metrics.names import find
from plant.metrics.scores import Scores, count_documents, require_comparable
from plant.metrics.thresholds import Thresholds


@dataclass(frozen=True)
class Comparison:
    """What is compared, checked. Runs are read one at a time: dense scores of all systems need not fit in memory."""

    systems: Mapping[str, Sequence[Path]]
    """Name -> evaluation folders, one a seed."""
    reference: str
    labels: LabelSpace
    settings: Statistics

    thresholds: dict[Path, Thresholds] = field(default_factory=dict, repr=False)
    """Of the runs that were read: tuning takes longer than reading."""

    def run(self, folder: Path) -> Run:
        """Read a run; its threshold is tuned the first time only."""
        run = load_run(folder, self.labels, self.thresholds.get(folder))
        self.thresholds[folder] = run.thresholds
        return run

    @property
    def others(self) -> list[str]:
        return [name for name in self.systems if name != self.reference]


def open_comparison(
    systems: Mapping[str, Sequence[Path]],
    *,
    reference: str,
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> Comparison:
    """Check names and read the label space.

    Raises:
        InputError: an unknown reference or metric, or a system without a folder.
    """
    if reference not in systems:
        raise InputError(
            "statistics", expected="a reference among the systems", got=repr(reference), fix=nearest(reference, systems)
        )
    for name, folders in systems.items():
        if not folders:
            raise InputError("statistics", expected=f"a score folder of {name!r}", got="none", fix="Run its seeds.")
    for metric in settings.metrics:
        find(metric, evaluation)
    return Comparison(systems, reference, read_label_space(labels_parquet, evaluation), settings)


def each_run(comparison: Comparison) -> Iterator[tuple[str, Run]]:
    """(system, run), one run in memory at a time.

    Raises:
        InputError: two runs have other test documents or other true labels.
    """
    first: Scores | None = None
    for name, folders in comparison.systems.items():
        for folder in folders:
            run = comparison.run(folder)
            first = first or replace(run.scores, dense=None)
            require_comparable(first, run.scores, f"{next(iter(comparison.systems))} and {name} ({folder})")
            yield name, run


def mean_values(
    comparison: Comparison, weights: Sequence[np.ndarray], metrics: Sequence[str]
) -> dict[tuple[str, str], tuple[np.ndarray, list[np.ndarray]]]:
    """Metrics of every system, as its seeds have them and averaged over its seeds within each resample.

    Args:
        comparison: the systems.
        weights: sets of resamples, (N, B) each.
        metrics: names.

    Returns:
        (system, metric) -> the values of its seeds (S,), and for each set of resamples the seed means (B,).
    """
    # One call a run: a column of ones for the plain value, then all resamples. Rankings are sorted only once.
    columns = np.concatenate([np.ones((weights[0].shape[0], 1), dtype=np.float32), *weights], axis=1)
    ends = np.cumsum([1, *(each.shape[1] for each in weights)])[:-1]
    values: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, run in each_run(comparison):
        for metric, value in metric_values(run, metrics, columns).items():
            values.setdefault((name, metric), []).append(value)
    return {
        key: (np.array([run[0] for run in runs]), np.split(np.mean(runs, axis=0), ends)[1:])
        for key, runs in values.items()
    }


def number_of_documents(comparison: Comparison) -> int:
    """N, the test documents of the reference's first run."""
    return count_documents(comparison.systems[comparison.reference][0], "test")
