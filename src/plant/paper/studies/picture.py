"""The picture of README.md: what planting is worth to a trained network.

Run as `python -m plant.paper.studies.picture`. It writes docs/picture.png. docs/studies/picture.csv names what is
drawn: the contrast (a panel), corpus and setting (a row), the study, and the row of the study's table of effects.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes

from plant.ground.errors import InputError
from plant.ground.files import require_file
from plant.ground.settings import Statistics
from plant.paper.figures.forest import forest, forest_row, rows_figure
from plant.paper.figures.study import OPEN, colour_of, difference_note
from plant.paper.figures.style import look, save
from plant.paper.studies.study import count_outcomes


class Mark(NamedTuple):
    """How a metric is drawn."""

    title: str
    marker: str
    shift: float
    """From the middle of its row."""


MARKS = {"macro_f1_present": Mark("macro-F1", "o", -0.17), "rare_ap": Mark("rare AP", "D", 0.17)}
METRICS = tuple(MARKS)
TITLE = "Does planting help a trained network? Circles: macro-F1. Diamonds: AP of rare labels."
KEYS = ("study", "experiment", "system", "against", "metric")
VALUES = ("difference", "low", "high", "p_holm")


def read_rows(studies: Path) -> pl.DataFrame:
    """What is drawn, in the order of the file: `contrast`, `corpus`, `setting`, KEYS and VALUES.

    A study's table may have the two systems in the other order.

    Raises:
        InputError: a table is missing, or lacks one of the rows.
    """
    rows = pl.read_csv(studies / "picture.csv")
    tables = []
    for study in rows["study"].unique():
        table = pl.read_csv(require_file(studies / study / "tables" / "effects.csv"), infer_schema_length=None)
        tables.append(table.with_columns(study=pl.lit(study)).select(*KEYS, *VALUES))
    told = pl.concat(tables, how="vertical_relaxed")
    turned = told.select(
        pl.col(KEYS), difference=-pl.col("difference"), low=-pl.col("high"), high=-pl.col("low"), p_holm="p_holm"
    ).rename({"system": "against", "against": "system"})
    told = pl.concat([told, turned.select(told.columns)]).unique(KEYS, keep="first")
    wanted = rows.join(pl.DataFrame({"metric": METRICS}), how="cross")
    lost = wanted.join(told, on=KEYS, how="anti")
    if not lost.is_empty():
        row = lost.row(0, named=True)
        raise InputError(
            f"{row['study']}/tables/effects.csv",
            expected=f"{row['system']} against {row['against']} of {row['experiment']} for {row['metric']}",
            got="no such row", fix="Correct docs/studies/picture.csv.",
        )  # fmt: skip
    return wanted.join(told, on=KEYS, maintain_order="left")


def panel_title(contrast: str, rows: pl.DataFrame, alpha: float) -> str:
    """The contrast, and in how many settings each metric is higher and lower after correction."""
    lines = [contrast.replace(" minus ", "\nminus ")]
    for metric in METRICS:
        own = rows.filter(contrast=contrast, metric=metric)
        up, down, _ = count_outcomes(own, alpha)
        counts = {"up": up, "down": down}
        told = [f"{count} {way}" for way, count in counts.items() if count] or ["0 told apart"]
        lines.append(f"{MARKS[metric].title}: {', '.join(told)} of {own.height}")
    return "\n".join(lines)


def main(picture: Path) -> None:
    """Write the picture that is committed."""
    rows, statistics = read_rows(Path("docs/studies")), Statistics()
    settings = list(rows.select("corpus", "setting").unique(maintain_order=True).iter_rows())
    panels = {
        panel_title(contrast, rows, statistics.alpha): partial(
            _panel, rows=rows.filter(contrast=contrast), settings=settings, alpha=statistics.alpha
        )
        for contrast in rows["contrast"].unique(maintain_order=True)
    }
    with look():
        figure = rows_figure(
            settings, panels, title=TITLE, gap=0.4, row_height=0.2,
            note=f"rows: training documents, network; {difference_note(statistics)}",
        )  # fmt: skip
        save(figure, picture.with_suffix(""), kinds=("png",))


def _panel(
    axes: Axes, places: Sequence[float], *, rows: pl.DataFrame, settings: Sequence[tuple[str, str]], alpha: float
) -> None:
    place_of = dict(zip(settings, places, strict=True))
    forest(axes, margin=0.06)
    for row in rows.iter_rows(named=True):
        mark = MARKS[row["metric"]]
        colour = colour_of(row["difference"], row["p_holm"], alpha)
        low, value, high = (100 * row[name] for name in ("low", "difference", "high"))
        place = place_of[row["corpus"], row["setting"]] + mark.shift
        forest_row(axes, place, (low, high), value, colour, sure=colour != OPEN, marker=mark.marker)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/picture.png"))
