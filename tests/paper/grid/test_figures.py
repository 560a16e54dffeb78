"""Figures of the grid: the numbers behind them, what of the paper is marked, and what they say when nothing ran."""

from __future__ import annotations

import shutil

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from drawn import hollow, texts
from PIL import Image

from plant.ground.files import read_json
from plant.paper.figures.grid import BANNER
from plant.paper.figures.grid_panels import draw_epochs
from plant.paper.figures.style import look, save
from plant.paper.grid.items import needs
from plant.paper.grid.points import EPOCH_SCHEMA, epoch_points, label_points, size_points
from plant.paper.values.transcription import load_values

VALUES = load_values()
FIGURES = ("figure_2", "figure_3", "figure_4", "figure_5")


def test_epoch_points_pair_ndcg_of_that_epoch_with_the_score_of_that_variant(world):
    world.run("mimic4_full_llama3_8b")
    data = epoch_points(world.grid, "mimic4_full", "llama3_8b", "macro_f1_all")
    inputs = world.paths["mimic4_full_llama3_8b"]
    assert data.select("epoch", "seed").rows() == [(epoch, seed) for epoch in world.epochs for seed in (0, 1)]
    for row in data.iter_rows(named=True):
        history = pl.read_parquet(inputs.pretrainings["mig"][row["seed"]] / "history.parquet")
        assert row["ndcg"] == history.get_column("ndcg_val")[row["epoch"] - 1]
        folder = inputs.evaluations[f"plant_{row['epoch']}_epochs"][row["seed"]]
        assert row["value"] == 100 * read_json(folder / "metrics.json")["macro_f1_all"]


def test_epochs_of_different_runs_of_stage_1_are_not_joined_by_a_line():
    runs = {"ten": ([1, 2], [0.6, 0.7], [20.0, 21.0]), "twenty": ([15, 20], [0.9, 0.8], [23.0, 22.0])}
    rows = [("plant", name, epoch, 0, x, y) for name, run in runs.items() for epoch, x, y in zip(*run, strict=True)]
    points = pl.DataFrame(rows, schema=EPOCH_SCHEMA, orient="row")
    axes = mpl.figure.Figure().add_subplot()
    draw_epochs(axes, points, values=VALUES, place=("mimic4_full", "no such backbone"), metric="macro_f1_all")
    joined = [line for line in axes.get_lines() if line.get_linestyle() == "-" and line.get_marker() == "o"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in joined] == [
        (x, y) for _, x, y in runs.values()
    ]


def test_size_points_are_the_sweep_and_the_whole_dataset(complete):
    _, data = size_points(complete.grid, "mimic4_full", "mistral_7b", ["p@5"])
    assert data.filter(system="plant", seed=0).get_column("documents").to_list() == list(complete.sizes)
    assert set(data.get_column("system")) == {"plant", "single_stage"}
    for row in data.iter_rows(named=True):
        folder = complete.paths[row["experiment"]].evaluations[row["system"]][row["seed"]]
        assert row["value"] == 100 * read_json(folder / "metrics.json")["p@5"]
    names = {"mimic4_full_mistral_7b", *(f"mimic4_full_n{size}" for size in complete.sizes[:-1])}
    assert set(data.get_column("experiment")) == names
    _, other = size_points(complete.grid, "mimic3_full", "mistral_7b", ["p@5"])  # of which label subsets are parts too
    assert set(other.get_column("experiment")) == {name.replace("mimic4", "mimic3") for name in names}


