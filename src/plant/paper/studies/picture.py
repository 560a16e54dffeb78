"""The picture of README.md, from the committed tables of the studies: where planting helps, and where it does not.

Run as `python -m plant.paper.studies.picture`; it reads docs/studies/ and writes docs/picture.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from plant.ground.errors import InputError
from plant.ground.files import require_file
from plant.ground.settings import Statistics
from plant.paper.figures.study import effect_figure
from plant.paper.figures.style import look, save
from plant.paper.wording import metric_title

METRICS = ("macro_f1_present", "rare_ap", "p@5")
WHEN, BEATS = "when_planting_helps", "what_beats_the_bar"
NETWORK = "PLANT minus random init, equal epochs"
BAR = "PLANT minus TF-IDF + MIG combined"
EVIDENCE = "PLANT + static attention + evidence, minus the same"
ROWS = (
    (NETWORK, "synthetic, 180 documents, 4 passes", WHEN, "vague_180_frozen", "plant_short", "random_init_short"),
    (NETWORK, "synthetic, 720 documents, 12 passes", WHEN, "clear_720_trained", "plant_long", "random_init_long"),
    (NETWORK, "CodiEsp, English", WHEN, "codiesp_en", "plant", "random_init"),
    (NETWORK, "CodiEsp, Spanish", WHEN, "codiesp_es", "plant", "random_init"),
    (NETWORK, "EURLEX57K, 2,000 documents", WHEN, "eurlex57k_2000", "plant", "random_init"),
    (BAR, "synthetic, 720 documents, 12 passes", BEATS, "recipes", "plant_long", "combined"),
    (BAR, "CodiEsp, English", BEATS, "codiesp_en", "plant", "combined"),
    (BAR, "CodiEsp, Spanish", BEATS, "codiesp_es", "plant", "combined"),
    (EVIDENCE, "synthetic, 720 documents, 12 passes", BEATS, "recipes", "plant_static_evidence", "combined"),
    (EVIDENCE, "CodiEsp, English", BEATS, "codiesp_en", "static_attention_evidence", "combined"),
    (EVIDENCE, "CodiEsp, Spanish", BEATS, "codiesp_es", "static_attention_evidence", "combined"),
    (EVIDENCE, "EURLEX57K", BEATS, "eurlex57k_network", "laws_static_evidence", "combined"),
)  # fmt: skip
"""Group, printed name, study; then experiment, system and opponent of the row in the study's table of effects."""


def read_rows(studies: Path) -> pl.DataFrame:
    """The rows of the picture in its order, with the columns of the studies' tables of effects.

    Raises:
        InputError: a table is missing, or lacks one of the rows.
    """
    parts = []
    for place, (group, name, study, experiment, system, against) in enumerate(ROWS):
        path = require_file(studies / study / "tables" / "effects.csv")
        rows = pl.read_csv(path, infer_schema_length=None).filter(
            pl.col("metric").is_in(METRICS), experiment=experiment, system=system, against=against
        )
        if rows.height != len(METRICS):
            raise InputError(
                str(path), expected=f"{system} against {against} of {experiment} for {', '.join(METRICS)}",
                got=f"{rows.height} row(s)", fix="Correct the rows in plant.paper.studies.picture.",
            )  # fmt: skip
        parts.append(rows.with_columns(cell=pl.lit(place), group=pl.lit(group), row=pl.lit(name)))
    return pl.concat(parts)


def verdict(rows: pl.DataFrame, *, alpha: float) -> str:
    """The title of the picture: in how many settings of a group the first metric is higher, lower, or open."""
    lines = [f"Does planting help? By {metric_title(METRICS[0])}, with Holm's correction:"]
    for (group,), own in rows.filter(metric=METRICS[0]).group_by("group", maintain_order=True):
        significant = own.filter(pl.col("p_holm") < alpha)["difference"]
        up, down = int((significant > 0).sum()), int((significant < 0).sum())
        lines.append(f"{group}: higher in {up} of {own.height}, lower in {down}, the rest open")
    return "\n".join(lines)


def draw(rows: pl.DataFrame) -> Figure:
    """The forest plot with the verdict as its title; call it inside `style.look()`."""
    statistics = Statistics()
    figure = effect_figure(rows, statistics, metrics=METRICS, question="")
    figure.suptitle(verdict(rows, alpha=statistics.alpha), fontsize=8.5, fontweight="bold")
    return figure


def main(picture: Path) -> None:
    """Write the picture that is committed."""
    with look():
        save(draw(read_rows(Path("docs/studies"))), picture.with_suffix(""), kinds=("png",))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/picture.png"))
