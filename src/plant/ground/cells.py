"""Cells of the CSV tables of this pipeline: find them by words, print them, and find the files behind them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plant.ground.errors import InputError, nearest
from plant.ground.files import require_file

KEYS = (
    "experiment", "dataset", "split", "stage", "row", "system", "name", "seed", "column", "kind", "statistic", "metric",
)  # fmt: skip
"""Columns that name a cell. The other columns are numbers and remarks."""
NUMBERS = ("value", "ours")
Row = Mapping[str, str]


def find_rows(table: Path, words: Sequence[str]) -> list[Row]:
    """The rows of a CSV whose names include every word.

    Raises:
        InputError: the table is not a CSV file, or no row has all words.
    """
    if table.suffix != ".csv":
        raise InputError(
            str(table), expected="a table as CSV, to look a cell up", got=f"the ending {table.suffix!r}",
            fix=f"Name {table.with_suffix('.csv')}.",
        )  # fmt: skip
    with require_file(table).open(encoding="utf-8", newline="") as handle:
        rows: list[Row] = list(csv.DictReader(handle))
    for word in words:
        known = {row[key] for row in rows for key in KEYS if row.get(key)}
        rows = [row for row in rows if word in (row.get(key) for key in KEYS)]
        if not rows:
            raise InputError(
                str(table), expected="words that name a row of it", got=repr(word), fix=nearest(word, known)
            )
    return rows


def print_row(row: Row) -> str:
    """A row as text: its names, then its number and interval. A row without a number is shown with all columns.

    >>> print_row({"system": "plant", "metric": "p@5", "value": "0.5", "low": "0.4", "high": "0.6", "resamples": "50"})
    'plant, p@5: 0.5 [0.4, 0.6]'
    >>> print_row({"stage": "corpus", "name": "", "wall_seconds": "2.5", "device": "cpu"})
    'corpus: wall_seconds 2.5, device cpu'
    """
    names = dict.fromkeys(row[key] for key in KEYS if row.get(key))
    number = next((row[key] for key in NUMBERS if row.get(key)), None)
    if number is None:
        text = ", ".join(f"{key} {value}" for key, value in row.items() if value and key not in KEYS)
    else:
        text = number + (f" [{row['low']}, {row['high']}]" if row.get("low") and row.get("high") else "")
        text += f" (the paper: {row['paper']})" if row.get("paper") else ""
    return f"{', '.join(names)}: {text}"


@dataclass(frozen=True)
class Cut:
    """The systems (variants and baselines) and experiments that are followed through a job that compares several.
    Empty: all."""

    systems: frozenset[str] = frozenset()
    experiments: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Cut:
        """The systems and experiments in the rows."""
        rows = list(rows)
        return cls(*(frozenset(row[key] for row in rows if row.get(key)) for key in ("system", "experiment")))

    def keeps(self, settings: Mapping[str, Any], path: str) -> bool:
        """Whether an input of a job with these settings is followed. A job that compares nothing keeps them all."""
        owners = [owner for folder, *owner in _owners(settings) if f"{path}/".startswith(f"{folder}/")]
        return not owners or any(
            (not self.experiments or experiment in self.experiments)
            and (not self.systems or system is None or system in self.systems)
            for experiment, system in owners
        )


def _owners(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """(file or folder, experiment, system) of what a job compares. The system is None for files of all systems."""
    for system, folders in settings.get("systems", {}).items():
        yield from ((folder, "", system) for folder in folders)
    paths = settings.get("paths", {})
    grid = {settings.get("experiment", ""): paths} if "evaluations" in paths else paths
    variants = settings.get("config", {}).get("variants", {})
    for experiment, own in grid.items():
        yield from ((own[part], experiment, None) for part in ("statistics", "corpus"))
        for kind in ("evaluations", "finetunings"):
            for system, folders in own[kind].items():
                yield from ((folder, experiment, system) for folder in folders)
        for recipe, folders in own["pretrainings"].items():
            users = [system for system in own["finetunings"] if variants.get(system, {}).get("pretraining") == recipe]
            yield from ((folder, experiment, system) for folder in folders for system in users)
        yield from ((file, experiment, system) for system, file in own["attention"].items())
