"""The notes below the tables. Their text is in notes.j2; the functions here give it the values that it asks for."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import polars as pl

from plant.paper.experiment.data import ExperimentData
from plant.paper.inputs import read_combined_weight, read_lower_bounds
from plant.paper.render import template
from plant.paper.systems import budget_notes
from plant.paper.wording import MINUS, metric_titles


def notes_of(table: str, data: ExperimentData, **values: Any) -> tuple[str, ...]:
    """The notes of a table. A note that its values do not call for is left out."""
    text = template(__package__, "notes.j2", metric_titles=metric_titles).render(table=table, data=data, **values)
    return tuple(" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip())


def ablation_notes(data: ExperimentData) -> tuple[str, ...]:
    """Procedure, seeds, budgets, threshold, and the definitions of the metrics that are columns."""
    metrics = data.settings.paper.metrics
    networks = [system.name for system in data.systems if system.kind != "no network"]
    bounds = read_lower_bounds(data.inputs)
    marked = set(data.results.filter("anti_conservative")["metric"])
    measured = set(data.results["metric"])
    return notes_of(
        "ablation",
        data,
        seeds=data.metrics.filter(pl.col("system").is_in(networks))["seed"].n_unique(),
        weight=read_combined_weight(data.inputs),
        titles={system.name: system.title for system in data.systems},
        budgets=budget_notes(data.settings, data.experiment, data.systems, data.reference.name),
        over_resamples=[metric for metric in metrics if metric in marked],
        thresholds=data.metrics.filter(metric="threshold")["value"].drop_nulls().to_list(),
        minus=MINUS,
        lower_bounds=[metric for metric in metrics if any(fnmatch(metric, bound) for bound in bounds)],
        without_interval=[metric for metric in metrics if metric not in measured],
    )
