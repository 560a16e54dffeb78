"""The systems of a comparison. Each has one run per seed, and all are measured on the same test documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from plant.corpus.reader import read_clusters
from plant.evaluation.runs import Run, ThresholdOf, load_run
from plant.evaluation.values import metric_values
from plant.ground.errors import InputError, nearest
from plant.ground.settings import Evaluation, Statistics
from plant.metrics.groups import LabelSpace, read_label_space
from plant.metrics.scores import Scores, require_comparable
from plant.statistics.resampling import Resampling, bootstrap_error, count_clusters, draw, half_sampling_error


@dataclass(frozen=True)
class ComparedSystems:
    """Systems of one test split. Runs are read one at a time: the dense scores of all may not fit into memory.

    Attributes:
        systems: name -> evaluation folders, one per seed.
        reference: the system that every other is compared with.
        labels: of the corpus.
        settings: metrics, number of resamples, and level of the intervals.
        clusters: (N,) cluster (patient) of each test document, numbered from 0 in the order of the documents.
        thresholds: of the runs that were read, by folder. Tuning takes longer than reading.
    """

    systems: Mapping[str, Sequence[Path]]
    reference: str
    labels: LabelSpace
    settings: Statistics
    clusters: np.ndarray
    thresholds: dict[Path, ThresholdOf] = field(default_factory=dict, repr=False)

    def run(self, folder: Path) -> Run:
        """Read a run. Its thresholds are tuned at the first reading only."""
        run = load_run(folder, self.labels, self.thresholds.get(folder))
        if len(run.scores.document_ids) != len(self.clusters):
            raise InputError(
                "test.parquet of the corpus", expected=f"{len(run.scores.document_ids)} documents, as in the scores",
                got=str(len(self.clusters)), fix="Delete the scores and run again.",
            )  # fmt: skip
        self.thresholds[folder] = run.thresholds
        return run

    @property
    def others(self) -> list[str]:
        """All systems but the reference."""
        return [name for name in self.systems if name != self.reference]


@dataclass(frozen=True)
class MetricValues:
    """A metric of one system, or its difference between two systems.

    Attributes:
        by_seed: (S,) its value for each seed.
        resampled: kind of resampling -> (B,) its mean over seeds in each resample; NaN if it is not defined.
        units: number of documents, or of clusters of them, that were drawn.
    """

    by_seed: np.ndarray
    resampled: Mapping[Resampling, np.ndarray]
    units: int

    def __sub__(self, other: MetricValues) -> MetricValues:
        """Differences, paired by seed and by resample. One run is compared with every seed of the other system."""
        resampled = {kind: values - other.resampled[kind] for kind, values in self.resampled.items()}
        return MetricValues(self.by_seed - other.by_seed, resampled, self.units)

    @property
    def error(self) -> float:
        """Standard error over test documents of the mean over seeds: from halves if drawn, else by the bootstrap."""
        if "halves" in self.resampled:
            return half_sampling_error(self.resampled["halves"], self.units)
        return bootstrap_error(self.resampled["bootstrap"])


def open_comparison(
    systems: Mapping[str, Sequence[Path]],
    *,
    reference: str,
    labels_parquet: Path,
    evaluation: Evaluation,
    settings: Statistics,
) -> ComparedSystems:
    """Read what all runs share: the label space, and the groups of the test documents.

    `systems` and `reference` are those of `ComparedSystems`. test.parquet of the corpus lies beside its labels.parquet.

    Raises:
        InputError: the reference is no system, or a table of the corpus is missing or damaged.
    """
    if reference not in systems:
        raise InputError(
            "statistics", expected="a reference among the systems", got=repr(reference), fix=nearest(reference, systems)
        )
    labels, test = read_label_space(labels_parquet, evaluation), Path(labels_parquet).with_name("test.parquet")
    return ComparedSystems(systems, reference, labels, settings, read_clusters(test))


def each_run(comparison: ComparedSystems) -> Iterator[tuple[str, Run]]:
    """(system, run), one run in memory at a time; InputError if two have other test documents or true labels."""
    first: Scores | None = None
    for name, folders in comparison.systems.items():
        for folder in folders:
            run = comparison.run(folder)
            first = first or replace(run.scores, dense=None)
            require_comparable(first, run.scores, f"{next(iter(comparison.systems))} and {name} ({folder})")
            yield name, run


def resampled_values(
    comparison: ComparedSystems, kinds: Sequence[Resampling], metrics: Sequence[str]
) -> dict[tuple[str, str], MetricValues]:
    """(system, metric) -> its values in the test split and in the resamples of each kind."""
    clusters = comparison.clusters
    ones = np.ones((len(clusters), 1), dtype=np.float32)
    # One call per run: the first column gives the plain value, the others the resamples. Rankings are sorted once.
    weights = np.concatenate([ones, *(draw(kind, clusters, comparison.settings) for kind in kinds)], axis=1)
    by_run: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, run in each_run(comparison):
        for metric, value in metric_values(run, metrics, weights).items():
            by_run.setdefault((name, metric), []).append(value)
    values = {}
    for key, runs in by_run.items():
        parts = np.split(np.mean(runs, axis=0)[1:], len(kinds))
        by_seed = np.array([run[0] for run in runs])
        values[key] = MetricValues(by_seed, dict(zip(kinds, parts, strict=True)), count_clusters(clusters))
    return values


def to_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; NaN, which stands for a value that is not defined, becomes null."""
    plain = [{key: None if value != value else value for key, value in row.items()} for row in rows]
    return pa.Table.from_pylist(plain, schema=schema)
