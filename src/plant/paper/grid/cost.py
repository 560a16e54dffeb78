"""What everything cost: time, memory, weights and energy of every stage for each dataset and backbone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

from plant.ground.settings import NO_PRETRAINING, Settings
from plant.paper.costs import largest, mean, mean_joules
from plant.paper.figures.cost import cost_figure
from plant.paper.figures.style import look, save
from plant.paper.grid.cost_records import MIG, STAGES, Costs, read_grid_costs
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


class Planting(NamedTuple):
    """What planting costs beside Stage 2: seconds and joules of one run."""

    mig: float
    stage1: float
    stage2: float
    joules: float | None
    """Of MIG and Stage 1, devices and host; None where a part is not known."""

    @property
    def share(self) -> float:
        """MIG and Stage 1 against Stage 2."""
        return (self.mig + self.stage1) / self.stage2


Plantings = Mapping[tuple[str, str], Planting]
"""(dataset, backbone) -> what planting costs there."""


def write_costs(settings: Settings, paths: Mapping[str, Inputs], folder: Path) -> None:
    """Write tables/cost.{csv,md,tex} and figures/cost.{pdf,png} into `folder`, from whatever has run.

    Args:
        settings: the whole config.
        paths: experiment -> its paths. Files may be missing; notes below the table name the missing runs.
        folder: results/paper.
    """
    costs = read_grid_costs(settings, paths)
    plantings = find_plantings(settings, paths, costs.frame)
    write_table(grid_cost_table(settings, costs, plantings), Path(folder) / "tables")
    shares = {place: planting.share for place, planting in plantings.items()}
    with look():
        save(cost_figure(drawn(settings, paths, costs.frame), shares=shares), Path(folder) / "figures" / "cost")


def drawn(settings: Settings, paths: Mapping[str, Inputs], runs: pl.DataFrame) -> pl.DataFrame:
    """The runs that the figure shows: those of experiments with a report, or all where no such run is there.

    Sweeps over sizes are in the table only: in the figure they would leave no room for the others.
    """
    reported = [settings.experiments[name] for name in paths if settings.experiments[name].report]
    places = pl.DataFrame(
        [(experiment.dataset, experiment.backbone) for experiment in reported],
        schema={"dataset": pl.String, "backbone": pl.String}, orient="row",
    )  # fmt: skip
    shown = runs.join(places, on=["dataset", "backbone"], how="semi", maintain_order="left")
    return shown if shown.height else runs


def find_plantings(settings: Settings, paths: Mapping[str, Inputs], runs: pl.DataFrame) -> Plantings:
    """What planting costs, for each dataset and backbone where MIG and both stages of a planted system have run."""
    plantings: dict[tuple[str, str], Planting] = {}
    for name in paths:
        experiment = settings.experiments[name]
        place = (experiment.dataset, experiment.backbone)
        planted = find_roles(settings, experiment).planted
        if place in plantings or planted is None:
            continue
        variant = settings.variants[planted.name]
        own = runs.filter(dataset=place[0], backbone=place[1])
        mig = own.filter(stage=MIG)
        stage1 = own.filter(stage=STAGE1, name=variant.pretraining)
        stage2 = own.filter(stage=STAGE2, name=variant.network)
        if mig.height and stage1.height and stage2.height and variant.pretraining != NO_PRETRAINING:
            seconds = [mean(part, "wall_seconds") or 0.0 for part in (mig, stage1, stage2)]
            first, second = mean_joules(mig), mean_joules(stage1)
            joules = None if first is None or second is None else first + second
            plantings[place] = Planting(seconds[0], seconds[1], seconds[2], joules)
    return plantings


def grid_cost_table(settings: Settings, costs: Costs, plantings: Plantings) -> Table:
    """One row for each dataset, backbone and stage. What planting costs follows its stages."""
    missing = Counter((run.dataset, run.backbone, run.stage) for run in costs.missing)
    rows: list[tuple[TableCell, ...]] = []
    rules: list[int] = []
    for (dataset, backbone), own in costs.frame.group_by("dataset", "backbone", maintain_order=True):
        place = (str(dataset), str(backbone))
        planting = plantings.get(place)
        share_of = {MIG: planting.mig / planting.stage2, STAGE1: planting.stage1 / planting.stage2} if planting else {}
        rules += [len(rows)] if rows else []
        name = (title(settings, place[0]), place[1] or MISSING)
        for stage in STAGES:
            runs = own.filter(stage=stage)
            if runs.height:
                expected = runs.height + missing[(*place, stage)]
                rows.append(tuple(map(TableCell, (*name, stage, *_numbers(runs, expected, share_of.get(stage))))))
            if stage == STAGE1 and planting is not None:
                took = seconds(planting.mig + planting.stage1)
                texts = (*name, PLANTING, "", took, _percent(planting.share), *[""] * 5, energy(planting.joules), "")
                rows.append(tuple(TableCell(text, bold=column in (2, 5)) for column, text in enumerate(texts)))
    return Table(
        name="cost", title="Cost of every stage, dataset and backbone", columns=_COLUMNS, rows=tuple(rows),
        data=costs.frame, notes=(*_NOTES, *_notes(settings, costs)), rules=tuple(rules), text_columns=3,
    )  # fmt: skip


def _numbers(runs: pl.DataFrame, expected: int, share: float | None) -> tuple[str, ...]:
    """The columns of numbers of one stage."""
    speed = mean(runs, "tokens_per_second")
    return (
        f"{runs.height}" if runs.height == expected else f"{runs.height} of {expected}",
        seconds(mean(runs, "wall_seconds")), _percent(share), seconds(float(runs["wall_seconds"].sum())),
        seconds(mean(runs, "cpu_seconds")), megabytes(largest(runs, "peak_host_mb")),
        megabytes(largest(runs, "peak_device_mb")), weights(runs["trained_parameters"].drop_nulls().to_list()),
        energy(mean_joules(runs)), MISSING if speed is None else f"{speed:,.0f}",
    )  # fmt: skip


def title(settings: Settings, dataset: str) -> str:
    """A dataset's name, marked where it is a synthetic stand-in."""
    return dataset + (STAND_IN if settings.is_stand_in(dataset) else "")


def _notes(settings: Settings, costs: Costs) -> Iterator[str]:
    """Notes that depend on what has run: stand-ins, devices, energy, and what is missing."""
    frame = costs.frame
    if frame["stand_in"].any():
        yield f"{STAND_IN} Synthetic text in the corpus' raw form: its cost says nothing about the corpus."
    if devices := sorted(frame["device"].drop_nulls().unique()):
        yield f"Devices: {', '.join(devices)}."
    if frame.height:
        yield (
            f"Energy is the sum of the parts that a run tells: {frame['energy_device_joules'].count()} of "
            f"{frame.height} runs tell that of their devices, {frame['energy_host_joules'].count()} that of the host's "
            "processors."
        )
    missing: dict[tuple[str, str], Counter[str]] = {}
    for run in costs.missing:
        missing.setdefault((run.dataset, run.backbone), Counter())[run.stage] += 1
    for (dataset, backbone), stages in missing.items():
        names = ", ".join(f"{stage} ({stages[stage]})" for stage in STAGES if stage in stages)
        yield f"Has not run: {title(settings, dataset)}{f', {backbone}' if backbone else ''}: {names}."


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:,.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"
