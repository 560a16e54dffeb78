"""What the results rest on: the corpus in numbers, and the cost of every stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant.ground.files import read_json
from plant.paper.contents import ReportTable
from plant.paper.costs import MEASURES, STAGE1, STAGE2, cost_cells
from plant.paper.experiment.data import ExperimentData
from plant.paper.render import Table, row_of
from plant.paper.wording import MISSING, metric_title, percent

SPLITS = ("train", "val", "test")
_COST_COLUMNS: dict[str, Any] = {
    "stage": pl.String, "name": pl.String, "seed": pl.Int64, "epochs": pl.Int64, **MEASURES, "device": pl.String,
}  # fmt: skip
_CEILING = "ceilings "
_FIRST = ("documents", "groups", "labels_present", "assignments", "labels_per_document", "words_per_document")
"""The rows of the paper's Table 7. They come first."""


def corpus_table(data: ExperimentData) -> Table:
    """The corpus' statistics.json: one row per statistic, one column per split. `all` holds what has no split.

    Quartiles have the form of the paper's Table 7: median (first quartile to third).
    """
    numbers = list(_flatten(read_json(Path(data.inputs.corpus) / "statistics.json")))
    shown = {(split, name): _value(name, value) for split, name, value in numbers}
    for split, name in list(shown):
        if name.endswith(" median"):
            base = name.removesuffix(" median")
            low, high = (shown.pop((split, f"{base} quartile_{n}"), MISSING) for n in (1, 3))
            shown[split, name] += f" ({low}\N{EN DASH}{high})"
    order = {name: place for place, name in enumerate(_FIRST)}
    seen = dict.fromkeys(name for _, name in shown)
    names = sorted(seen, key=lambda name: order.get(name.split(" ")[0], len(order)))
    columns = (*SPLITS, "all")
    schema = {"split": pl.String, "statistic": pl.String, "value": pl.Float64}
    return Table(
        columns=("Statistic", *columns),
        rows=tuple(row_of(_title(name), *(shown.get((split, name), MISSING) for split in columns)) for name in names),
        data=pl.DataFrame(numbers, schema=schema, orient="row"),
    )


CORPUS = ReportTable(
    name="corpus",
    function="corpus_table",
    section="corpus",
    place=1,
    heading="Corpus",
    caption="the corpus in numbers",
    title="Corpus",
    notes="""
Median with first and third quartile in parentheses. Labels that occur in test or val but not in train are kept and
cannot be predicted (choice C14).
""",
)


def _title(name: str) -> str:
    """How a statistic is printed.

    >>> _title("labels_per_document median")
    'labels per document: median'
    >>> _title("ceilings p@5")
    'highest possible P@5 (test, ×100)'
    """
    if name.startswith(_CEILING):
        return f"highest possible {metric_title(name.removeprefix(_CEILING))} (test, ×100)"
    return name.replace(" ", ": ").replace("_", " ")


def _flatten(node: Any, path: tuple[str, ...] = (), split: str = "all") -> Iterator[tuple[str, str, float]]:
    """(split or "all", name, number) of a nested JSON object, in file order. Names are joined by spaces."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in (*SPLITS, "all"):
                yield from _flatten(value, path, key)
            else:
                yield from _flatten(value, path if key == "splits" else (*path, key), split)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield split, " ".join(path), float(node)


def _value(name: str, value: float) -> str:
    if name.startswith(_CEILING):
        return percent(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def cost_table(data: ExperimentData) -> Table:
    """Wall time, memory, trained weights and energy of every stage. The runs of a stage and name are its seeds."""
    frame = pl.DataFrame(data.costs, schema=_COST_COLUMNS, strict=False)
    systems = {system.name: system.title for system in data.systems}
    networks = {name: system.title for name, system in data.networks.items()}
    titles: dict[str, dict[str, str]] = {STAGE1: {}, STAGE2: networks}
    rows = []
    for (stage, name), runs in frame.group_by("stage", "name", maintain_order=True):
        title = titles.get(str(stage), systems).get(str(name), name)
        rows.append(row_of(
            f"{stage}: {title}" if name else f"{stage}", f"{runs.height}", _span(runs["epochs"].drop_nulls().to_list()),
            *cost_cells(runs), ", ".join(sorted(runs["device"].unique())),
        ))  # fmt: skip
    return Table(
        columns=(
            "Stage", "Runs", "Epochs run", "Wall time a run (mean)", "Peak memory", "Peak device memory",
            "Weights trained", "Energy a run (mean)", "Device",
        ),
        rows=tuple(rows),
        data=frame,
    )  # fmt: skip


COST = ReportTable(
    name="cost",
    function="cost_table",
    section="costs",
    place=1,
    heading="Costs",
    caption="time, memory, trained weights and energy of every stage",
    title="Cost of every stage",
    notes="""
Epochs run are those that training really ran; the best one on validation is kept (choice C16).

Wall time is that of the job, without the start of Python. Peak memory is the largest of the runs.

Energy is that of the devices, over the runs that measured it. The energy of processors is not measured.
""",
)


def _span(epochs: Sequence[int]) -> str:
    """The smallest and the largest number of epochs of the runs.

    >>> _span([12, 12]), _span([4, 9, 12]), _span([])
    ('12', '4 to 12', '–')
    """
    return MISSING if not epochs else " to ".join(map(str, sorted({min(epochs), max(epochs)})))
