"""The page `attention_mass_<experiment>`: where attention goes before Stage 1, before Stage 2 and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

from matplotlib.figure import Figure

from plant.ground.settings import Settings
from plant.paper.attention.pairs import POINT_TITLES, Pairs, cell, read_pairs, rows_of
from plant.paper.figures.forest import ForestPanel, ForestRow, means_figure
from plant.paper.pages import write_page
from plant.paper.render import Table, breaks, row_of
from plant.paper.systems import KIND_COLOURS
from plant.paper.wording import percent

SHARES = ("mass_first", "uniform_first", "mass_grades", "uniform_grades", "relative_entropy")
METRICS = (*SHARES, "entropy")


def write_mass_page(settings: Settings, experiment: str, tables: Mapping[str, Sequence[Path]], out: Path) -> None:
    """Write tables/mass.{csv,md,tex}, figures/mass.{pdf,png} and page.md.

    Args:
        tables: system -> attention_mass.parquet of each seed.
    """
    pairs = read_pairs(settings, experiment, tables, scorer="point", metrics=METRICS)
    values = {
        "pairs": pairs, "grades": settings.attention_study.grades, "titles": [each.title for each in pairs.systems],
        "answers": [_answer(pairs, each.name) for each in pairs.systems],
    }  # fmt: skip
    write_page(out, [mass_table(pairs)], {"mass": partial(_figure, pairs)}, __package__, "mass.md.j2", **values)


def mass_table(pairs: Pairs) -> Table:
    """One row for each network and point of training."""
    grades, places = pairs.settings.attention_study.grades, list(product(pairs.systems, POINT_TITLES))
    return Table(
        name="mass",
        title="Attention on relevant tokens and its entropy, validation split",
        columns=(
            "System", "Weights", "Mass, highest grade", "Uniform has", f"Mass, {grades} grades", "Uniform has",
            "Entropy / ln n", "Entropy (nats)",
        ),
        rows=tuple(
            row_of(system.title, POINT_TITLES[point], *(
                cell(pairs.estimate(system.name, point, metric), nats=metric == "entropy") for metric in METRICS
            )) for system, point in places
        ),
        data=rows_of(pairs, METRICS, tuple(POINT_TITLES)),
        notes=(f"{pairs.means('a true label in')}, ×100 except nats.",),
        rules=breaks([system for system, _ in places]),
        text_columns=2,
    )  # fmt: skip


def _figure(pairs: Pairs) -> Figure:
    grades = pairs.settings.attention_study.grades
    rows = [
        ForestRow(system.title, title, KIND_COLOURS[system.kind],
                  {metric: pairs.estimate(system.name, point, metric) for metric in METRICS})
        for system in pairs.systems for point, title in POINT_TITLES.items()
    ]  # fmt: skip
    uniform = {name: rows[0].estimates[f"uniform_{name}"] for name in ("first", "grades")}
    lines = {name: None if own is None else 100 * own.value for name, own in uniform.items()}
    panels = (
        ForestPanel("mass_first", "Mass on the highest grade (%)", line=lines["first"]),
        ForestPanel("mass_grades", f"Mass on the {grades} highest grades (%)", line=lines["grades"]),
        ForestPanel("relative_entropy", "Entropy / ln n (%)", line=100.0),
    )
    note = f"{pairs.level} intervals; dashed: uniform attention"
    return means_figure(rows, panels, title=f"Where attention goes: {pairs.experiment}", note=note)


def _answer(pairs: Pairs, system: str) -> list[str]:
    """Mass on the highest grades and relative entropy of a system at each point, as text."""
    found = []
    for metric in ("mass_grades", "relative_entropy"):
        own = [pairs.estimate(system, point, metric) for point in POINT_TITLES]
        found += [percent(None if each is None else each.value) for each in own]
    return found
