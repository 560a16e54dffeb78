"""The numbers behind the paper's figures 2 to 5, from whatever has run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from plant.ground.files import read_json
from plant.ground.settings import Subset
from plant.paper.grid.results import Grid, measured_seeds
from plant.paper.inputs import LABEL_COLUMNS, read_table, seed_of
from plant.paper.systems import System, list_systems

SYSTEMS = ("single_stage", "plant")
"""Of figure 2, in the order of the paper."""
_NUMBERS = {"n_train": pl.Int64(), "epoch": pl.Int64(), "documents": pl.Int64(), "seed": pl.Int64()} | dict.fromkeys(
    ("f1", "ndcg", "value"), pl.Float64()
)


def _schema(*columns: str) -> pl.Schema:
    return pl.Schema({name: _NUMBERS.get(name, pl.String()) for name in columns})


LABEL_SCHEMA = _schema("system", "label", "n_train", "f1")
EPOCH_SCHEMA = _schema("variant", "recipe", "epoch", "seed", "ndcg", "value")
SIZE_SCHEMA = _schema("system", "documents", "seed", "value", "experiment")


@dataclass(frozen=True)
class Points:
    """Numbers of a panel, and what is missing from it: reasons, and experiments that have not run."""

    data: pl.DataFrame
    missing: tuple[str, ...] = ()
    to_run: tuple[str, ...] = ()
    """Experiments that have not run yet."""
    stand_in: bool = False
    systems: tuple[System, ...] = ()
    """The lines of a panel by training size."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """System -> how it is printed."""


def label_points(grid: Grid, dataset: str, backbone: str) -> Points:
    """F1 of single labels of a dataset (figure 2), in percent.

    Returns:
        system, label, n_train, f1: a row a label with test documents, averaged over the seeds that have run.
    """
    tables = [pl.DataFrame(schema=LABEL_SCHEMA)]
    missing: dict[str, None] = {}
    to_run: dict[str, None] = {}
    for system in SYSTEMS:
        match = grid.find(dataset, backbone, [system])
        if match.name is None:
            missing[match.why] = None
            continue
        files = measured_seeds(grid.paths[match.name], system, "per_label.parquet") if match.name in grid.paths else {}
        if not files:
            to_run[match.name] = None
        for path in files.values():
            table = read_table(path, LABEL_COLUMNS).filter(pl.col("n_test") > 0)
            shown = table.select(pl.lit(system).alias("system"), "label", "n_train", pl.col("f1") * 100)
            tables.append(shown.cast(LABEL_SCHEMA))
    keys = ["system", "label"]
    mean = pl.concat(tables).group_by(keys, maintain_order=True).agg(pl.col("n_train").first(), pl.col("f1").mean())
    titles = {name: grid.settings.variants[name].title or name for name in SYSTEMS if name in grid.settings.variants}
    return Points(mean, tuple(missing), tuple(to_run), grid.is_stand_in(dataset), titles=titles)


def epoch_points(grid: Grid, dataset: str, backbone: str, metric: str) -> Points:
    """Stage 1 nDCG@k after each epoch against a metric after Stage 2 (figures 3 left and 4), a row a variant and seed.

    Variants are those with `pretraining_epoch`; nDCG@k is that of the validation split (column ndcg_val of the history
    of the Stage 1 run), a fraction; the metric is in percent. Epochs of one recipe are those of one run.
    """
    settings = grid.settings
    names = [name for name, recipe in settings.variants.items() if recipe.pretraining_epoch is not None]
    rows: list[tuple[str, str, int, int, float, float]] = []
    missing: dict[str, None] = {} if names else {"no variant of this config has `pretraining_epoch`": None}
    to_run: dict[str, None] = {}
    for name in names:
        match = grid.find(dataset, backbone, [name])
        if match.name is None:
            missing[match.why] = None
            continue
        recipe = settings.variants[name]
        epoch = recipe.pretraining_epoch or 0
        values = grid.by_seed(match.name, name, metric)
        reached = _ndcg(grid, match.name, recipe.pretraining, epoch)
        both = sorted(values.keys() & reached.keys())
        if not both:
            to_run[match.name] = None
        rows += [(name, recipe.pretraining, epoch, seed, reached[seed], 100 * values[seed]) for seed in both]
    data = pl.DataFrame(rows, schema=EPOCH_SCHEMA, orient="row").sort("epoch", "seed")
    return Points(data, tuple(missing), tuple(to_run), grid.is_stand_in(dataset))


def size_points(grid: Grid, dataset: str, backbone: str, metric: str) -> Points:
    """A metric by number of training documents (figures 3 right and 5), one row a system, size and seed, in percent.

    Sizes are the experiments on subsets of the dataset that cut its training split (`train_size`), and those on the
    whole dataset that hold the same variants.
    """
    settings = grid.settings
    sweep = [
        name
        for name, each in settings.experiments.items()
        if each.backbone == backbone and _is_size_of(grid, each.dataset, dataset)
    ]
    systems = {
        system.name: system
        for name in sweep
        for system in list_systems(settings, settings.experiments[name])
        if system.kind != "no network"
    }
    whole = {system: grid.find(dataset, backbone, [system]).name for system in systems}
    rows: list[tuple[str, int, int, float, str]] = []
    missing: dict[str, None] = {}
    to_run: dict[str, None] = {}
    if not sweep:
        missing[f"no experiment of this config is on a `train_size` of {dataset} with {backbone}"] = None
    for system in systems:
        for name in [*sweep, *([whole[system]] if whole[system] is not None else [])]:
            if name is None or system not in settings.experiments[name].variants:
                continue
            grid.experiments[name] = None
            measured = list(_sizes(grid, name, system, metric))
            if not measured:
                to_run[name] = None
            rows += measured
    data = pl.DataFrame(rows, schema=SIZE_SCHEMA, orient="row").sort("documents", "seed")
    return Points(data, tuple(missing), tuple(to_run), grid.is_stand_in(dataset), tuple(systems.values()))


def _sizes(grid: Grid, name: str, system: str, metric: str) -> Iterator[tuple[str, int, int, float, str]]:
    statistics = Path(grid.paths[name].corpus) / "statistics.json" if name in grid.paths else None
    if statistics is None or not statistics.is_file():
        return
    documents = read_json(statistics)["splits"]["train"]["documents"]
    for seed, value in grid.by_seed(name, system, metric).items():
        yield system, documents, seed, 100 * value, name


def _is_size_of(grid: Grid, part: str, whole: str) -> bool:
    settings = grid.settings.datasets[part]
    return isinstance(settings, Subset) and settings.of == whole and settings.train_size is not None


def _ndcg(grid: Grid, name: str, recipe: str, epoch: int) -> dict[int, float]:
    """Seed -> nDCG@k on validation after an epoch of Stage 1."""
    folders: Sequence[Path] = grid.paths[name].pretrainings.get(recipe, ()) if name in grid.paths else ()
    reached = {}
    for folder in map(Path, folders):
        history = folder / "history.parquet"
        if history.is_file():
            values = read_table(history, ["epoch", "ndcg_val"]).filter(epoch=epoch).get_column("ndcg_val")
            if len(values):
                reached[seed_of(folder)] = float(values[0])
    return reached
