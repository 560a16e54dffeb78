"""One experiment as its tables, figures and report see it: the config, the systems, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from plant.ground.settings import Experiment, Settings
from plant.paper.inputs import Inputs, read_labels, read_metrics, read_results
from plant.paper.systems import Roles, System, find_roles, list_networks, list_systems

MARK = "Credentialed text. Only for those whom its data use agreement names: do not share this."
ResultRow = Mapping[str, Any]
"""A row of `ExperimentData.results`."""


@dataclass(frozen=True)
class ExperimentData:
    """One experiment. Each file is read once, when it is first used.

    Raises:
        InputError: a file is missing or unreadable, or lacks a column.
    """

    inputs: Inputs
    settings: Settings
    name: str

    @property
    def experiment(self) -> Experiment:
        return self.settings.experiments[self.name]

    @cached_property
    def systems(self) -> tuple[System, ...]:
        """All systems in table order; the reference is the last."""
        return list_systems(self.settings, self.experiment)

    @property
    def reference(self) -> System:
        return self.systems[-1]

    @cached_property
    def roles(self) -> Roles:
        return find_roles(self.settings, self.experiment)

    @cached_property
    def networks(self) -> dict[str, System]:
        return list_networks(self.settings, self.experiment)

    @cached_property
    def results(self) -> pl.DataFrame:
        """Intervals and tests, as `read_results` returns them."""
        return read_results(self.inputs, alpha=self.settings.statistics.alpha)

    @cached_property
    def rows(self) -> dict[tuple[str, str], ResultRow]:
        """(system, metric) -> its row of the results."""
        return {(row["system"], row["metric"]): row for row in self.results.iter_rows(named=True)}

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """All numbers of all seeds, as `read_metrics` returns them."""
        return read_metrics(self.inputs)

    @cached_property
    def means(self) -> dict[tuple[str, str], float]:
        """(system, metric) -> mean over the seeds."""
        means = self.metrics.group_by("system", "metric").agg(pl.col("value").mean()).drop_nulls("value")
        return {(system, metric): value for system, metric, value in means.iter_rows()}

    @cached_property
    def labels(self) -> pl.DataFrame:
        """Numbers of single labels, as `read_labels` returns them."""
        return read_labels(self.inputs)

    @property
    def hides_text(self) -> bool:
        """True for credentialed text, unless the config asks to show it."""
        credentialed = self.settings.is_credentialed(self.experiment.dataset)
        return credentialed and not self.settings.evaluation.show_credentialed

    @property
    def mark(self) -> str:
        """The warning over credentialed text that is shown; empty for other text."""
        return MARK if self.settings.is_credentialed(self.experiment.dataset) and not self.hides_text else ""
