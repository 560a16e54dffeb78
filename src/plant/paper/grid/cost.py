"""What everything cost: time, memory, weights, energy of every stage for each dataset and backbone, from sidecars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plant.ground.settings import NO_PRETRAINING, Settings
from plant.paper.costs import largest, mean, mean_joules
from plant.paper.figures.cost import cost_figure
from plant.paper.figures.style import look, save
from plant.paper.grid.cost_records import MIG, STAGES, Costs, Place, read_grid_costs
from plant.paper.inputs import STAGE1, STAGE2, Inputs
from plant.paper.render import Table, TableCell, write_table
from plant.paper.systems import find_roles
from plant.paper.wording import MISSING, energy, megabytes, seconds, weights

STAND_IN = "†"
PLANTING = "MIG + Stage 1"
_COLUMNS = (
    "Dataset", "Backbone", "Stage", "Runs", "Time a run", "of Stage 2", "Time in all", "CPU time a run", "Peak memory",
    "Peak device memory", "Weights trained", "Energy a run", "Tokens/s",
)  # fmt: skip
_NOTES = (
    "Means over runs (seeds and recipes); memory is the largest of the runs. A run that several share is counted once.",
    "Time is that of the job, without the start of Python.",
    "Tokens/s: tokens of the training split x epochs / time of the job with validation; to predict, of val and test.",
    f"{PLANTING}: what planting costs on top of Stage 2, for the planted system of the first experiment that has one.",
)


@dataclass(frozen=True)
class Planting:
    """What planting costs beside Stage 2, for one dataset and backbone. Seconds and joules of one run."""

    dataset: str
    backbone: str
    mig: float
    stage1: float
    stage2: float
    joules: float | None
    """Of MIG and Stage 1, devices and host; None where a part is not known."""

    @property
    def share(self) -> float:
        """MIG and Stage 1 against Stage 2."""
        return (self.mig + self.stage1) / self.stage2


def write_costs(settings: Settings, paths: Mapping[str, Inputs], folder: Path) -> None:
    """Write tables/cost.{csv,md,tex} and figures/cost.{pdf,png} into `folder`, from whatever has run.

    Args:
        settings: the whole config.
        paths: experiment -> its paths. Files may be missing: what is missing is said below the table.
        folder: results/paper.
    """
    costs = read_grid_costs(settings, paths)
    plantings = tuple(find_plantings(settings, paths, costs))
    table = grid_cost_table(settings, costs, plantings)
    write_table(table, Path(folder) / "tables")
    shares = {(planting.dataset, planting.backbone): planting.share for planting in plantings}
    with look():
        save(cost_figure(_drawn(settings, paths, costs), shares=shares), Path(folder) / "figures" / "cost")


def _drawn(settings: Settings, paths: Mapping[str, Inputs], costs: Costs) -> pl.DataFrame:
    """Runs that the figure shows: those of experiments with a report, and all if there are none.

    The points of a sweep over sizes stand in the table only: they would push the others off the page.
    """
    reported = [settings.experiments[name] for name in paths if settings.experiments[name].report]
    pairs = {(experiment.dataset, experiment.backbone) for experiment in reported}
    keys = costs.frame.select("dataset", "backbone").rows()
    shown = costs.frame.filter(pl.Series([key in pairs for key in keys], dtype=pl.Boolean))
    return shown if shown.height else costs.frame


def find_plantings(settings: Settings, paths: Mapping[str, Inputs], costs: Costs) -> Iterator[Planting]:
    """For each dataset and backbone the cost of planting, if MIG, Stage 1 and Stage 2 of a planted system have run."""
    seen, frame = set(), costs.frame
    for name in paths:
        experiment = settings.experiments[name]
        pair = (experiment.dataset, experiment.backbone)
        planted = find_roles(settings, experiment).planted
        if pair in seen or planted is None:
            continue
        variant = settings.variants[planted.name]
        own = frame.filter(dataset=pair[0], backbone=pair[1])
        parts = [
            own.filter(stage=MIG), own.filter(stage=STAGE1, name=variant.pretraining),
            own.filter(stage=STAGE2, name=variant.network),
        ]  # fmt: skip
        if all(part.height for part in parts) and variant.pretraining != NO_PRETRAINING:
            seen.add(pair)
            mig, stage1, stage2 = (mean(part, "wall_seconds") or 0.0 for part in parts)
            joules = [mean_joules(part) for part in parts[:2]]
            total = None if None in joules else sum(value for value in joules if value is not None)
            yield Planting(*pair, mig, stage1, stage2, total)


def grid_cost_table(settings: Settings, costs: Costs, plantings: Sequence[Planting]) -> Table:
    """One row a dataset, backbone and stage; what planting costs after the stages that it consists of."""
    frame, by_pair = costs.frame, {(planting.dataset, planting.backbone): planting for planting in plantings}
    missing = Counter((place.dataset, place.backbone, place.stage) for place in costs.missing)
    rows: list[tuple[TableCell, ...]] = []
    rules: list[int] = []
    for (dataset, backbone), pair in frame.group_by("dataset", "backbone", maintain_order=True):
        rules += [len(rows)] if rows else []
        planting = by_pair.get((str(dataset), str(backbone)))
        for stage in STAGES:
            runs = pair.filter(stage=stage)
            if runs.height:
                rows.append(_row(settings, runs, runs.height + missing[str(dataset), str(backbone), stage], planting))
            if stage == STAGE1 and planting is not None:
                rows.append(_planting_row(settings, planting))
    return Table(
        name="cost",
        title="Cost of every stage, dataset and backbone",
        columns=_COLUMNS,
        rows=tuple(rows),
        data=frame,
        notes=(*_NOTES, *_said(settings, costs)),
        rules=tuple(rules),
        text_columns=3,
    )


def _row(settings: Settings, runs: pl.DataFrame, expected: int, planting: Planting | None) -> tuple[TableCell, ...]:
    first, count = runs.row(0, named=True), runs.height
    part = {MIG: planting.mig, STAGE1: planting.stage1} if planting else {}
    share = part[first["stage"]] / planting.stage2 if planting and first["stage"] in part else None
    trained = runs.get_column("trained_parameters").drop_nulls().to_list()
    speed = mean(runs, "tokens_per_second")
    return tuple(map(TableCell, (
        title(settings, first["dataset"]), first["backbone"] or MISSING, first["stage"],
        f"{count}" if count == expected else f"{count} of {expected}", seconds(mean(runs, "wall_seconds")),
        _percent(share), seconds(float(runs.get_column("wall_seconds").sum())), seconds(mean(runs, "cpu_seconds")),
        megabytes(largest(runs, "peak_host_mb")), megabytes(largest(runs, "peak_device_mb")), weights(trained),
        energy(mean_joules(runs)), MISSING if speed is None else f"{speed:,.0f}",
    )))  # fmt: skip


def _planting_row(settings: Settings, planting: Planting) -> tuple[TableCell, ...]:
    took = seconds(planting.mig + planting.stage1)
    texts = (title(settings, planting.dataset), planting.backbone, PLANTING, "", took, _percent(planting.share),
             *[""] * 5, energy(planting.joules), "")  # fmt: skip
    return tuple(TableCell(text, bold=place in (2, 5)) for place, text in enumerate(texts))


def title(settings: Settings, dataset: str) -> str:
    """A dataset's name, marked where it is a synthetic stand-in."""
    return dataset + (STAND_IN if settings.is_stand_in(dataset) else "")


