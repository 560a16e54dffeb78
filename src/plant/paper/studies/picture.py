"""The picture of README.md, from the committed tables of the fair trial: what planting is worth to a trained network.

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
from plant.paper.studies.study import count_outcomes
from plant.paper.wording import metric_title

METRICS = ("macro_f1_present", "rare_ap", "p@5")
TRIAL, ENCODERS, ABLATIONS = "fair_trial", "fair_encoders", "fair_ablations"
LAWS, LAWS_2000, MULTIRES = "fair_laws", "fair_laws_2000", "fair_multires"
LAAT, LAAT_LAWS = "fair_laat", "fair_laat_laws"
STARTS, STARTS_LAWS = "fair_starts_bills", "fair_starts_laws"
MINILM, WIDE, AWD, ABLATIONS_CODIESP = "fair_minilm", "fair_wide", "fair_awd", "fair_ablations_codiesp"
STAGE1 = "Stage 1 (the paper) minus random init"
STATIC = "Static planting minus random init"
BAR = "Static planting minus two word baselines"
ROWS = (
    (STAGE1, "CodiEsp, 500 documents, CAML", TRIAL, "fair_codiesp_en", "caml_plant", "caml_random_init"),
    (STAGE1, "EURLEX57K, 500, CAML", LAWS, "fair_caml_laws_five_seeds", "net_stage1", "net_random_init"),
    (STAGE1, "US bills, 500, CAML", ENCODERS, "fair_caml_500", "net_stage1", "net_random_init"),
    (STAGE1, "US bills, 500, BiGRU", STARTS, "fair_bigru_small", "net_stage1", "net_random_init"),
    (STAGE1, "US bills, 500, LAAT", LAAT, "fair_laat_small", "net_stage1", "net_random_init"),
    (STAGE1, "EURLEX57K, 500, LAAT", LAAT_LAWS, "fair_laat_small_laws", "net_stage1", "net_random_init"),
    (STAGE1, "EURLEX57K, 500, BiGRU", STARTS_LAWS, "fair_bigru_small_laws", "net_stage1", "net_random_init"),
    (STAGE1, "EURLEX57K, 500, MultiResCNN", STARTS_LAWS, "fair_multires_small_laws", "net_stage1", "net_random_init"),
    (STAGE1, "US bills, 500, MultiResCNN", STARTS, "fair_multires_small", "net_stage1", "net_random_init"),
    (STAGE1, "US bills, 500, frozen MiniLM", MINILM, "fair_minilm_500", "net_stage1", "net_random_init"),
    (STAGE1, "US bills, 500, AWD-LSTM", AWD, "fair_awd_500", "net_stage1", "net_random_init"),
    (STAGE1, "EURLEX57K, 2,000, CAML", LAWS_2000, "fair_caml_laws_2000", "net_stage1", "net_random_init"),
    (STAGE1, "CodiEsp, 500, 8 passes", ENCODERS, "fair_codiesp_en_8", "caml_plant_8", "caml_random_init"),
    (STAGE1, "CodiEsp, 500, 8 passes, focal loss", ABLATIONS_CODIESP,
     "fair_ablations_codiesp", "notes_plant", "notes_single_focal"),
    (STAGE1, "US bills, 500, 8 passes, focal loss", ABLATIONS, "fair_ablations_500", "abl_plant", "abl_single_focal"),
    (STAGE1, "US bills, 8,000, CAML, 200 filters", WIDE, "fair_bills_8000_wide_40", "all_plant", "long_random_init"),
    (STATIC, "CodiEsp, 500, CAML", TRIAL, "fair_codiesp_en", "caml_static", "caml_random_init"),
    (STATIC, "EURLEX57K, 500, CAML", LAWS, "fair_caml_laws_five_seeds", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, CAML", ENCODERS, "fair_caml_500", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, BiGRU", STARTS, "fair_bigru_small", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, LAAT", LAAT, "fair_laat_small", "net_static", "net_random_init"),
    (STATIC, "EURLEX57K, 500, LAAT", LAAT_LAWS, "fair_laat_small_laws", "net_static", "net_random_init"),
    (STATIC, "EURLEX57K, 500, BiGRU", STARTS_LAWS, "fair_bigru_small_laws", "net_static", "net_random_init"),
    (STATIC, "EURLEX57K, 500, MultiResCNN", STARTS_LAWS, "fair_multires_small_laws", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, frozen MiniLM", MINILM, "fair_minilm_500", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, MultiResCNN", STARTS, "fair_multires_small", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, MultiResCNN, 300 filters", MULTIRES, "fair_multires_500", "net_static", "net_random_init"),
    (STATIC, "US bills, 500, AWD-LSTM", AWD, "fair_awd_500", "net_static", "net_random_init"),
    (STATIC, "EURLEX57K, 2,000, CAML", LAWS_2000, "fair_caml_laws_2000", "net_static", "net_random_init"),
    (STATIC, "US bills, 2,000, CAML", TRIAL, "fair_bills_2000", "caml_static", "caml_random_init"),
    (STATIC, "US bills, 8,000, CAML", TRIAL, "fair_bills_8000", "caml_static", "caml_random_init"),
    (STATIC, "US bills, 8,000, CAML, 200 filters", WIDE, "fair_bills_8000_wide_40", "all_static", "long_random_init"),
    (BAR, "CodiEsp, 500, CAML", TRIAL, "fair_codiesp_en", "caml_static", "combined"),
    (BAR, "EURLEX57K, 500, CAML", LAWS, "fair_caml_laws_five_seeds", "net_static", "combined"),
    (BAR, "EURLEX57K, 2,000, CAML", LAWS_2000, "fair_caml_laws_2000", "net_static", "combined"),
    (BAR, "US bills, 500, CAML", ENCODERS, "fair_caml_500", "net_static", "combined"),
    (BAR, "US bills, 500, BiGRU", STARTS, "fair_bigru_small", "net_static", "combined"),
    (BAR, "US bills, 500, LAAT", LAAT, "fair_laat_small", "net_static", "combined"),
    (BAR, "EURLEX57K, 500, LAAT", LAAT_LAWS, "fair_laat_small_laws", "net_static", "combined"),
    (BAR, "EURLEX57K, 500, BiGRU", STARTS_LAWS, "fair_bigru_small_laws", "net_static", "combined"),
    (BAR, "EURLEX57K, 500, MultiResCNN", STARTS_LAWS, "fair_multires_small_laws", "net_static", "combined"),
    (BAR, "US bills, 500, MultiResCNN", STARTS, "fair_multires_small", "net_static", "combined"),
    (BAR, "US bills, 500, frozen MiniLM", MINILM, "fair_minilm_500", "net_static", "combined"),
    (BAR, "US bills, 2,000, CAML", TRIAL, "fair_bills_2000", "caml_static", "combined"),
    (BAR, "US bills, 8,000, CAML", TRIAL, "fair_bills_8000", "caml_static", "combined"),
    (BAR, "US bills, 8,000, CAML, 200 filters", WIDE, "fair_bills_8000_wide_40", "all_static", "combined"),
)  # fmt: skip
"""Group, printed name, study; then experiment, system and opponent of the row in the study's table of effects. A table
may have the two systems in the other order."""


def read_rows(studies: Path) -> pl.DataFrame:
    """The rows of the picture in its order, with the columns of the studies' tables of effects.

    Raises:
        InputError: a table is missing, or lacks one of the rows.
    """
    parts = []
    for place, (group, name, study, experiment, system, against) in enumerate(ROWS):
        path = require_file(studies / study / "tables" / "effects.csv")
        told = pl.read_csv(path, infer_schema_length=None).filter(
            pl.col("metric").is_in(METRICS), experiment=experiment
        )
        rows = told.filter(system=system, against=against)
        if rows.is_empty():
            rows = _turned(told.filter(system=against, against=system))
        if rows.height != len(METRICS):
            raise InputError(
                str(path), expected=f"{system} against {against} of {experiment} for {', '.join(METRICS)}",
                got=f"{rows.height} row(s)", fix="Correct the rows in plant.paper.studies.picture.",
            )  # fmt: skip
        parts.append(rows.with_columns(cell=pl.lit(place), group=pl.lit(group), row=pl.lit(name)))
    return pl.concat(parts)


def _turned(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the opponent minus the system."""
    pairs = (("system", "against"), ("value", "value_against"))
    swapped = [pl.col(old).alias(new) for pair in pairs for old, new in (pair, pair[::-1])]
    return rows.with_columns(*swapped, difference=-pl.col("difference"), low=-pl.col("high"), high=-pl.col("low"))


def verdict(rows: pl.DataFrame, *, alpha: float) -> str:
    """The title of the picture: in how many settings of a group the first metric is higher, lower, or open."""
    lines = [f"Does planting help a trained network? {metric_title(METRICS[0])}, Holm's correction:"]
    for (group,), own in rows.filter(metric=METRICS[0]).group_by("group", maintain_order=True):
        up, down, rest = count_outcomes(own, alpha)
        lines.append(f"{group}: higher in {up} of {own.height}, lower in {down}, open in {rest}")
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
