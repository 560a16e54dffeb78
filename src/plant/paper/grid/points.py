"""The numbers behind the paper's figures, from whatever has run. The grid keeps the reasons why numbers are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from plant.ground.files import read_json
from plant.ground.settings import Subset
from plant.paper.grid.results import Grid
from plant.paper.inputs import LABEL_COLUMNS, read_histories, read_table
from plant.paper.systems import System, list_systems

LABEL_SCHEMA = pl.Schema({"system": pl.String(), "label": pl.String(), "n_train": pl.Int64(), "f1": pl.Float64()})
EPOCH_SCHEMA = pl.Schema({
    "variant": pl.String(), "recipe": pl.String(), "epoch": pl.Int64(), "seed": pl.Int64(), "ndcg": pl.Float64(),
    "value": pl.Float64(),
})  # fmt: skip
SIZE_SCHEMA = pl.Schema({
    "metric": pl.String(), "system": pl.String(), "documents": pl.Int64(), "seed": pl.Int64(), "value": pl.Float64(),
    "experiment": pl.String(),
})  # fmt: skip


def label_points(grid: Grid, dataset: str, backbone: str, names: Sequence[str]) -> pl.DataFrame:
    """F1 of single labels of a dataset (figure 2), in percent, for the systems of these names.

    Returns:
        system, label, n_train, f1: one row for each label with test documents, averaged over the seeds that have run.
    """
    tables = [pl.DataFrame(schema=LABEL_SCHEMA)]
    for system, name in _measured(grid, dataset, backbone, names):
        files = grid.files(name, "evaluations", system, "per_label.parquet")
        if not files:
            grid.to_run[name] = None
        for path in files.values():
            table = read_table(path, LABEL_COLUMNS).filter(pl.col("n_test") > 0)
            shown = table.select(pl.lit(system).alias("system"), "label", "n_train", pl.col("f1") * 100)
            tables.append(shown.cast(LABEL_SCHEMA))
    of_label = pl.concat(tables).group_by("system", "label", maintain_order=True)
    return of_label.agg(pl.col("n_train").first(), pl.col("f1").mean())


def epoch_points(grid: Grid, dataset: str, backbone: str, metric: str) -> pl.DataFrame:
    """Stage 1 nDCG@k after each epoch against a metric after Stage 2 (figures 3 left and 4).

    Variants are those with `pretraining_epoch`; epochs of one recipe are epochs of one run.

    Returns:
        EPOCH_SCHEMA, one row for each variant and seed: nDCG@k of the validation split, a fraction (`ndcg_val` of the
        history of Stage 1), and the metric in percent.
    """
    variants = {
        name: variant for name, variant in grid.settings.variants.items() if variant.pretraining_epoch is not None
    }
    if not variants:
        grid.missing["no variant of this config has `pretraining_epoch`"] = None
    rows = []
    for variant, name in _measured(grid, dataset, backbone, variants):
        recipe, epoch = variants[variant].pretraining, variants[variant].pretraining_epoch
        stage1 = read_histories({recipe: _with_history(grid, name, "pretrainings", recipe)}, ["ndcg_val"])
        reached = dict(stage1.filter(epoch=epoch).select("seed", "ndcg_val").iter_rows())
        values = grid.by_seed(name, variant, metric)
        both = sorted(values.keys() & reached.keys())
        if not both:
            grid.to_run[name] = None
        rows += [(variant, recipe, epoch, seed, reached[seed], 100 * values[seed]) for seed in both]
    return pl.DataFrame(rows, schema=EPOCH_SCHEMA, orient="row").sort("epoch", "seed")


def size_points(
    grid: Grid, dataset: str, backbone: str, metrics: Sequence[str]
) -> tuple[tuple[System, ...], pl.DataFrame]:
    """Metrics by number of training documents (figures 3 right and 5), in percent.

    Sizes are the experiments without a report on subsets of the dataset that cut its training split (`train_size`), and
    those on the whole dataset that hold the same variants.

    Returns:
        The networks, which are the lines, and SIZE_SCHEMA, one row for each metric, system, size and seed.
    """
    settings = grid.settings
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
        grid.missing[f"no experiment of this config is on a `train_size` of {dataset} with {backbone}"] = None
    listed = (system for name in sweep for system in list_systems(settings, settings.experiments[name]))
    systems = {system.name: system for system in listed if system.kind != "no network"}
    rows = []
    for metric, system in ((metric, system) for metric in metrics for system in systems):
        whole = grid.find(dataset, backbone, [system]).name
        for name in [*sweep, *([] if whole is None else [whole])]:
            if system not in settings.experiments[name].variants:
                continue
            grid.experiments[name] = None
            corpus = grid.paths[name].corpus / "statistics.json" if name in grid.paths else None
            values = grid.by_seed(name, system, metric)
            if corpus and corpus.is_file() and values:
                documents = read_json(corpus)["splits"]["train"]["documents"]
                rows += [(metric, system, documents, seed, 100 * value, name) for seed, value in values.items()]
            else:
                grid.to_run[name] = None
    return tuple(systems.values()), pl.DataFrame(rows, schema=SIZE_SCHEMA, orient="row").sort("documents", "seed")


def frequency_points(grid: Grid, dataset: str) -> pl.DataFrame:
    """Documents of each label of a dataset in all splits (figure 4 of the earlier version).

    Returns:
        documents: one row for each label that has a document, the most frequent first.
    """
    path, _, why = grid.corpus_file(dataset, "labels.parquet")
    if path is None:
        grid.missing[why] = None
        return pl.DataFrame(schema={"documents": pl.Int64})
    labels = read_table(path, ("n_train", "n_val", "n_test"))
    documents = labels.select(documents=pl.sum_horizontal(pl.col("n_train", "n_val", "n_test").cast(pl.Int64)))
    return documents.filter(pl.col("documents") > 0).sort("documents", descending=True)


def training_points(grid: Grid, dataset: str, backbone: str, names: Sequence[str]) -> pl.DataFrame:
    """Training loss and validation macro-F1 (in percent) after each epoch of Stage 2 (figure 5 of the earlier version).

    Returns:
        name, seed, epoch, loss, macro_f1: one row for each epoch of each run.
    """
    folders: dict[str, list[Path]] = {}
    for system, name in _measured(grid, dataset, backbone, names):
        folders[system] = _with_history(grid, name, "finetunings", system)
        if not folders[system]:
            grid.to_run[name] = None
    return read_histories(folders, ("loss", "macro_f1")).with_columns(pl.col("macro_f1") * 100)


def _with_history(grid: Grid, experiment: str, runs: str, name: str) -> list[Path]:
    """Those folders of a recipe or variant that have a history."""
    return [file.parent for file in grid.files(experiment, runs, name, "history.parquet").values()]


def _measured(grid: Grid, dataset: str, backbone: str, systems: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each system, and the experiment that measures it. Where there is none, the grid gets the reason."""
    for system in systems:
        match = grid.find(dataset, backbone, [system])
        if match.name is None:
            grid.missing[match.why] = None
        else:
            yield system, match.name
