"""The paths of an experiment's results in one object, and readers for files that several experiments or pages share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from plant.ground.errors import InputError, nearest
from plant.ground.files import require_file

INTERVAL_COLUMNS = (
    "system", "metric", "value", "seed_sd", "n_seeds", "low", "high", "reference", "difference",
    "paper_gain", "paper_low", "paper_high", "diff_low", "diff_high",
)  # fmt: skip
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
    return int(folder.name.removeprefix("seed"))


def runs_of(mapping: Mapping[str, Sequence[Path]]) -> Iterator[tuple[str, int, Path]]:
    """(name, seed, folder) of every run."""
    return ((name, seed_of(folder), folder) for name, folders in mapping.items() for folder in folders)


def read_yaml(source: Path) -> Any:
    """The content of a YAML file of this room. The compiled parser reads it, if there is one."""
    return yaml.load(source.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


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


def read_histories(
    folders: Mapping[str, Sequence[Path]], columns: Sequence[str], optional: Sequence[str] = ()
) -> pl.DataFrame:
    """history.parquet of every run: name, seed, epoch and `columns`, in epoch order. `optional`: those of the columns
    that a run may lack; they are null then."""
    schema = pl.Schema({"name": pl.String, "seed": pl.Int64, "epoch": pl.Int64} | dict.fromkeys(columns, pl.Float64))
    needed = ["epoch", *(column for column in columns if column not in optional)]
    tables = [pl.DataFrame(schema=schema)]
    for name, seed, folder in runs_of(folders):
        history = read_table(folder / "history.parquet", needed)
        missing = (pl.lit(None).alias(column) for column in optional if column not in history.columns)
        keyed = history.with_columns(pl.lit(name).alias("name"), pl.lit(seed).alias("seed"), *missing)
        tables.append(keyed.select(schema.names()).cast(schema).sort("epoch"))
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
