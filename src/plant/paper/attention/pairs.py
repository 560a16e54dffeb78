"""Reads the tables of an experiment's networks, estimates means and differences over their pairs, and prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from plant.ground.errors import InputError
from plant.ground.settings import Settings
from plant.paper.inputs import read_table
from plant.paper.render import TableCell
from plant.paper.systems import System, list_systems
from plant.paper.wording import MISSING, OVER, fixed, interval, percent
from plant.statistics.pairs import Estimate, estimate, pair_values
from plant.statistics.resampling import draw
from plant.statistics.systems import MetricValues

POINT_TITLES = {
    "before_stage_1": "random weights",
    "before_stage_2": "start of Stage 2",
    "after_stage_2": "after Stage 2",
}


@dataclass(frozen=True)
class Pairs:
    """The measured pairs of an experiment."""

    settings: Settings
    experiment: str
    systems: tuple[System, ...]
    """Its networks in table order, the reference first."""
    values: Mapping[tuple[str, str, str], MetricValues]
    """(system, scorer or point, metric) -> its values, on the same documents and resamples for all."""
    documents: int
    pairs: int
    """Number of pairs of a document and a label."""

    @property
    def reference(self) -> System:
        return self.systems[0]

    @property
    def level(self) -> str:
        """`95%`, of the intervals."""
        return f"{100 * self.settings.statistics.confidence:g}%"

    def means(self, where: str) -> str:
        """What a table holds, as the start of a note. `where`: the labels of the pairs."""
        several = max(len(values.by_seed) for values in self.values.values()) > 1
        return (
            f"Means [{self.level} interval {OVER[several]}] over {self.pairs} pairs of a document and {where} "
            f"{self.documents} documents"
        )

    def estimate(self, system: str, scorer: str, metric: str) -> Estimate | None:
        """A mean with its interval; None if no pair has a value."""
        return self._estimate(self.values.get((system, scorer, metric)))

    def difference(self, ours: tuple[str, str], theirs: tuple[str, str], metric: str) -> Estimate | None:
        """The first (system, scorer) minus the second, with its interval; None if one has no value."""
        first, second = (self.values.get((*side, metric)) for side in (ours, theirs))
        return self._estimate(None if first is None or second is None else first - second)

    def _estimate(self, values: MetricValues | None) -> Estimate | None:
        if values is None or not np.isfinite(values.by_seed).all():
            return None
        return estimate(values, self.settings.statistics.confidence)


def read_pairs(
    settings: Settings, experiment: str, tables: Mapping[str, Sequence[Path]], *, scorer: str, metrics: Sequence[str]
) -> Pairs:
    """Read the tables of all networks.

    Args:
        tables: system -> its table for each seed; the columns document, cluster, label, `scorer` and the metrics are
            read.
        scorer: column of the point or scorer.

    Raises:
        InputError: a table is missing, or two were made on different pairs.
    """
    chosen = settings.experiments[experiment]
    names = sorted(tables, key=lambda name: name != chosen.reference)  # stable: the order of the table
    known = {system.name: system for system in list_systems(settings, chosen)}
    keys = ("document", "cluster", "label")
    first: pl.DataFrame | None = None
    sums: dict[tuple[str, str, str], list[np.ndarray]] = {}
    for name in names:
        for path in tables[name]:
            table = read_table(Path(path), (*keys, scorer, *metrics))
            pairs = table.select(keys).unique().sort(keys)
            first = pairs if first is None else first
            if not first.equals(pairs):
                raise InputError(
                    str(path), expected=f"the pairs of document and label of {names[0]}", got="others",
                    fix="Delete it and run again.",
                )  # fmt: skip
            documents = first.select("document", "cluster").unique().sort("document")
            for place, metric, both in _sums(table, scorer, metrics, documents):
                sums.setdefault((name, place, metric), []).append(both)
    if first is None or not first.height:
        raise InputError(
            f"experiment {experiment}", expected="a network with a measured pair of document and label", got="none",
            fix="Name an experiment with variants on a dataset whose documents have labels of the training split.",
        )  # fmt: skip
    resamples = draw("bootstrap", np.unique(documents["cluster"], return_inverse=True)[1], settings.statistics)
    values = {}
    for key, parts in sums.items():
        totals, counts = np.stack(parts, axis=1)
        values[key] = pair_values(totals, counts, resamples)
    return Pairs(settings, experiment, tuple(known[name] for name in names), values, documents.height, first.height)


def _sums(
    table: pl.DataFrame, scorer: str, metrics: Sequence[str], documents: pl.DataFrame
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Scorer, metric, and (2, N): sums and counts of the pairs of each document."""
    for (name,), own in table.group_by([scorer], maintain_order=True):
        summed = own.group_by("document").agg(
            pl.col(metrics).sum().name.suffix(" sum"), pl.col(metrics).count().name.suffix(" count")
        )
        filled = documents.join(summed, on="document", how="left", maintain_order="left").fill_null(0)
        for metric in metrics:
            columns = (filled[f"{metric} {what}"].cast(pl.Float64).to_numpy() for what in ("sum", "count"))
            yield str(name), metric, np.stack(list(columns))


def bounds(own: Estimate, *, nats: bool = False) -> str:
    """The interval of a fraction ×100, or of nats with two digits."""
    return interval(own.low, own.high, 2, scale=1) if nats else interval(own.low, own.high)


def cell(own: Estimate | None, *, nats: bool = False, signed: bool = False) -> TableCell:
    """An estimate with its interval. A signed one is a difference: bold if its interval is on one side of 0."""
    if own is None:
        return TableCell(MISSING)
    value = fixed(own.value, 2, signed=signed) if nats else percent(own.value, signed=signed)
    return TableCell(value, detail=bounds(own, nats=nats), bold=signed and sure(own))


def sure(own: Estimate) -> bool:
    """Whether the interval of a difference is on one side of 0."""
    return own.low > 0 or own.high < 0


def fields(own: Estimate | None, name: str) -> dict[str, float | None]:
    """An estimate as columns, the value under `name`; None without one."""
    numbers = (None,) * 4 if own is None else (own.value, own.low, own.high, own.n_seeds)
    return dict(zip((name, "low", "high", "n_seeds"), numbers, strict=True))


def rows_of(pairs: Pairs, metrics: Sequence[str], scorers: Sequence[str]) -> pl.DataFrame:
    """One row for each system, scorer and metric: value, interval, and the difference to the reference system."""
    rows, reference = [], pairs.reference.name
    for system, scorer, metric in product((system.name for system in pairs.systems), scorers, metrics):
        own = pairs.estimate(system, scorer, metric)
        if own is not None:
            other = pairs.difference((system, scorer), (reference, scorer), metric) if system != reference else None
            beside = fields(other, "difference")
            rows.append({
                "experiment": pairs.experiment, "system": system, "scorer": scorer, "metric": metric,
                **fields(own, "value"), "reference": reference,
                "difference": beside["difference"], "diff_low": beside["low"], "diff_high": beside["high"],
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)
