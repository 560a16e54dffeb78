"""One experiment as its tables, figures and report see it: the config, the systems, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json
from plant.ground.settings import Experiment, Settings
from plant.paper.costs import STAGE1, STAGE2, TRAINING, cost_of
from plant.paper.inputs import INTERVAL_COLUMNS, LABEL_COLUMNS, Inputs, read_table, runs_of
from plant.paper.systems import Roles, System, find_roles, list_networks, list_systems
from plant.statistics.significance import arrow

MARK = "Credentialed text. Only for those whom its data use agreement names: do not share this."
NOT_COUNTED = "attention.provenance.json"
"""The attention over a few documents is shown, and is no part of what a system costs."""
FIT = ("calibration_error", "log_loss")
"""Numbers of `calibration` in metrics.json, for scores that are log-odds. It is null for other scores."""
ARROWS_BEHIND = {
    "paper_arrow": ("wilcoxon_p", "paper_low", "paper_high"),
    "our_arrow": ("randomization_p", "diff_low", "diff_high"),
}
"""Arrow -> the test and the interval that must agree."""
ResultRow = Mapping[str, Any]
"""A row of `ExperimentData.results`."""


@dataclass(frozen=True)
class ExperimentData:
    """One experiment. Each file is read once, when it is first used; a bad one is an InputError."""

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

    @property
    def hides_text(self) -> bool:
        """True for credentialed text, unless the config asks to show it."""
        credentialed = self.settings.is_credentialed(self.experiment.dataset)
        return credentialed and not self.settings.evaluation.show_credentialed

    @property
    def mark(self) -> str:
        """The warning over credentialed text that is shown; empty for other text."""
        return MARK if self.settings.is_credentialed(self.experiment.dataset) and not self.hides_text else ""

    @cached_property
    def results(self) -> pl.DataFrame:
        """Intervals with both tests beside them, one row for each system and metric.

        Columns: INTERVAL_COLUMNS, then `wilcoxon_{statistic,n,p}`, `level`, `anti_conservative`, `randomization_p` and
        `resamples`, null where a test was not made (the reference has none); `paper_arrow` (Wilcoxon test and
        percentile interval) and `our_arrow` (randomisation test and our interval): "up", "down" or "".
        """
        folder, keys = Path(self.inputs.statistics), ("system", "metric")
        results = read_table(folder / "intervals.parquet", INTERVAL_COLUMNS).select(INTERVAL_COLUMNS)
        for test, numbers, others in (
            ("wilcoxon", ("statistic", "n", "p"), ("level", "anti_conservative")),
            ("randomization", ("p",), ("resamples",)),
        ):
            table = read_table(folder / f"{test}.parquet", (*keys, *numbers, *others))
            named = table.select(*keys, pl.col(numbers).name.prefix(f"{test}_"), *others)
            results = results.join(named, on=keys, how="left", validate="1:1", maintain_order="left")
        alpha = self.settings.statistics.alpha
        return results.with_columns(
            pl.Series(name, [arrow(*row, alpha=alpha) for row in results.select(columns).iter_rows()], dtype=pl.String)
            for name, columns in ARROWS_BEHIND.items()
        )

    @cached_property
    def rows(self) -> dict[tuple[str, str], ResultRow]:
        """(system, metric) -> its row of the results."""
        return {(row["system"], row["metric"]): row for row in self.results.iter_rows(named=True)}

    @cached_property
    def records(self) -> list[tuple[str, int, dict[str, Any]]]:
        """(system, seed, metrics.json) of every run."""
        runs = runs_of(self.inputs.evaluations)
        return [(system, seed, read_json(folder / "metrics.json")) for system, seed, folder in runs]

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """Every number of every metrics.json, with the tuned threshold and the numbers of FIT: system, seed, metric,
        and value, which is null where a metric is not defined."""
        rows = []
        for system, seed, record in self.records:
            fit = record["calibration"] or {}
            values = {name: value for name, value in record.items() if isinstance(value, int | float | None)}
            values.pop("calibration", None)
            values |= {name: fit.get(name) for name in FIT} | {"threshold": record["threshold"]["value"]}
            rows += [(system, seed, metric, value) for metric, value in values.items()]
        schema = {"system": pl.String, "seed": pl.Int64, "metric": pl.String, "value": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def means(self) -> dict[tuple[str, str], float]:
        """(system, metric) -> mean over the seeds."""
        means = self.metrics.group_by("system", "metric").agg(pl.col("value").mean()).drop_nulls("value")
        return {(system, metric): value for system, metric, value in means.iter_rows()}

    @cached_property
    def labels(self) -> pl.DataFrame:
        """The labels of the test split: one row for each system and label, averaged over its seeds."""
        tables = [
            read_table(folder / "per_label.parquet", LABEL_COLUMNS)
            .select(LABEL_COLUMNS)
            .with_columns(system=pl.lit(system))
            for system, _, folder in runs_of(self.inputs.evaluations)
        ]
        present = pl.concat(tables, how="vertical_relaxed").filter(pl.col("n_test") > 0)
        by_label = present.group_by("system", "label", maintain_order=True)
        return by_label.agg(pl.col("n_train", "n_test").first(), pl.col("f1", "ap").mean())

    @cached_property
    def costs(self) -> list[dict[str, Any]]:
        """One flat record for each provenance sidecar: `stage`, `name`, `epochs` that ran (None if it is no training),
        the cost as `cost_of` has it, `commit`, `modified`, `platform`, `versions`."""
        inputs, records = self.inputs, []
        runs = {STAGE1: inputs.pretrainings, STAGE2: inputs.finetunings, "evaluation": inputs.evaluations}
        groups = [(stage, "", folders) for stage, folders in inputs.stages.items()]
        groups += [(stage, name, folders) for stage, own in runs.items() for name, folders in own.items()]
        for stage, name, folder in ((stage, name, Path(each)) for stage, name, folders in groups for each in folders):
            trains = stage in TRAINING
            epochs = read_table(folder / "history.parquet", ["epoch"]).height if trains else None
            for path in sorted(folder.glob("*provenance.json")):
                if path.name != NOT_COUNTED:
                    sidecar = read_json(path)
                    records.append(
                        {"stage": stage, "name": name, "epochs": epochs} | cost_of(sidecar, trains=trains)
                        | {"platform": sidecar["platform"], "versions": sidecar["versions"], **sidecar["code"]}
                    )  # fmt: skip
        return records