def test_label_points_average_seeds_and_leave_out_labels_without_test_documents(world):
    world.run("mimic3_few_mistral_7b")
    folders = world.paths["mimic3_few_mistral_7b"].evaluations["plant"]
    other = pl.read_parquet(folders[1] / "per_label.parquet").with_columns(f1=pl.lit(1.0))
    other.write_parquet(folders[1] / "per_label.parquet")
    first = pl.read_parquet(folders[0] / "per_label.parquet").filter(pl.col("n_test") > 0)
    data = label_points(world.grid, "mimic3_few", "mistral_7b", ("single_stage", "plant")).filter(system="plant")
    assert data.get_column("label").to_list() == first.get_column("label").to_list()
    assert np.allclose(data.get_column("f1"), 100 * (first.get_column("f1").to_numpy() + 1) / 2)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_ink_and_says_that_stand_ins_are_none_of_the_paper(complete, tmp_path, name):
    figure = complete.draw(name)
    assert BANNER in texts(figure)
    assert "Missing" not in texts(figure)
    with look():
        save(figure, tmp_path / name)
    pixels = np.asarray(Image.open(tmp_path / f"{name}.png").convert("L"))
    assert 0.003 < (pixels < 200).mean() < 0.5
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("name", "whole"), list(zip(FIGURES, ("mimic3", "mimic4", "mimic", "mimic"), strict=True)))
def test_with_nothing_run_a_figure_names_the_experiments_of_its_datasets(world, name, whole):
    text = texts(world.draw(name))
    assert "Not attempted" in text
    assert "target experiment_mimic" in text
    experiments, datasets = needs(name, world.settings)
    assert experiments and datasets == []
    assert all(world.settings.experiments[name].dataset.startswith(whole) for name in experiments)


def test_a_figure_of_which_half_has_run_shows_that_half_and_names_the_other(world):
    world.run("mimic3_few_mistral_7b")
    text = texts(world.draw("figure_2"))
    assert "not run yet" in text
    assert "Missing: not run yet: target experiment_mimic3_full_mistral_7b" in text
    assert "F1 of 299 labels" in text


def test_a_config_without_epoch_variants_is_told_what_figure_4_needs(world):
    config = world.settings.model_dump(mode="json")
    names = [name for name, variant in config["variants"].items() if variant["pretraining_epoch"]]
    for name in names:
        del config["variants"][name]
    for experiment in config["experiments"].values():
        experiment["variants"] = [name for name in experiment["variants"] if name not in names]
    world.settings = type(world.settings).model_validate(config)
    assert "no variant of this config has `pretraining_epoch`" in texts(world.draw("figure_4"))


def test_violins_print_our_mean_and_share_with_the_papers_in_brackets(world):
    world.run("mimic3_few_mistral_7b")
    for folder in world.paths["mimic3_few_mistral_7b"].evaluations["plant"]:
        table = pl.DataFrame({"label": list("abcde"), "n_train": 1, "n_test": 1, "f1": [0.0, 0.2, 0.8, 0.9, 0.6]})
        table.with_columns(ap=pl.col("f1")).write_parquet(folder / "per_label.parquet")
    figure = world.draw("figure_2")
    assert "50.0 [66.3]" in texts(figure)
    assert "40.0% [54.8%]" in texts(figure)
    assert {x for x, _ in hollow(figure.axes[1])} == {5.4, 30.8, 66.3}
    assert "[5.4]" in texts(figure)  # CoRelation is quoted and has no number of ours


def test_the_papers_points_stand_where_the_paper_has_them(complete):
    left, right = complete.draw("figure_3").axes[:2]
    assert hollow(left) == {(0.94, 23.0)}
    upright = [line for line in left.get_lines() if line.get_color() == "black" and np.ptp(line.get_xdata()) == 0]
    assert {float(line.get_xdata()[0]) for line in upright} == {0.68, 0.94}
    assert hollow(right) == {(1090, 50), (10337, 50), (2743, 37), (12902, 37)}
    assert hollow(complete.draw("figure_5").axes[0]) == {(136, 47), (1342, 47), (235, 30), (1578, 30)}


def test_planted_lines_are_solid_and_the_others_dashed(complete):
    axes = complete.draw("figure_5").axes[0]
    styles = {(line.get_linestyle(), line.get_color()) for line in axes.get_lines() if len(line.get_xdata()) == 5}
    assert {style for style, _ in styles} == {"-", "--"}
    assert len({colour for _, colour in styles}) == 2


def test_points_without_statistics_of_the_corpus_wait_for_it(world):
    world.run("mimic4_full_n50")
    shutil.rmtree(world.paths["mimic4_full_n50"].corpus)
    grid = world.grid
    _, data = size_points(grid, "mimic4_full", "mistral_7b", ["p@5"])
    assert data.is_empty()
    assert "mimic4_full_n50" in grid.to_run
