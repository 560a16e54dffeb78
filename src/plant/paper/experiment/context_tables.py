"""What the results stand on: the corpus in numbers, and what every stage cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json
from plant.paper.costs import MEASURES, largest, mean, mean_joules
from plant.paper.inputs import STAGE1, STAGE2
from plant.paper.render import Table, TableCell
from plant.paper.systems import System
from plant.paper.wording import MISSING, energy, megabytes, metric_title, percent, seconds, weights

SPLITS = ("train", "val", "test")
_COST_COLUMNS: dict[str, Any] = {
    "stage": pl.String, "name": pl.String, "seed": pl.Int64, "epochs": pl.Int64, **MEASURES, "device": pl.String,
}  # fmt: skip
_CEILING = "ceilings "
_FIRST = ("documents", "groups", "labels_present", "assignments", "labels_per_document", "words_per_document")


def corpus_table(statistics: Path) -> Table:
    """The corpus' statistics.json: one row a statistic, one column a split; `all` holds what has no split.

    Quartiles are set as in the paper's Table 7: median (first quartile to third).
    """
    flat = list(_flatten(read_json(statistics)))
    shown = {
        (split, name): percent(value) if name.startswith(_CEILING) else _count(value) for split, name, value in flat
    }
    for split, name in list(shown):
        if name.endswith(" median"):
            base = name.removesuffix(" median")
            low, high = (shown.pop((split, f"{base} quartile_{n}"), MISSING) for n in (1, 3))
            shown[split, name] += f" ({low}\N{EN DASH}{high})"
    names = sorted(dict.fromkeys(name for _, name in shown), key=_place)
    columns = [*SPLITS, *(["all"] if any(split == "all" for split, _ in shown) else [])]
    return Table(
        name="corpus",
        title="Corpus",
        columns=("Statistic", *columns),
        rows=tuple(
            (TableCell(_title(name)), *(TableCell(shown.get((split, name), MISSING)) for split in columns))
            for name in names
        ),
        data=pl.DataFrame(flat, schema={"split": pl.String, "statistic": pl.String, "value": pl.Float64}, orient="row"),
        notes=(
            (
                "Median with first and third quartile in parentheses. Labels that occur in test or val but not in "
                "train are kept and cannot be predicted (choice C14)."
            ),
        ),
    )


def _place(name: str) -> tuple[bool, int]:
    """Order of the rows: those of the paper's Table 7 first, the rest as they come."""
    first = next((i for i, word in enumerate(_FIRST) if name.split(" ")[0] == word), len(_FIRST))
    return first == len(_FIRST), first


def _title(name: str) -> str:
    """`labels_per_document median` -> `labels per document: median`.

    >>> _title("labels_per_document median")
    'labels per document: median'
    >>> _title("ceilings p@5")
    'highest possible P@5 (test, ×100)'
    """
    if name.startswith(_CEILING):
        return f"highest possible {metric_title(name.removeprefix(_CEILING))} (test, ×100)"
    return name.replace(" ", ": ").replace("_", " ")


def cost_table(
    records: Sequence[Mapping[str, Any]], *, systems: tuple[System, ...], networks: Mapping[str, System]
) -> Table:
    """Wall time, memory, trained weights and energy of every stage, from the provenance sidecars.

    Args:
        records: as `read_costs` returns them; several records of one stage and name are its runs (seeds).
        systems: give titles to names.
        networks: give titles to the names of Stage 2, as `list_networks` returns them.
    """
    titles = {system.name: system.title for system in systems}
    named: dict[str, dict[str, str]] = {STAGE1: {}, STAGE2: {name: each.title for name, each in networks.items()}}
    data = [[record[column] for column in _COST_COLUMNS] for record in records]
    frame = pl.DataFrame(data, schema=_COST_COLUMNS, orient="row", strict=False)
    rows = []
    for (stage, name), runs in frame.group_by("stage", "name", maintain_order=True):
        title = named.get(str(stage), titles).get(str(name), name)
        trained = runs.get_column("trained_parameters").drop_nulls().to_list()
        rows.append(tuple(map(TableCell, (
            f"{stage}: {title}" if name else f"{stage}", f"{runs.height}",
            _span(runs.get_column("epochs").drop_nulls().to_list()), seconds(mean(runs, "wall_seconds")),
            megabytes(largest(runs, "peak_host_mb")), megabytes(largest(runs, "peak_device_mb")), weights(trained),
            energy(mean_joules(runs)), ", ".join(sorted(runs.get_column("device").unique())),
        ))))  # fmt: skip
    return Table(
        name="cost",
        title="Cost of every stage",
        columns=(
            "Stage", "Runs", "Epochs run", "Wall time a run (mean)", "Peak memory", "Peak device memory",
            "Weights trained", "Energy a run (mean)", "Device",
        ),
        rows=tuple(rows),
        data=frame,
        notes=(
            "Epochs run are those that training really ran; the best one on validation is kept (choice C16).",
            "Wall time is that of the job, without the start of Python. Peak memory is the largest of the runs.",
            "Energy is that of device and host together, of the parts that a run tells.",
        ),
    )  # fmt: skip


def _span(epochs: Sequence[int]) -> str:
    """The fewest and the most epochs of the runs.

    >>> _span([12, 12]), _span([4, 9, 12]), _span([])
    ('12', '4 to 12', '–')
    """
    return MISSING if not epochs else " to ".join(map(str, sorted({min(epochs), max(epochs)})))


def _flatten(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """(split or "all", name, number) of a nested JSON object, names joined by spaces, in file order."""

    def walk(node: Any, path: tuple[str, ...], split: str) -> Iterator[tuple[str, str, float]]:
        if isinstance(node, Mapping):
            for key, value in node.items():
                inside = key in (*SPLITS, "all")
                yield from walk(value, path if inside or key == "splits" else (*path, key), key if inside else split)
        elif isinstance(node, int | float) and not isinstance(node, bool):
            yield split, " ".join(path), float(node)

    yield from walk(statistics, (), "all")


def _count(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
