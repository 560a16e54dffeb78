"""The picture of README.md: what planting is worth to a trained network.

Run as `python -m plant.paper.studies.picture`. It writes docs/picture.png. docs/studies/picture.csv names the rows:
group, printed name, study, and the row of the study's table of effects.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from plant.ground.errors import InputError
from plant.ground.files import require_file
from plant.ground.settings import Statistics
from plant.paper.figures.study import effect_figure
from plant.paper.figures.style import look, save
from plant.paper.studies.study import count_outcomes
from plant.paper.wording import metric_title

METRICS = ("macro_f1_present", "rare_ap", "p@5")
KEYS = ("study", "experiment", "system", "against", "metric")
VALUES = ("difference", "low", "high", "p_holm")


def read_rows(studies: Path) -> pl.DataFrame:
    """The rows of the picture in its order: `cell` (the place), `group`, `row`, KEYS and VALUES.

    A study's table may have the two systems in the other order.

    Raises:
        InputError: a table is missing, or lacks one of the rows.
    """
    rows = pl.read_csv(studies / "picture.csv").with_row_index("cell")
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


def verdict(rows: pl.DataFrame, *, alpha: float) -> str:
    """The title of the picture: in how many settings of a group the first metric is higher, lower, or open."""
    lines = [f"Does planting help a trained network? {metric_title(METRICS[0])}, Holm's correction:"]
    for (group,), own in rows.filter(metric=METRICS[0]).group_by("group", maintain_order=True):
        up, down, rest = count_outcomes(own, alpha)
        lines.append(f"{group}: higher in {up} of {own.height}, lower in {down}, open in {rest}")
    return "\n".join(lines)


def main(picture: Path) -> None:
    """Write the picture that is committed."""
    rows, statistics = read_rows(Path("docs/studies")), Statistics()
    with look():
        figure = effect_figure(rows, statistics, metrics=METRICS, question="")
        figure.suptitle(verdict(rows, alpha=statistics.alpha), fontsize=8.5, fontweight="bold")
        save(figure, picture.with_suffix(""), kinds=("png",))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/picture.png"))
