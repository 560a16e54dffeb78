"""A designed experiment: every difference with its interval over seeds and documents, and what the factors change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plant.ground.errors import InputError
from plant.ground.files import write_text
from plant.ground.settings import Settings, Study
from plant.paper.figures.study import effect_figure
from plant.paper.figures.style import look, save
from plant.paper.inputs import read_table
from plant.paper.render import Table, TableCell, to_markdown, write_table
from plant.paper.studies.design import design_of, plain, title_of
from plant.paper.wording import interval, metric_title, p_equals, percent
from plant.statistics.factors import factor_effects, holm

COLUMNS = (
    "system", "against", "metric", "value", "value_against", "difference", "error_documents", "error_seeds",
    "n_seeds", "degrees", "low", "high", "p",
)  # fmt: skip
_FACTOR_SCHEMA = {
    "group": pl.String, "factor": pl.String, "level": pl.String, "baseline": pl.String, "metric": pl.String,
    "change": pl.Float64, "error": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64,
    "p_holm": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Results:
    """The numbers of a study.

    Attributes:
        effects: one row a cell and metric: `cell` (its place), `group`, `row`, `experiment`, then COLUMNS and `p_holm`,
            corrected over all rows of a metric.
        factors: one row a group, factor, level and metric; `p_holm` is corrected over all rows of a metric.
    """

    effects: pl.DataFrame
    factors: pl.DataFrame


def write_study(settings: Settings, name: str, contrasts: Mapping[str, Path], folder: Path) -> None:
    """Write tables/{effects,factors}.{csv,md,tex}, figures/effects.{pdf,png} and page.md.

    Args:
        settings: the whole config.
        name: of the study.
        contrasts: experiment -> contrasts.parquet of the room statistics.
        folder: of the study.

    Raises:
        InputError: a contrast is missing in its file.
    """
    study = settings.studies[name]
    results = read_study(settings, study, contrasts)
    tables = (effects_table(study, results, settings), factors_table(study, results, settings))
    for table in tables:
        write_table(table, Path(folder) / "tables")
    with look():
        save(
            effect_figure(
                results.effects, metrics=study.metrics, question=study.question, alpha=settings.statistics.alpha,
                confidence=settings.statistics.confidence,
            ),
            Path(folder) / "figures" / "effects",
        )  # fmt: skip
    write_text(Path(folder) / "page.md", _page(settings, study, results, tables))


def read_study(settings: Settings, study: Study, contrasts: Mapping[str, Path]) -> Results:
    """Read the contrasts of every cell, correct their p-values, and estimate what the factors change."""
    rows: list[pl.DataFrame] = []
    for place, cell in enumerate(study.cells):
        table = read_table(Path(contrasts[cell.experiment]), COLUMNS).select(COLUMNS)
        own = table.filter(pl.col("metric").is_in(study.metrics), system=cell.system, against=cell.opponent)
        if own.height != len(study.metrics):
            raise InputError(
                str(contrasts[cell.experiment]),
                expected=f"{cell.system} against {cell.opponent} for {', '.join(study.metrics)}",
                got=f"{own.height} row(s)", fix="Delete the file and run again.",
            )  # fmt: skip
        keys = {"cell": place, "group": cell.group, "row": title_of(cell), "experiment": cell.experiment}
        rows.append(own.with_columns(pl.lit(value).alias(key) for key, value in keys.items()))
    effects = _with_holm(pl.concat(rows).select("cell", "group", "row", "experiment", *COLUMNS))
    return Results(effects, _factors(study, effects, settings.statistics.confidence))


def _with_holm(table: pl.DataFrame) -> pl.DataFrame:
    """Add `p_holm`, corrected over the rows of each metric; the order of rows is kept."""
    corrected = np.full(table.height, np.nan)
    metric = table["metric"].to_numpy()
    p = table["p"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    for name in dict.fromkeys(metric.tolist()):
        corrected[metric == name] = holm(p[metric == name])
    return table.with_columns(pl.Series("p_holm", corrected).fill_nan(None))


def _factors(study: Study, effects: pl.DataFrame, confidence: float) -> pl.DataFrame:
    rows = []
    for group in dict.fromkeys(cell.group for cell in study.cells):
        members = [place for place, cell in enumerate(study.cells) if cell.group == group and cell.levels]
        for metric in study.metrics:
            here = effects.filter(pl.col("cell").is_in(members), pl.col("metric") == metric, pl.col("p").is_not_null())
            if here.height < 2:
                continue
            errors = np.hypot(here["error_documents"].to_numpy(), here["error_seeds"].to_numpy())
            levels = [study.cells[place].levels for place in here["cell"]]
            for each in factor_effects(levels, here["difference"].to_numpy(), errors, confidence):
                rows.append((
                    group, each.factor, plain(each.level), plain(each.baseline), metric, each.change, each.error,
                    each.low, each.high, each.p, None,
                ))  # fmt: skip
    return _with_holm(pl.DataFrame(rows, schema=_FACTOR_SCHEMA, orient="row"))


def effects_table(study: Study, results: Results, settings: Settings) -> Table:
    """One row a cell: the difference in each metric, with its interval; bold where Holm's correction leaves it."""
    body, rules, group = [], [], None
    for place, cell in enumerate(study.cells):
        rows = {row["metric"]: row for row in results.effects.filter(cell=place).iter_rows(named=True)}
        first = rows[study.metrics[0]]
        if group is not None and cell.group != group:
            rules.append(place)
        group = cell.group
        values = f"{percent(first['value'])} / {percent(first['value_against'])}"
        body.append((
            TableCell(cell.group), TableCell(title_of(cell)), TableCell(f"{first['n_seeds']}"), TableCell(values),
            *(_difference(rows[metric], settings.statistics.alpha) for metric in study.metrics),
        ))  # fmt: skip
    level = f"{100 * settings.statistics.confidence:g}%"
    return Table(
        name="effects",
        title=f"{study.question} Differences in points (×100)",
        columns=(
            "Group", "Setting", "Seeds", f"{metric_title(study.metrics[0])}, both", *map(metric_title, study.metrics),
        ),
        rows=tuple(body),
        data=results.effects,
        notes=(
            (f"Difference [{level} interval]: mean over seeds; the interval covers other training seeds and other test "
            "documents (Student's t, Satterthwaite's degrees of freedom)."),
            (f"Bold: p < {settings.statistics.alpha:g} after Holm's correction over the {len(study.cells)} rows of the "
            "column."),
        ),
        rules=tuple(rules),
        text_columns=2,
    )  # fmt: skip


