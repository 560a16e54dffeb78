"""All that tables, figures and the report read: the paths in one object, and one reader for each kind of file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.errors import InputError, nearest
from plant.ground.files import read_json, require_file
from plant.paper.costs import cost_of
from plant.statistics.significance import arrow

NOT_COUNTED = "attention.provenance.json"
"""The attention over a few documents is shown, and is no part of what a system costs."""
COMBINED = "combined"
"""Baseline with a weight that is chosen on validation and can make it equal to one of its parts."""
STAGE1 = "Stage 1"
"""A run of Stage 1 is named by its recipe, not by a system."""
STAGE2 = "Stage 2"
TRAINING = (STAGE1, STAGE2)
FIT = ("calibration_error", "log_loss")
"""Numbers of `calibration` in metrics.json, for scores that are log-odds. It is null for other scores."""
INTERVAL_COLUMNS = (
    "system", "metric", "value", "seed_sd", "n_seeds", "low", "high", "reference", "difference",
    "paper_gain", "paper_low", "paper_high", "diff_low", "diff_high",
)  # fmt: skip
WILCOXON_COLUMNS = ("system", "metric", "statistic", "n", "p", "level", "anti_conservative")
RANDOMIZATION_COLUMNS = ("system", "metric", "difference", "p", "resamples")
LABEL_COLUMNS = ("label", "n_train", "n_test", "f1", "ap")
ATTENTION_COLUMNS = (
    "document_id", "label", "truth", "probability", "position", "token", "weight", "relevance",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Paths of one experiment. A mapping goes from a name to its folders, one for each seed, called `seed{n}`."""

    statistics: Path
    """Folder with intervals.parquet, wilcoxon.parquet and randomization.parquet."""
    corpus: Path
    """Folder with the corpus' statistics.json."""
    evaluations: Mapping[str, Sequence[Path]]
    """System (variant or baseline name) -> folders with metrics.json and per_label.parquet."""
    pretrainings: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """Stage 1 recipe -> folders with history.parquet."""
    finetunings: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """Variant -> folders with history.parquet."""
    attention: Mapping[str, Path] = field(default_factory=dict)
    """System -> attention.parquet of one seed; empty where the text must not be shown."""
    stages: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """Further stages of the cost table ("relevance mig", ...) -> folders with provenance sidecars."""


def seed_of(folder: Path) -> int:
    """The seed that a folder's name carries.

    >>> seed_of(Path("results/evaluation/demo/tiny/plant+focal/seed2"))
    2
    """
    digits = Path(folder).name.removeprefix("seed")
    if not digits.isdigit():
        raise InputError(
            str(folder), expected="a folder named seed0, seed1, ...", got=repr(Path(folder).name),
            fix="Pass the folder of one training seed.",
        )  # fmt: skip
    return int(digits)


