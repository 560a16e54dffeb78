"""A designed experiment: every difference with its interval, what the factors change, and what both sides run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.ground.settings import Cell, Experiment, Settings, Study
from plant.paper.figures.study import axis_figure, effect_figure
from plant.paper.inputs import read_table
from plant.paper.pages import write_page
from plant.paper.render import Table, TableCell, breaks, markdown_escape, row_of, template
from plant.paper.systems import System, find_system
from plant.paper.wording import interval, metric_title, p_equals, percent
from plant.statistics import crossed
from plant.statistics.factors import factor_effects, holm

COLUMNS = tuple(crossed.SCHEMA.names)
_FACTOR_COLUMNS: dict[str, Any] = (
    dict.fromkeys(("group", "factor", "level", "baseline", "metric"), pl.String)
    | dict.fromkeys(("change", "error", "degrees", "low", "high", "p"), pl.Float64)
)  # fmt: skip


@dataclass(frozen=True)
class StudyResults:
    """The numbers of a study. P-values are corrected (`p_holm`) over all rows and metrics of a table."""

    settings: Settings
    study: Study
    effects: pl.DataFrame
    """One row per cell and metric: `cell` (its place), `group`, `row`, `experiment`, COLUMNS, `p_holm`."""
    factors: pl.DataFrame
    """One row per group, factor, level and metric: the change of the effect against the first level."""


def write_study(settings: Settings, name: str, contrasts: Mapping[str, Path], folder: Path) -> None:
    """Write tables/{effects,factors}.{csv,md,tex}, figures/effects.{pdf,png} and page.md.

    Args:
        contrasts: experiment -> contrasts.parquet of the room statistics.
    """
    study, statistics = settings.studies[name], settings.statistics
    results = read_study(settings, study, contrasts)
    if study.axis is None:
        draw = partial(effect_figure, results.effects, statistics, metrics=study.metrics, question=study.question)
    else:
        draw = partial(axis_figure, results.effects, statistics, study)
    datasets = dict.fromkeys(settings.experiments[name].dataset for cell in study.cells for name, _ in cell.sides)
    write_page(
        folder, (effects_table(results), factors_table(results)), {"effects": draw}, __package__, "page.md.j2",
        study=study, answers=[answer for metric in study.metrics if (answer := _answer(results, metric))],
        alpha=statistics.alpha, design=design_of(settings, study),
        synthetic=[dataset for dataset in datasets if settings.is_stand_in(dataset)],
    )  # fmt: skip


def read_study(settings: Settings, study: Study, contrasts: Mapping[str, Path]) -> StudyResults:
    """Read the contrasts of every cell, correct their p-values, and estimate what the factors change."""
    rows = []
    for place, cell in enumerate(study.cells):
        table = read_table(Path(contrasts[cell.experiment]), COLUMNS)
        own = table.filter(pl.col("metric").is_in(study.metrics), system=cell.system, against=cell.opponent)
        keys = {"cell": place, "group": cell.group, "row": title_of(cell), "experiment": cell.experiment}
        rows.append(own.select(*(pl.lit(value).alias(key) for key, value in keys.items()), *COLUMNS))
    effects = _with_holm(pl.concat(rows))
    return StudyResults(settings, study, effects, _factors(study, effects, settings.statistics.confidence))


def _with_holm(table: pl.DataFrame) -> pl.DataFrame:
    """Add `p_holm`, corrected over all rows and metrics: over everything that the table claims."""
    p = table["p"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return table.with_columns(pl.Series("p_holm", holm(p), dtype=pl.Float64).fill_nan(None))


def _factors(study: Study, effects: pl.DataFrame, confidence: float) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for group in dict.fromkeys(cell.group for cell in study.cells):
        members = [place for place, cell in enumerate(study.cells) if cell.group == group and cell.levels]
        for metric in study.metrics:
            here = effects.filter(pl.col("cell").is_in(members), pl.col("p").is_not_null(), metric=metric)
            if here.height < 2:
                continue
            errors = np.hypot(here["error_documents"].to_numpy(), here["error_seeds"].to_numpy())
            levels = [study.cells[place].levels for place in here["cell"]]
            for each in factor_effects(levels, here["difference"].to_numpy(), errors, confidence):
                names = {"level": plain(each.level), "baseline": plain(each.baseline)}
                rows.append({"group": group, "metric": metric} | asdict(each) | names)
    return _with_holm(pl.DataFrame(rows, schema=_FACTOR_COLUMNS))


def effects_table(results: StudyResults) -> Table:
    """One row per cell: the difference in each metric with its interval. Bold: significant after Holm's correction."""
    study, statistics = results.study, results.settings.statistics
    body = []
    for place, cell in enumerate(study.cells):
        rows = {row["metric"]: row for row in results.effects.filter(cell=place).iter_rows(named=True)}
        first = rows[study.metrics[0]]
        values = f"{percent(first['value'])} / {percent(first['value_against'])}"
        differences = (_cell(rows[metric], "difference", statistics.alpha) for metric in study.metrics)
        body.append(row_of(cell.group, title_of(cell), f"{first['n_seeds']}", values, *differences))
    return Table(
        name="effects",
        title=f"{study.question} Differences in points (×100)",
        columns=(
            "Group", "Setting", "Seeds", f"{metric_title(study.metrics[0])}, both", *map(metric_title, study.metrics),
        ),
        rows=tuple(body),
        data=results.effects,
        notes=(
            (f"Difference [{100 * statistics.confidence:g}% interval]: mean over seeds; the interval covers other "
            "training seeds and other test documents (Student's t, Satterthwaite's degrees of freedom)."),
            f"Bold: p < {statistics.alpha:g} after Holm's correction over {_tested(results.effects)}.",
        ),
        rules=breaks([cell.group for cell in study.cells]),
        text_columns=2,
    )  # fmt: skip


