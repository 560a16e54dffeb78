"""Every table of an experiment, built and written. What stands in them: result_tables and context_tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Settings
from plant.paper.experiment.context_tables import corpus_table, cost_table
from plant.paper.experiment.result_tables import ablation_table, interval_table, probability_table, seed_table
from plant.paper.inputs import Inputs, read_combined_weight, read_costs, read_lower_bounds, read_metrics, read_results
from plant.paper.render import Table, write_table
from plant.paper.systems import System, list_networks, list_systems


def write_tables(inputs: Inputs, folder: Path, *, settings: Settings, experiment: str) -> None:
    """Write every table of `plant.paper.TABLES` as CSV, Markdown and LaTeX into `folder`.

    Raises:
        InputError: an input is missing, lacks a column, or a system or metric of the config has no results.
    """
    for table in build_tables(inputs, settings=settings, experiment=experiment):
        write_table(table, folder)


def build_tables(inputs: Inputs, *, settings: Settings, experiment: str) -> tuple[Table, ...]:
    """All tables in the order of `TABLES`."""
    design = settings.experiments[experiment]
    systems = list_systems(settings, design)
    results, metrics = read_results(inputs, alpha=settings.statistics.alpha), read_metrics(inputs)
    _require_complete(results, metrics, systems, settings)
    return (
        ablation_table(
            results,
            metrics,
            systems=systems,
            settings=settings,
            experiment=design,
            lower_bounds=read_lower_bounds(inputs),
            combined_weight=read_combined_weight(inputs),
        ),
        interval_table(results, systems=systems, settings=settings),
        seed_table(metrics, systems=systems, settings=settings),
        probability_table(metrics, systems=systems),
        corpus_table(Path(inputs.corpus) / "statistics.json"),
        cost_table(read_costs(inputs), systems=systems, networks=list_networks(settings, design)),
    )


def _require_complete(
    results: pl.DataFrame, metrics: pl.DataFrame, systems: tuple[System, ...], settings: Settings
) -> None:
    for where, table in (("intervals.parquet", results), ("metrics.json", metrics)):
        known = table.get_column("system").unique().to_list()
        for system in systems:
            if system.name not in known:
                raise InputError(
                    where, expected=f"results of the system {system.name!r}", got=f"{', '.join(sorted(known))}",
                    fix="Run its evaluation and the statistics again.",
                )  # fmt: skip
    for metric in settings.paper.metrics:
        measured = metrics.get_column("metric").unique().to_list()
        if metric not in measured:
            raise InputError(
                f"paper.metrics: {metric}", expected="a metric of metrics.json", got="an unknown name",
                fix=nearest(metric, measured),
            )  # fmt: skip