def _said(settings: Settings, costs: Costs) -> Iterator[str]:
    """Notes that depend on what has run: stand-ins, devices, energy, and what is missing."""
    frame = costs.frame
    if any(frame.get_column("stand_in")):
        yield f"{STAND_IN} Synthetic text in the corpus' raw form: its cost says nothing about the corpus."
    devices = frame.filter(pl.col("device").is_not_null()).get_column("device").unique(maintain_order=True)
    if len(devices):
        yield f"Devices: {', '.join(sorted(devices))}."
    told = {kind: len(frame.get_column(f"energy_{kind}_joules").drop_nulls()) for kind in ("device", "host")}
    if frame.height:
        yield (
            f"Energy is the sum of the parts that a run tells: {told['device']} of {frame.height} runs tell that of "
            f"their devices, {told['host']} that of the host's processors."
        )
    yield from _missing(settings, costs.missing)


def _missing(settings: Settings, places: Sequence[Place]) -> Iterator[str]:
    for dataset, backbone in dict.fromkeys((place.dataset, place.backbone) for place in places):
        stages = Counter(place.stage for place in places if (place.dataset, place.backbone) == (dataset, backbone))
        names = ", ".join(f"{stage} ({stages[stage]})" for stage in STAGES if stage in stages)
        yield f"Has not run: {title(settings, dataset)}{f', {backbone}' if backbone else ''}: {names}."


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:,.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"
