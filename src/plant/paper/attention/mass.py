"""The page `attention_mass_<experiment>`: where attention goes before Stage 1, before Stage 2 and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from plant.ground.files import write_text
from plant.ground.settings import Settings
from plant.paper.attention.pairs import POINT_TITLES, Pairs, number, read_pairs, rows_of
from plant.paper.figures.attention import Panel, Row, means_figure
from plant.paper.figures.style import look, save
from plant.paper.render import Table, TableCell, row_of, template, to_markdown, write_table
from plant.paper.systems import KIND_COLOURS
from plant.paper.wording import OVER, interval, percent
from plant.statistics.pairs import Estimate

SHARES = ("mass_first", "uniform_first", "mass_grades", "uniform_grades", "relative_entropy")
METRICS = (*SHARES, "entropy")


def write_mass_page(settings: Settings, experiment: str, tables: Mapping[str, Sequence[Path]], out: Path) -> None:
    """Write tables/mass.{csv,md,tex}, figures/mass.{pdf,png} and page.md.

    Args:
        settings: the config.
        experiment: name of the experiment.
        tables: system -> attention_mass.parquet of each seed.
        out: folder.

    Raises:
        InputError: see `read_pairs`.
    """
    pairs = read_pairs(settings, experiment, tables, scorer="point", metrics=METRICS)
    table, grades = mass_table(pairs), settings.attention_study.grades
    write_table(table, Path(out) / "tables")
    with look():
        save(_figure(pairs, grades), Path(out) / "figures" / "mass")
    page = template(__package__, "mass.md.j2", zip=zip).render(
        pairs=pairs, grades=grades, table=to_markdown(table), titles=[each.title for each in pairs.systems],
        answers=[_answer(pairs, each.name) for each in pairs.systems],
    )  # fmt: skip
    write_text(Path(out) / "page.md", f"{page.rstrip()}\n")


def mass_table(pairs: Pairs) -> Table:
    """One row for each network and point of training."""
    grades, body = pairs.settings.attention_study.grades, []
    for system in pairs.systems:
        for point, title in POINT_TITLES.items():
            own = {metric: pairs.estimate(system.name, point, metric) for metric in METRICS}
            body.append(row_of(
                system.title, title, *(share_cell(own[metric]) for metric in SHARES), nats_cell(own["entropy"]),
            ))  # fmt: skip
    several = max(estimate.n_seeds for estimate in _estimates(pairs)) > 1
    confidence = 100 * pairs.settings.statistics.confidence
    return Table(
        name="mass",
        title="Attention on relevant tokens and its entropy, validation split",
        columns=(
            "System", "Weights", "Mass, highest grade", "Uniform has", f"Mass, {grades} grades", "Uniform has",
            "Entropy / ln n", "Entropy (nats)",
        ),
        rows=tuple(body),
        data=pl.DataFrame(rows_of(pairs, METRICS, tuple(POINT_TITLES)), infer_schema_length=None),
        notes=(
            (
                f"Means [{confidence:g}% interval {OVER[several]}] over {pairs.pairs} pairs of a document and a true "
                f"label in {pairs.documents} documents, ×100 except nats."
            ),
        ),
        rules=tuple(range(len(POINT_TITLES), len(body), len(POINT_TITLES))),
        text_columns=2,
    )  # fmt: skip


def share_cell(own: Estimate | None, *, signed: bool = False) -> TableCell:
    """A fraction ×100 with its interval. A signed one is a difference: bold if its interval is on one side of 0."""
    if own is None:
        return TableCell(percent(None))
    return TableCell(percent(own.value, signed=signed), detail=interval(own.low, own.high), bold=signed and sure(own))


def nats_cell(own: Estimate | None, *, signed: bool = False) -> TableCell:
    """A number with two digits and its interval; as `share_cell`."""
    if own is None:
        return TableCell(percent(None))
    bounds = f"[{number(own.low, 2)}, {number(own.high, 2)}]"
    return TableCell(number(own.value, 2, signed=signed), detail=bounds, bold=signed and sure(own))


def sure(own: Estimate) -> bool:
    """Whether the interval of a difference is on one side of 0."""
    return own.low > 0 or own.high < 0


def _estimates(pairs: Pairs) -> list[Estimate]:
    found = (pairs.estimate(each.name, point, "entropy") for each in pairs.systems for point in POINT_TITLES)
    return [each for each in found if each is not None]


def _figure(pairs: Pairs, grades: int) -> Figure:
    rows = [
        Row(system.title, title, KIND_COLOURS[system.kind],
            {metric: pairs.estimate(system.name, point, metric) for metric in METRICS})
        for system in pairs.systems for point, title in POINT_TITLES.items()
    ]  # fmt: skip
    uniform = {name: rows[0].estimates[f"uniform_{name}"] for name in ("first", "grades")}
    lines = {name: None if own is None else 100 * own.value for name, own in uniform.items()}
    panels = (
        Panel("mass_first", "Mass on the highest grade (%)", line=lines["first"]),
        Panel("mass_grades", f"Mass on the {grades} highest grades (%)", line=lines["grades"]),
        Panel("relative_entropy", "Entropy / ln n (%)", line=100.0),
    )
    note = f"{100 * pairs.settings.statistics.confidence:g}% intervals; dashed: uniform attention"
    return means_figure(rows, panels, title=f"Where attention goes: {pairs.experiment}", note=note)


def _answer(pairs: Pairs, system: str) -> list[str]:
    """Mass on the highest grades and relative entropy of a system at each point, as text."""
    found = []
    for metric in ("mass_grades", "relative_entropy"):
        own = [pairs.estimate(system, point, metric) for point in POINT_TITLES]
        found += [percent(None if each is None else each.value) for each in own]
    return found
