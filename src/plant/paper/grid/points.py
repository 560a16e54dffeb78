"""The numbers behind the paper's figures, from whatever has run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from plant.ground.files import read_json
from plant.ground.settings import Subset
from plant.paper.grid.results import Grid, measured_seeds
from plant.paper.inputs import LABEL_COLUMNS, Inputs, read_histories, read_table, seed_of
from plant.paper.systems import System, find_system, list_systems

LABEL_SCHEMA = pl.Schema({"system": pl.String(), "label": pl.String(), "n_train": pl.Int64(), "f1": pl.Float64()})
EPOCH_SCHEMA = pl.Schema({
    "variant": pl.String(), "recipe": pl.String(), "epoch": pl.Int64(), "seed": pl.Int64(), "ndcg": pl.Float64(),
    "value": pl.Float64(),
})  # fmt: skip
SIZE_SCHEMA = pl.Schema({
    "system": pl.String(), "documents": pl.Int64(), "seed": pl.Int64(), "value": pl.Float64(),
    "experiment": pl.String(),
})  # fmt: skip


@dataclass
class Points:
    """The numbers of a panel, and what is missing from it."""

    stand_in: bool = False
    data: pl.DataFrame = field(default_factory=pl.DataFrame)
    missing: dict[str, None] = field(default_factory=dict)
    """Reasons why numbers are missing."""
    to_run: dict[str, None] = field(default_factory=dict)
    """Experiments that have not run yet."""
    systems: tuple[System, ...] = ()
    """The lines of a panel by training size."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """System -> how it is printed."""


def label_points(grid: Grid, dataset: str, backbone: str, names: Sequence[str]) -> Points:
    """F1 of single labels of a dataset (figure 2), in percent, for the systems of these names.

    Returns:
        system, label, n_train, f1: one row for each label with test documents, averaged over the seeds that have run.
    """
    points, tables = _points(grid, dataset, names), [pl.DataFrame(schema=LABEL_SCHEMA)]
    for system, name, paths in _measured(grid, points, dataset, backbone, names):
        files = measured_seeds(paths, system, "per_label.parquet") if paths else {}
        if not files:
            points.to_run[name] = None
        for path in files.values():
            table = read_table(path, LABEL_COLUMNS).filter(pl.col("n_test") > 0)
            shown = table.select(pl.lit(system).alias("system"), "label", "n_train", pl.col("f1") * 100)
            tables.append(shown.cast(LABEL_SCHEMA))
    of_label = pl.concat(tables).group_by("system", "label", maintain_order=True)
    points.data = of_label.agg(pl.col("n_train").first(), pl.col("f1").mean())
    return points


def epoch_points(grid: Grid, dataset: str, backbone: str, metric: str) -> Points:
    """Stage 1 nDCG@k after each epoch against a metric after Stage 2 (figures 3 left and 4).

    Variants are those with `pretraining_epoch`; epochs of one recipe are epochs of one run.

    Returns:
        EPOCH_SCHEMA, one row for each variant and seed: nDCG@k of the validation split, a fraction (`ndcg_val` of the
        history of Stage 1), and the metric in percent.
    """
    variants = {
        name: variant for name, variant in grid.settings.variants.items() if variant.pretraining_epoch is not None
    }
    points, rows = _points(grid, dataset, variants), []
    if not variants:
        points.missing["no variant of this config has `pretraining_epoch`"] = None
    for variant, name, _ in _measured(grid, points, dataset, backbone, variants):
        recipe, epoch = variants[variant].pretraining, variants[variant].pretraining_epoch or 0
        values, reached = grid.by_seed(name, variant, metric), _ndcg(grid, name, recipe, epoch)
        both = sorted(values.keys() & reached.keys())
        if not both:
            points.to_run[name] = None
        rows += [(variant, recipe, epoch, seed, reached[seed], 100 * values[seed]) for seed in both]
    points.data = pl.DataFrame(rows, schema=EPOCH_SCHEMA, orient="row").sort("epoch", "seed")
    return points


def size_points(grid: Grid, dataset: str, backbone: str, metric: str) -> Points:
    """A metric by number of training documents (figures 3 right and 5), in percent.

    Sizes are the experiments without a report on subsets of the dataset that cut its training split (`train_size`), and
    those on the whole dataset that hold the same variants.

    Returns:
        SIZE_SCHEMA, one row for each system, size and seed.
    """
    settings, points = grid.settings, Points(grid.is_stand_in(dataset))
    parts = {
        name
        for name, part in settings.datasets.items()
        if isinstance(part, Subset) and part.of == dataset and part.train_size is not None
    }
    sweep = [
        name
        for name, each in settings.experiments.items()
        if each.backbone == backbone and each.dataset in parts and not each.report
    ]
    if not sweep:
        points.missing[f"no experiment of this config is on a `train_size` of {dataset} with {backbone}"] = None
    listed = (system for name in sweep for system in list_systems(settings, settings.experiments[name]))
    points.systems = tuple({system.name: system for system in listed if system.kind != "no network"}.values())
    rows = []
    for system in [system.name for system in points.systems]:
        whole = grid.find(dataset, backbone, [system]).name
        for name in [*sweep, *([] if whole is None else [whole])]:
            if system not in settings.experiments[name].variants:
                continue
            grid.experiments[name] = None
            corpus = Path(grid.paths[name].corpus) / "statistics.json" if name in grid.paths else None
            values = grid.by_seed(name, system, metric) if corpus is not None and corpus.is_file() else {}
            if corpus is None or not values:
                points.to_run[name] = None
                continue
            documents = read_json(corpus)["splits"]["train"]["documents"]
            rows += [(system, documents, seed, 100 * value, name) for seed, value in values.items()]
    points.data = pl.DataFrame(rows, schema=SIZE_SCHEMA, orient="row").sort("documents", "seed")
    return points


def training_points(grid: Grid, dataset: str, backbone: str, names: Sequence[str]) -> Points:
    """Training loss and validation macro-F1 (in percent) after each epoch of Stage 2 (figure 5 of the earlier version).

    Returns:
        name, seed, epoch, loss, macro_f1: one row for each epoch of each run.
    """
    points, folders = _points(grid, dataset, names), {}
    for system, name, paths in _measured(grid, points, dataset, backbone, names):
        runs = paths.finetunings.get(system, ()) if paths else ()
        folders[system] = [folder for folder in map(Path, runs) if (folder / "history.parquet").is_file()]
        if not folders[system]:
            points.to_run[name] = None
    points.data = read_histories(folders, ("loss", "macro_f1")).with_columns(pl.col("macro_f1") * 100)
    return points


def _points(grid: Grid, dataset: str, names: Iterable[str]) -> Points:
    """No numbers yet, and the titles of variants."""
    variants = grid.settings.variants
    titles = {name: find_system(grid.settings, name).title for name in names if name in variants}
    return Points(grid.is_stand_in(dataset), titles=titles)


def _measured(
    grid: Grid, points: Points, dataset: str, backbone: str, systems: Iterable[str]
) -> Iterator[tuple[str, str, Inputs | None]]:
    """Each system, the experiment that measures it, and its paths. Where there is none, `points` gets the reason."""
    for system in systems:
        match = grid.find(dataset, backbone, [system])
        if match.name is None:
            points.missing[match.why] = None
        else:
            yield system, match.name, grid.paths.get(match.name)


def _ndcg(grid: Grid, name: str, recipe: str, epoch: int) -> dict[int, float]:
    """Seed -> nDCG@k on validation after an epoch of Stage 1."""
    folders: Sequence[Path] = grid.paths[name].pretrainings.get(recipe, ()) if name in grid.paths else ()
    reached = {}
    for folder in map(Path, folders):
        if (history := folder / "history.parquet").is_file():
            values = read_table(history, ["epoch", "ndcg_val"]).filter(epoch=epoch).get_column("ndcg_val")
            if len(values):
                reached[seed_of(folder)] = float(values[0])
    return reached