def read_table(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    """A parquet file that must hold `columns`.

    Raises:
        InputError: the file is missing, is not parquet, or lacks a column.
    """
    try:
        table = pl.read_parquet(require_file(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            str(path), expected="a parquet file", got=f"an unreadable one ({type(error).__name__})",
            fix="Delete it and run again: the rule that makes it will write it anew.",
        ) from error  # fmt: skip
    for column in columns:
        if column not in table.columns:
            raise InputError(
                str(path), expected=f"a column {column!r}", got=f"columns {', '.join(table.columns)}",
                fix=nearest(column, table.columns),
            )  # fmt: skip
    return table


def read_results(inputs: Inputs, *, alpha: float) -> pl.DataFrame:
    """Intervals with both tests beside them, one row for each system and metric.

    Args:
        alpha: level of the tests behind the arrows.

    Returns:
        INTERVAL_COLUMNS, then `wilcoxon_{statistic,n,p}`, `level`, `anti_conservative`, `randomization_p` and
        `resamples`, null where a test was not made (the reference has none); `paper_arrow` (Wilcoxon test and
        percentile interval) and `our_arrow` (randomisation test and our interval): "up", "down" or "".
    """
    folder, keys = Path(inputs.statistics), ["system", "metric"]
    results = read_table(folder / "intervals.parquet", INTERVAL_COLUMNS).select(INTERVAL_COLUMNS)
    wilcoxon = read_table(folder / "wilcoxon.parquet", WILCOXON_COLUMNS).select(
        *keys, pl.col("statistic", "n", "p").name.prefix("wilcoxon_"), "level", "anti_conservative"
    )
    randomization = read_table(folder / "randomization.parquet", RANDOMIZATION_COLUMNS).select(
        *keys, pl.col("p").alias("randomization_p"), "resamples"
    )
    for test in (wilcoxon, randomization):
        results = results.join(test, on=keys, how="left", validate="1:1", maintain_order="left")
    behind = {
        "paper_arrow": ("wilcoxon_p", "paper_low", "paper_high"),
        "our_arrow": ("randomization_p", "diff_low", "diff_high"),
    }
    return results.with_columns(
        pl.Series(name, [arrow(*row, alpha=alpha) for row in results.select(columns).iter_rows()], dtype=pl.String)
        for name, columns in behind.items()
    )


def read_metrics(inputs: Inputs) -> pl.DataFrame:
    """Every number of every metrics.json, with the tuned threshold and the numbers of FIT.

    Returns:
        system, seed, metric, value; null where a metric is not defined.
    """
    rows = []
    for system, seed, folder in _folders(inputs.evaluations):
        record = read_json(folder / "metrics.json")
        calibration = record.pop("calibration") or {}
        values = {name: value for name, value in record.items() if isinstance(value, int | float | None)}
        values |= {name: calibration.get(name) for name in FIT} | {"threshold": record["threshold"]["value"]}
        for metric, value in values.items():
            rows.append((system, seed, metric, value))
    schema = {"system": pl.String, "seed": pl.Int64, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def read_lower_bounds(inputs: Inputs) -> tuple[str, ...]:
    """Patterns of metric names that are lower bounds, because only the top scores of a document were kept."""
    records = (read_json(folder / "metrics.json") for _, _, folder in _folders(inputs.evaluations))
    return tuple(dict.fromkeys(name for record in records for name in record["exactness"]["lower_bounds"]))


def read_combined_weight(inputs: Inputs) -> float | None:
    """The weight of the linear model in the baseline `combined`; None for an experiment without it."""
    folders = inputs.evaluations.get(COMBINED)
    return float(read_json(Path(folders[0]) / "choices.json")["weight"]) if folders else None


def read_labels(inputs: Inputs) -> pl.DataFrame:
    """per_label.parquet of every system, averaged over its seeds: one row for each system and label.

    A label that is absent from the test split has no F1 and is left out.
    """
    tables = [
        read_table(folder / "per_label.parquet", LABEL_COLUMNS).select(pl.lit(system).alias("system"), *LABEL_COLUMNS)
        for system, _, folder in _folders(inputs.evaluations)
    ]
    return (
        pl.concat(tables, how="vertical_relaxed")
        .filter(pl.col("n_test") > 0)
        .group_by("system", "label", maintain_order=True)
        .agg(pl.col("n_train").first(), pl.col("n_test").first(), pl.col("f1", "ap").mean())
    )


def read_histories(
    folders: Mapping[str, Sequence[Path]], columns: Sequence[str], optional: Sequence[str] = ()
) -> pl.DataFrame:
    """history.parquet of every run: name, seed, epoch and `columns`, in epoch order. `optional`: those of the columns
    that a run may lack; they are null then."""
    schema = pl.Schema(
        {"name": pl.String(), "seed": pl.Int64(), "epoch": pl.Int64()} | dict.fromkeys(columns, pl.Float64())
    )
    tables = [pl.DataFrame(schema=schema)]
    for name, seed, folder in _folders(folders):
        needed = [column for column in columns if column not in optional]
        history = read_table(folder / "history.parquet", ["epoch", *needed])
        history = history.with_columns(
            pl.lit(None).alias(column) for column in columns if column not in history.columns
        )
        keyed = history.select(pl.lit(name).alias("name"), pl.lit(seed).alias("seed"), "epoch", *columns)
        tables.append(keyed.cast(schema).sort("epoch"))
    return pl.concat(tables)


def read_attention(inputs: Inputs) -> pl.DataFrame:
    """All attention files as one table with a column `system`; empty where there are none."""
    schema = pl.Schema(dict.fromkeys((*ATTENTION_COLUMNS, "system"), pl.String()))
    schema |= {"truth": pl.Boolean(), "position": pl.Int64()}
    schema |= dict.fromkeys(("probability", "weight", "relevance"), pl.Float64())
    tables = [
        read_table(path, ATTENTION_COLUMNS).select(*ATTENTION_COLUMNS, pl.lit(system).alias("system")).cast(schema)
        for system, path in inputs.attention.items()
    ]
    return pl.concat([pl.DataFrame(schema=schema), *tables])


def read_costs(inputs: Inputs) -> list[dict[str, Any]]:
    """One flat record for each provenance sidecar.

    Returns:
        `stage`, `name`, `epochs` that ran (None if it is no training), the cost as `cost_of` has it, `commit`,
        `modified`, `platform`, `versions`.
    """
    runs = {STAGE1: inputs.pretrainings, STAGE2: inputs.finetunings, "evaluation": inputs.evaluations}
    groups = [(stage, "", paths) for stage, paths in inputs.stages.items()]
    groups += [(stage, name, paths) for stage, own in runs.items() for name, paths in own.items()]
    return [
        {"stage": stage, "name": name, "epochs": epochs}
        | cost_of(sidecar, trains=stage in TRAINING)
        | {"platform": sidecar["platform"], "versions": sidecar["versions"], **sidecar["code"]}
        for stage, name, folders in groups
        for folder in map(Path, folders)
        for epochs in [read_table(folder / "history.parquet", ["epoch"]).height if stage in TRAINING else None]
        for sidecar in [read_json(path) for path in sorted(folder.glob("*provenance.json")) if path.name != NOT_COUNTED]
    ]


def _folders(mapping: Mapping[str, Sequence[Path]]) -> Iterator[tuple[str, int, Path]]:
    for name, folders in mapping.items():
        for folder in folders:
            yield name, seed_of(folder), Path(folder)
