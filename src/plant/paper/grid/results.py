"""What the experiments of a config have left so far, for the paper's tables and figures.

Missing files are normal here: tables and figures are made from whatever has run, and say what has not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from plant.baselines.registry import baselines
from plant.ground.files import read_json
from plant.ground.settings import Experiment, Settings
from plant.paper.inputs import INTERVAL_COLUMNS, Inputs, read_table, seed_of
from plant.paper.wording import interval_over


@dataclass(frozen=True)
class Number:
    """A number that we measured, in percent, its interval, and where it comes from."""

    ours: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int | None = None
    """Training seeds that the number is a mean over."""
    why: str = ""
    """Why there is no number or no interval."""
    experiment: str = ""
    over: str = ""
    """What the interval is over: `wording.interval_over`."""


class Match(NamedTuple):
    """The experiment that measures a number of the paper, or why there is none; and others that would do."""

    name: str | None
    why: str = ""
    others: tuple[str, ...] = ()


class RunFiles(NamedTuple):
    """The files of one experiment. They are empty where nothing has run."""

    intervals: Mapping[tuple[str, str], Mapping[str, Any]]
    """(system, metric) -> row of intervals.parquet."""
    metrics: Mapping[str, Mapping[int, Mapping[str, Any]]]
    """System -> seed -> metrics.json, for the runs that there are."""


@dataclass
class Grid:
    """A config, the paths of its experiments, and a reader that opens each experiment once."""

    settings: Settings
    paths: Mapping[str, Inputs]
    experiments: dict[str, None] = field(default_factory=dict)
    """Experiments whose numbers were asked for, in that order."""
    datasets: dict[str, None] = field(default_factory=dict)
    """Datasets whose statistics were asked for."""
    missing: dict[str, None] = field(default_factory=dict)
    """Reasons why numbers of a figure are missing."""
    to_run: dict[str, None] = field(default_factory=dict)
    """Experiments of a figure that have not run yet."""
    _read: dict[str, RunFiles] = field(default_factory=dict, repr=False)

    def files(self, name: str, runs: str, key: str, file: str) -> dict[int, Path]:
        """Seed -> a file of the runs `key` in a field of Inputs, such as "evaluations", for the seeds that have it."""
        folders = getattr(self.paths[name], runs).get(key, ()) if name in self.paths else ()
        return {seed_of(folder): folder / file for folder in folders if (folder / file).is_file()}

    def ran(self, name: str) -> RunFiles:
        """What an experiment has left."""
        if name not in self._read:
            source = self.paths[name].statistics / "intervals.parquet" if name in self.paths else None
            table = read_table(source, INTERVAL_COLUMNS) if source and source.is_file() else pl.DataFrame()
            intervals = {(row["system"], row["metric"]): row for row in table.iter_rows(named=True)}
            metrics = {}
            for system in self.paths[name].evaluations if name in self.paths else ():
                files = self.files(name, "evaluations", system, "metrics.json")
                metrics[system] = {seed: read_json(path) for seed, path in files.items()}
            self._read[name] = RunFiles(intervals, metrics)
        return self._read[name]

    def has_run(self, name: str, system: str) -> bool:
        """Whether a system has a score."""
        ran = self.ran(name)
        return bool(ran.metrics.get(system)) or any(system == key[0] for key in ran.intervals)

    def find(self, dataset: str, backbone: str | None, systems: Sequence[str], *, paired: bool = False) -> Match:
        """The experiment on a dataset and backbone that holds all of `systems`.

        If several qualify: first one that has intervals, then one that has run at all, one that `all` runs (not on
        request), one that will have intervals, the one with more seeds, the first of the config.

        Args:
            backbone: name; None is `paper.main_backbone`.
            paired: the experiment's reference must be one of the systems.
        """
        backbone = backbone or self.settings.paper.main_backbone
        if backbone is None:
            return Match(None, "the paper's row names no backbone and the config no paper.main_backbone")
        none, place = "no experiment of this config", f"{dataset} with {backbone}"
        no_pair = f"no paired interval: neither {' nor '.join(systems)} is the reference of "
        conditions: tuple[tuple[Callable[[Experiment], bool], str], ...] = (
            (lambda each: each.dataset == dataset, f"{none} is on {dataset}"),
            (lambda each: each.backbone == backbone, f"{none} is on {place}"),
            (lambda each: set(systems) <= set(each.variants), f"{none} has {' and '.join(systems)} on {place}"),
            (lambda each: not paired or each.reference in systems, no_pair),
        )
        names = list(self.settings.experiments)
        for meets, why in conditions:
            left = [name for name in names if meets(self.settings.experiments[name])]
            if not left:
                return Match(None, why + (", ".join(names) if why == no_pair else ""))
            names = left
        first, *others = sorted(names, key=lambda name: self._rank(name, systems))
        self.experiments[first] = None
        return Match(first, others=tuple(others))

    def by_seed(self, name: str, system: str, metric: str) -> dict[int, float]:
        """Seed -> a metric of metrics.json, a fraction, for the seeds that have it."""
        records = self.ran(name).metrics.get(system, {})
        return {seed: record[metric] for seed, record in records.items() if record.get(metric) is not None}

    def value(self, name: str, system: str, metric: str) -> Number:
        """A system's metric: the mean over its seeds and our interval (intervals.parquet).

        Without intervals: the mean of the metrics.json files that there are, and why there is no interval.
        """
        row = self.ran(name).intervals.get((system, metric))
        if row is not None and row["value"] is not None:
            number = _number(row, ("value", "low", "high"), name, row["n_seeds"], trained=system not in baselines())
            return number if number.over else replace(number, why=f"{metric} has no interval")
        if not self.ran(name).metrics.get(system):
            return Number(why=f"not run yet: target `{target(name)}`", experiment=name)
        values = self.by_seed(name, system, metric).values()
        if not values:
            return Number(why=f"{metric} is not in metrics.json (see `evaluation`)", experiment=name)
        if not self.settings.experiments[name].report:
            why = f"no interval: experiment {name} has `report: false`"
        elif metric not in self.settings.statistics.metrics:
            why = f"no interval: {metric} is not in statistics.metrics"
        else:
            why = f"no interval yet: target `{target(name)}`"
        return Number(100 * sum(values) / len(values), seeds=len(values), why=why, experiment=name)

    def difference(self, name: str, first: str, second: str, metric: str) -> Number:
        """`first` minus `second` and our interval. One of them must be the experiment's reference."""
        turned = self.settings.experiments[name].reference == first
        intervals = self.ran(name).intervals
        row = intervals.get((second if turned else first, metric))
        if row is None or row["diff_low"] is None or row["diff_high"] is None:
            why = self.value(name, first, metric).why or f"{metric} has no interval of differences"
            return Number(why=why, experiment=name)
        seeds = max(row["n_seeds"], intervals[row["reference"], metric]["n_seeds"])
        trained = not {first, second} <= baselines().keys()
        number = _number(row, ("difference", "diff_low", "diff_high"), name, seeds, trained=trained)
        if not turned:
            return number
        ours, low, high = (None if each is None else -each for each in (number.ours, number.high, number.low))
        return replace(number, ours=ours, low=low, high=high)

    def corpus_file(self, dataset: str, name: str) -> tuple[Path | None, str, str]:
        """A file of a corpus, and an experiment that has made it; None, and the reason, where it is not there."""
        experiments = [each for each, its in self.settings.experiments.items() if its.dataset == dataset]
        if not experiments:
            return None, "", f"no experiment of this config is on {dataset}"
        self.datasets[dataset] = None
        for experiment in experiments:
            if experiment in self.paths and (path := self.paths[experiment].corpus / name).is_file():
                return path, experiment, ""
        return None, "", f"not run yet: target `{target(experiments[0])}`"

    def is_stand_in(self, dataset: str) -> bool:
        """Whether a dataset of the config is synthetic text in the published raw form."""
        return dataset in self.settings.datasets and self.settings.is_stand_in(dataset)

    def _rank(self, name: str, systems: Sequence[str]) -> tuple[bool, bool, bool, bool, int]:
        """The best experiment has the smallest rank (`find`)."""
        experiment = self.settings.experiments[name]
        has_intervals = set(systems) <= {system for system, _ in self.ran(name).intervals}
        ran = all(self.has_run(name, system) for system in systems)
        return not has_intervals, not ran, experiment.on_request, not experiment.report, -len(experiment.seeds)


def target(*experiments: str) -> str:
    """The targets that run experiments. The reader adds the command (cores, profile, config).

    >>> target("a", "b")
    'experiment_a experiment_b'
    """
    return " ".join(f"experiment_{name}" for name in experiments)


def _number(
    row: Mapping[str, Any], columns: tuple[str, str, str], experiment: str, seeds: int, *, trained: bool
) -> Number:
    """A number of intervals.parquet with its bounds, in percent."""
    value, low, high = (None if row[column] is None else 100 * row[column] for column in columns)
    over = "" if low is None or high is None else interval_over(seeds, trained=trained)
    return Number(value, low, high, seeds, experiment=experiment, over=over)
