"""The choice of a tuning: for each arm, the point of the grid with the best validation macro-F1 (choice C08).

An arm is a variant that is tuned. A point is one pair of learning rates. Only the histories of training are read, and
they hold no score of the test split.
"""

import logging
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import polars as pl
import yaml

from plant.ground.files import read_json, require_file, write_text, write_with
from plant.ground.settings import Tuned, Tuning

RATES = ("head_learning_rate", "learning_rate")
Points = Mapping[str, Mapping[str, Tuned]]
"""Arm -> network (folder name) of each point -> the settings that the point changes."""


def read_grid(points: Points, folder: Path, tuning: Tuning) -> pl.DataFrame:
    """Every validation score of a tuning; `folder` holds a folder for each network, with a folder for each seed.

    Returns:
        One row per epoch: arm, rates, seed, epoch, macro_f1, kept (the run keeps the weights of this epoch),
        patience_ended and seconds (both of the whole run).
    """
    parts = []
    for arm, networks in points.items():
        for (network, point), seed in product(networks.items(), tuning.seeds):
            run = folder / network / f"seed{seed}"
            history = pl.read_parquet(require_file(run / "history.parquet")).sort("epoch")
            best = int(history["macro_f1"].arg_max() or 0)  # the first of equal ones, as in training
            own = {"arm": arm, **{name: getattr(point, name) for name in RATES}, "seed": seed}
            seconds = read_json(run / "provenance.json")["resources"]["wall_seconds"]
            parts.append(history.select(
                *(pl.lit(value).alias(name) for name, value in own.items()), "epoch", "macro_f1",
                kept=pl.col("epoch") == history["epoch"][best],
                patience_ended=pl.lit(len(history) - 1 - best >= tuning.patience), seconds=pl.lit(seconds),
            ))  # fmt: skip
    return pl.concat(parts)


def choose(grid: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Arm -> rates with the best validation macro-F1, mean over seeds. Of equal ones the smaller rates, head first."""
    runs = grid.filter("kept").sort("arm", *RATES, "seed").group_by("arm", *RATES, maintain_order=True)
    means = runs.agg(pl.col("macro_f1").mean()).sort("macro_f1", *RATES, descending=[True, False, False])
    best = means.unique("arm", keep="first", maintain_order=True)
    return {row["arm"]: {name: row[name] for name in RATES} for row in best.iter_rows(named=True)}


def find_doubts(grid: pl.DataFrame, chosen: Mapping[str, Mapping[str, float]], tuning: Tuning) -> list[str]:
    """Reasons to doubt a choice: it is at the edge of the grid, or training ended too early."""
    doubts = []
    for arm, rates in chosen.items():
        for name in RATES:
            tried, value = getattr(tuning, name), rates[name]
            if len(tried) > 1 and value in (min(tried), max(tried)):
                side = "smallest" if value == min(tried) else "largest"
                doubts.append(f"{arm}: the chosen {name}, {value:g}, is the {side} of the grid. Try values beyond it.")
        runs = grid.filter(pl.col("kept") & (pl.col("arm") == arm))
        unfinished = runs.filter(~pl.col("patience_ended"))
        if len(unfinished):
            own = unfinished.filter(**rates)
            doubts.append(
                f"{arm}: patience did not end {len(unfinished)} of {len(runs)} runs, {len(own)} of them with the "
                f"chosen rates. More than {tuning.epochs} epochs may find a better score."
            )
    return doubts


def write_choice(
    grid: pl.DataFrame, tuning: Tuning, *, runs: Mapping[str, str], also: Mapping[str, str], table: Path, config: Path
) -> None:
    """Write all scores as CSV, and the choice as a config to lay over the config of the tuning.

    Args:
        runs: run (as in section `tuned`) -> its arm. The run gets the arm's rates, epochs and patience.
        also: further run -> arm. The run gets the rates alone.
        table, config: targets. The config has one section, `tuned`.
    """
    chosen = choose(grid)
    doubts = find_doubts(grid, chosen, tuning)
    for doubt in doubts:
        logging.getLogger("plant").warning("%s", doubt)
    whole = {"epochs": tuning.epochs, "patience": tuning.patience}
    tuned = {run: dict(chosen[arm]) for run, arm in also.items()}
    tuned |= {run: chosen[arm] | whole for run, arm in runs.items()}
    head = ["Chosen on the validation split. Lay it over the config: --configfile <config> <this file>", *doubts]
    write_with(table, grid.write_csv)
    write_text(config, "".join(f"# {line}\n" for line in head) + yaml.safe_dump({"tuned": tuned}, sort_keys=True))