def _tested(effects: pl.DataFrame) -> str:
    """What the correction counts. Differences of one seed, or without a value, have no p-value."""
    tested = effects["p"].count()
    return f"all {tested} differences" if tested == effects.height else f"the {tested} differences with a p-value"


def factors_table(results: StudyResults) -> Table:
    """How much each level of each factor changes the differences of its group."""
    alpha, keys = results.settings.statistics.alpha, ["group", "factor", "level", "baseline"]
    body = []
    for (group, factor, level, baseline), own in results.factors.group_by(keys, maintain_order=True):
        rows = {row["metric"]: row for row in own.iter_rows(named=True)}
        changes = (_cell(rows[metric], "change", alpha) if metric in rows else "" for metric in results.study.metrics)
        body.append(row_of(str(group), str(factor), f"{level} against {baseline}", *changes))
    return Table(
        name="factors",
        title="What each factor changes: by how many points the difference above grows",
        columns=("Group", "Factor", "Level", *map(metric_title, results.study.metrics)),
        rows=tuple(body),
        data=results.factors,
        notes=(
            ("Least squares over the rows of a group, main effects only. The error is the larger of two: from the "
            "rows' own errors, taken as independent, and from the residuals (lack of fit), with their degrees of "
            "freedom. Factors that the design cannot tell apart have no row."),
            f"Bold: p < {alpha:g} after Holm's correction over all {results.factors.height} changes.",
        ),
        text_columns=3,
    )  # fmt: skip


def _cell(row: Mapping[str, Any], value: str, alpha: float) -> TableCell:
    significant = row["p_holm"] is not None and row["p_holm"] < alpha
    return TableCell(percent(row[value], signed=True), detail=interval(row["low"], row["high"]), bold=significant)


def _answer(results: StudyResults, metric: str) -> dict[str, Any] | None:
    """The sentence of a metric: its outcomes and its extremes; None without a value."""
    here = results.effects.filter(metric=metric).drop_nulls("difference").sort("difference")
    if here.is_empty():
        return None
    higher, lower, undecided = count_outcomes(here, results.settings.statistics.alpha)
    least, most = (
        f"{percent(row['difference'], signed=True)} ({row['row']}, p {p_equals(row['p_holm'])})"
        for row in (here.row(0, named=True), here.row(-1, named=True))
    )
    return {
        "metric": metric_title(metric), "settings": here.height, "higher": higher, "lower": lower, "open": undecided,
        "least": least, "most": most,
    }  # fmt: skip


def count_outcomes(rows: pl.DataFrame, alpha: float) -> tuple[int, int, int]:
    """Differences that are significantly above 0, significantly below 0, and the rest (Holm's correction)."""
    significant = rows.filter(pl.col("p_holm") < alpha)["difference"]
    higher, lower = int((significant > 0).sum()), int((significant < 0).sum())
    return higher, lower, rows.height - higher - lower


def title_of(cell: Cell) -> str:
    """How a row is printed.

    >>> title_of(Cell(experiment="e", system="a", against="b", levels={"passes": 8.0, "sigma": "logits"}))
    'passes 8, sigma logits'
    """
    levels = ", ".join(f"{name} {plain(level)}" for name, level in cell.levels.items())
    return cell.title if cell.title is not None else levels or f"{cell.experiment}: {cell.system}"


def plain(level: str | float) -> str:
    """A level as it is printed. A whole number has no decimals."""
    return f"{level:g}" if isinstance(level, float) else level


def sides_of(settings: Settings, cell: Cell) -> list[tuple[Experiment, System]]:
    """Both systems of a row, each with its experiment."""
    named = [(settings.experiments[name], system) for name, system in cell.sides]
    return [(experiment, find_system(settings, experiment, system)) for experiment, system in named]


def patience(settings: Settings, cell: Cell) -> int | None:
    """Epochs without a better validation value after which Stage 2 of both sides stops; None if a side runs them all,
    or if the two differ."""
    sides = sides_of(settings, cell)
    values = {settings.stage2_of(experiment, system.name).patience for experiment, system in sides if system.epochs}
    return values.pop() if len(values) == 1 else None


def is_equal(settings: Settings, cell: Cell) -> bool:
    """Whether both sides of a row have the same compute: the same number of epochs, or the same patience. True if a
    side has no network."""
    epochs = {sum(system.epochs) for _, system in sides_of(settings, cell) if system.epochs}
    return len(epochs) < 2 or patience(settings, cell) is not None


def design_of(settings: Settings, study: Study) -> str:
    """Markdown: what the rows have in common, and a table with one row per cell."""
    networks = {
        (experiment.dataset, experiment.backbone, settings.variants[system.name].network, seed)
        for cell in study.cells
        for experiment, system in sides_of(settings, cell)
        if system.epochs
        for seed in settings.experiments[cell.experiment].seeds
    }
    return template(__package__, "design.md.j2").render(
        study=study,
        networks=len(networks),
        patience={waits for cell in study.cells if (waits := patience(settings, cell)) is not None},
        unequal=[title_of(cell) for cell in study.cells if not is_equal(settings, cell)],
        title_of=title_of,
        escape=markdown_escape,
        sides_of=partial(sides_of, settings),
    )
