"""A designed experiment: every difference with its interval over seeds and documents, and what the factors change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.ground.errors import InputError
from plant.ground.files import write_text
from plant.ground.settings import Settings, Study
from plant.paper.figures.study import axis_figure, effect_figure
from plant.paper.figures.style import look, save
from plant.paper.inputs import read_table
from plant.paper.render import Table, TableCell, row_of, template, to_markdown, write_table
from plant.paper.studies.design import design_of, plain, title_of
from plant.paper.wording import interval, metric_title, p_equals, percent
from plant.statistics.factors import factor_effects, holm

COLUMNS = (
    "system", "against", "metric", "value", "value_against", "difference", "error_documents", "error_seeds",
    "n_seeds", "degrees", "low", "high", "p",
)  # fmt: skip
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
        settings: the whole config.
        name: of the study.
        contrasts: experiment -> contrasts.parquet of the room statistics.
        folder: of the study.

    Raises:
        InputError: a file lacks a contrast.
    """
    study = settings.studies[name]
    results = read_study(settings, study, contrasts)
    tables = (effects_table(results), factors_table(results))
    for table in tables:
        write_table(table, Path(folder) / "tables")
    with look():
        if study.axis is None:
            figure = effect_figure(results.effects, settings.statistics, metrics=study.metrics, question=study.question)
        else:
            figure = axis_figure(results.effects, settings.statistics, study)
        save(figure, Path(folder) / "figures" / "effects")
    write_text(Path(folder) / "page.md", _page(results, tables))


def read_study(settings: Settings, study: Study, contrasts: Mapping[str, Path]) -> StudyResults:
    """Read the contrasts of every cell, correct their p-values, and estimate what the factors change."""
    rows: list[pl.DataFrame] = []
    for place, cell in enumerate(study.cells):
        path = Path(contrasts[cell.experiment])
        own = read_table(path, COLUMNS).filter(
            pl.col("metric").is_in(study.metrics), system=cell.system, against=cell.opponent
        )
        if own.height != len(study.metrics):
            raise InputError(
                str(path), expected=f"{cell.system} against {cell.opponent} for {', '.join(study.metrics)}",
                got=f"{own.height} row(s)", fix="Delete the file and run again.",
            )  # fmt: skip
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
        differences = (
            _difference(rows[metric], rows[metric]["difference"], statistics.alpha) for metric in study.metrics
        )
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
            f"Bold: p < {statistics.alpha:g} after Holm's correction over all {results.effects.height} differences.",
        ),
        rules=tuple(
            place for place in range(1, len(study.cells)) if study.cells[place].group != study.cells[place - 1].group
        ),
        text_columns=2,
    )  # fmt: skip


def factors_table(results: StudyResults) -> Table:
    """How much each level of each factor changes the differences of its group."""
    alpha, keys = results.settings.statistics.alpha, ["group", "factor", "level", "baseline"]
    body = []
    for (group, factor, level, baseline), own in results.factors.group_by(keys, maintain_order=True):
        rows = {row["metric"]: row for row in own.iter_rows(named=True)}
        changes = (
            _difference(rows[metric], rows[metric]["change"], alpha) if metric in rows else ""
            for metric in results.study.metrics
        )
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


def _difference(row: Mapping[str, Any], value: float | None, alpha: float) -> TableCell:
    significant = row["p_holm"] is not None and row["p_holm"] < alpha
    return TableCell(percent(value, signed=True), detail=interval(row["low"], row["high"]), bold=significant)


def _page(results: StudyResults, tables: tuple[Table, ...]) -> str:
    """Question, answer in counts, figure, tables and design as one Markdown page."""
    page = template(__package__, "page.md.j2").render(
        study=results.study,
        answers=[answer for metric in results.study.metrics if (answer := _answer(results, metric))],
        alpha=results.settings.statistics.alpha,
        tables=tables,
        markdown=to_markdown,
        design=design_of(results.settings, results.study),
    )
    return f"{page.rstrip()}\n"


def _answer(results: StudyResults, metric: str) -> dict[str, Any] | None:
    """In how many settings a metric is higher or lower, and its extremes; None without a value."""
    here = results.effects.filter(metric=metric).drop_nulls("difference").sort("difference")
    if here.is_empty():
        return None
    significant = here.filter(pl.col("p_holm") < results.settings.statistics.alpha)["difference"]
    least, most = (
        f"{percent(row['difference'], signed=True)} ({row['row']}, p {p_equals(row['p_holm'])})"
        for row in (here.row(0, named=True), here.row(-1, named=True))
    )
    return {
        "metric": metric_title(metric), "settings": here.height, "higher": int((significant > 0).sum()),
        "lower": int((significant < 0).sum()), "open": here.height - len(significant), "least": least, "most": most,
    }  # fmt: skip