def factors_table(study: Study, results: Results, settings: Settings) -> Table:
    """How much each level of each factor changes the differences of its group."""
    keys = ["group", "factor", "level", "baseline"]
    body = []
    for group, factor, level, baseline in results.factors.select(keys).unique(maintain_order=True).iter_rows():
        rows = {
            row["metric"]: row
            for row in results.factors.filter(group=group, factor=factor, level=level).iter_rows(named=True)
        }
        cells = [
            _difference(rows[metric] | {"difference": rows[metric]["change"]}, settings.statistics.alpha)
            if metric in rows
            else TableCell("")
            for metric in study.metrics
        ]
        body.append((TableCell(group), TableCell(factor), TableCell(f"{level} against {baseline}"), *cells))
    return Table(
        name="factors",
        title="What each factor changes: by how many points the difference above grows",
        columns=("Group", "Factor", "Level", *map(metric_title, study.metrics)),
        rows=tuple(body),
        data=results.factors,
        notes=(
            ("Least squares over the rows of a group, main effects only; errors from the rows' own errors, taken as "
            "independent. Factors that the design cannot tell apart have no row."),
            f"Bold: p < {settings.statistics.alpha:g} after Holm's correction over the rows of the column.",
        ),
        text_columns=3,
    )  # fmt: skip


def _difference(row: Mapping[str, float | None], alpha: float) -> TableCell:
    sure = row["p_holm"] is not None and row["p_holm"] < alpha
    low, high = row["low"], row["high"]
    detail = "" if low is None or high is None else interval(low, high)
    return TableCell(percent(row["difference"], signed=True), detail=detail, bold=sure)


def _page(settings: Settings, study: Study, results: Results, tables: tuple[Table, ...]) -> str:
    """Question, answer in counts, design, tables and figure as one Markdown page."""
    lines = [f"# {study.question}", "", *_answer(study, results, settings), "", "![Effects](figures/effects.png)", ""]
    shown = [table for table in tables if table.rows]  # a study without factors has none to show
    lines += ["## Results", "", *(part for table in shown for part in (to_markdown(table), ""))]
    lines += ["## Design", "", *design_of(settings, study)]
    return "\n".join(lines).rstrip() + "\n"


def _answer(study: Study, results: Results, settings: Settings) -> Iterator[str]:
    alpha = settings.statistics.alpha
    for metric in study.metrics:
        here = results.effects.filter(metric=metric).drop_nulls("difference")
        if not here.height:
            continue
        sure = here.filter(pl.col("p_holm") < alpha)
        up, down = sure.filter(pl.col("difference") > 0), sure.filter(pl.col("difference") < 0)
        most = here.sort("difference").row(-1, named=True)
        least = here.sort("difference").row(0, named=True)
        yield (
            f"- {metric_title(metric)}: of {here.height} settings it is higher in {up.height}, lower in {down.height}, "
            f"and not told apart in {here.height - sure.height} (Holm, {alpha:g}). From "
            f"{percent(least['difference'], signed=True)} ({least['row']}, p {p_equals(least['p_holm'])}) to "
            f"{percent(most['difference'], signed=True)} ({most['row']}, p {p_equals(most['p_holm'])})."
        )
