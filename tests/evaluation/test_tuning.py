"""Tuning: a grid of histories whose right choice is known by hand, and the config that it becomes."""

import copy
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from plant.evaluation.tuning import choose, find_doubts, read_grid, write_choice
from plant.ground.errors import InputError
from plant.ground.files import write_json, write_table
from plant.ground.settings import Settings, Tuning, further_runs, load, runs_of_arms, tuning_points

HEADS, RATES = (0.00002, 0.0002, 0.002), (0.001, 0.01, 0.1)
CONFIG: dict[str, Any] = {
    "datasets": {"notes": {"source": "mimic3", "generate": {}}, "other": {"source": "mimic3", "generate": {}}},
    "backbones": {"tiny": {"kind": "random"}},
    "pretrainings": {"plant": {}, "control": {"measure": "random"}},
    "finetunings": {"focal": {"gamma": 1.5, "patience": None}, "long": {"epochs": 20}, "bce": {"gamma": 0}},
    "variants": {
        "plant": {"pretraining": "plant", "finetuning": "focal"},
        "single": {"finetuning": "long"},
        "plant_bce": {"pretraining": "control", "finetuning": "bce"},
        "single_bce": {"finetuning": "bce"},
    },
    "experiments": {
        "cheap": {"dataset": "notes", "backbone": "tiny", "variants": ["plant", "single"], "reference": "plant"},
        "dear": {"dataset": "other", "backbone": "tiny", "reference": "plant",
                 "variants": ["plant", "plant_bce", "single_bce"]},
    },
    "tunings": {
        "notes": {"experiment": "cheap", "variants": ["plant", "single"], "head_learning_rate": list(HEADS),
                  "learning_rate": list(RATES), "epochs": 6, "patience": 2, "seeds": [0, 1], "also": ["dear"]},
    },
}  # fmt: skip
RISES_AND_WAITS = [0.1, 0.3, 0.2, 0.3]
"""Best at epoch 2; the equal value of epoch 4 comes later, and patience 2 ends the run there."""
RISES_TO_THE_END = [0.1, 0.1, 0.2, 0.2, 0.3, 0.5]


def changed(path: str, value: Any) -> dict[str, Any]:
    """CONFIG with one key set."""
    config = copy.deepcopy(CONFIG)
    *parents, key = path.split(".")
    node = config
    for parent in parents:
        node = node[parent]
    node[key] = value
    return config


def write_runs(folder: Path, scores: dict[tuple[str, float, float, int], list[float]]) -> pl.DataFrame:
    """The grid of `CONFIG` read back from files: a flat .1 but for (arm, head rate, rate, seed) -> macro-F1."""
    settings = load(CONFIG)
    tuning, points = settings.tunings["notes"], tuning_points(settings, "notes")
    for arm, networks in points.items():
        for network, point in networks.items():
            for seed in tuning.seeds:
                run = folder / network / f"seed{seed}"
                values = scores.get((arm, point.head_learning_rate, point.learning_rate, seed), [0.1, 0.1, 0.1])
                write_table(run / "history.parquet", [{"epoch": n, "macro_f1": v} for n, v in enumerate(values, 1)])
                write_json(run / "provenance.json", {"resources": {"wall_seconds": 12.5}})
    return read_grid(points, folder, tuning)


def test_every_arm_gets_every_point_of_the_grid_and_keeps_what_the_grid_does_not_name() -> None:
    settings = load(CONFIG)
    found = {
        arm: {(point.head_learning_rate, point.learning_rate) for point in networks.values()}
        for arm, networks in tuning_points(settings, "notes").items()
    }
    everything = {(head, rate) for head in HEADS for rate in RATES}
    assert found == {"plant": everything, "single": everything}
    recipe = settings.stage2("notes", "tiny", "plant+focal.head0.002.lr0.1.epochs6.patience2")
    assert (recipe.head_learning_rate, recipe.learning_rate, recipe.epochs, recipe.patience) == (0.002, 0.1, 6, 2)
    assert recipe.gamma == 1.5
    assert set(settings.finetunings) == {"focal", "long", "bce"}  # what tables and experiments know


def test_the_best_mean_over_seeds_is_chosen_not_the_best_run(tmp_path) -> None:
    lucky = {("plant", 0.002, 0.1, 0): [0.9, 0.1, 0.1]}  # mean .5
    steady = {("plant", 0.0002, 0.01, seed): [0.6, 0.1, 0.1] for seed in (0, 1)}
    assert choose(write_runs(tmp_path, lucky | steady))["plant"] == {
        "head_learning_rate": 0.0002,
        "learning_rate": 0.01,
    }


def test_equal_points_give_the_smaller_rate_of_the_head_then_of_the_encoder(tmp_path) -> None:
    same = [(0.002, 0.001), (0.0002, 0.1), (0.0002, 0.01)]
    grid = write_runs(tmp_path, {("single", *rates, seed): [0.4, 0.4, 0.4] for rates in same for seed in (0, 1)})
    for rows in (grid, grid.reverse()):
        assert choose(rows)["single"] == {"head_learning_rate": 0.0002, "learning_rate": 0.01}


def test_equal_epochs_keep_the_first_and_patience_counts_from_it(tmp_path) -> None:
    grid = write_runs(tmp_path, {("plant", 0.002, 0.1, 0): RISES_AND_WAITS, ("plant", 0.002, 0.1, 1): RISES_TO_THE_END})
    own = grid.filter(pl.col("arm") == "plant", head_learning_rate=0.002, learning_rate=0.1)
    kept = own.filter("kept").sort("seed")
    assert kept["epoch"].to_list() == [2, 6]
    assert kept["patience_ended"].to_list() == [True, False]
    assert own["seconds"].to_list() == [12.5] * 10


def test_an_edge_of_the_grid_and_a_run_that_was_not_at_its_end_are_said_with_the_arm(tmp_path) -> None:
    best = {("plant", 0.0002, 0.01, seed): RISES_AND_WAITS for seed in (0, 1)}
    best |= {("single", 0.002, 0.001, seed): RISES_TO_THE_END for seed in (0, 1)}
    grid = write_runs(tmp_path, best)
    doubts = find_doubts(grid, choose(grid), load(CONFIG).tunings["notes"])
    assert [doubt.partition(":")[0] for doubt in doubts] == ["single"] * 3
    assert "head_learning_rate, 0.002, is the largest" in doubts[0]
    assert "learning_rate, 0.001, is the smallest" in doubts[1]
    assert "did not end 2 of 18 runs, 2 of them with the chosen rates" in doubts[2]


def test_a_rate_with_one_value_has_no_edge(tmp_path) -> None:
    tuning = load(CONFIG).tunings["notes"].model_copy(update={"learning_rate": (0.001,)})
    grid = write_runs(tmp_path, {("plant", 0.0002, 0.001, seed): RISES_AND_WAITS for seed in (0, 1)})
    chosen = {"plant": {"head_learning_rate": 0.0002, "learning_rate": 0.001}}
    assert find_doubts(grid, chosen, tuning) == []


def take_choice(folder: Path) -> Settings:
    """CONFIG with the choice of a grid laid over it: (.0002, .01) for plant, (.002, .001) for single."""
    best = {("plant", 0.0002, 0.01, seed): RISES_AND_WAITS for seed in (0, 1)}
    best |= {("single", 0.002, 0.001, seed): RISES_AND_WAITS for seed in (0, 1)}
    settings = load(CONFIG)
    write_choice(
        write_runs(folder, best), settings.tunings["notes"], runs=runs_of_arms(settings, "notes"),
        also=further_runs(settings, "notes"), table=folder / "grid.csv", config=folder / "chosen.yaml",
    )  # fmt: skip
    return load(CONFIG | yaml.safe_load((folder / "chosen.yaml").read_text(encoding="utf-8")))


def test_the_written_choice_is_a_config_that_gives_the_run_the_rates_of_its_point(tmp_path) -> None:
    settings = take_choice(tmp_path)
    recipe = settings.stage2("notes", "tiny", "plant+focal")
    assert recipe == settings.stage2("notes", "tiny", "plant+focal.head0.0002.lr0.01.epochs6.patience2")
    assert settings.stage2_of(settings.experiments["cheap"], "single").head_learning_rate == 0.002
    grid = pl.read_csv(tmp_path / "grid.csv")
    assert grid.group_by("arm", "head_learning_rate", "learning_rate", "seed").len().height == 2 * 9 * 2


def test_other_experiments_take_the_rates_of_the_arm_that_is_most_like_theirs_and_keep_their_epochs(tmp_path) -> None:
    settings = take_choice(tmp_path)
    dear = settings.experiments["dear"]
    rates = {name: settings.stage2_of(dear, name).head_learning_rate for name in dear.variants}
    assert rates == {"plant": 0.0002, "plant_bce": 0.0002, "single_bce": 0.002}
    for name in dear.variants:
        own = settings.finetunings[settings.variants[name].finetuning]
        recipe = settings.stage2_of(dear, name)
        assert (recipe.epochs, recipe.patience, recipe.gamma) == (own.epochs, own.patience, own.gamma)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("tunings.notes.experiment", "cheep", "tunings.notes.experiment: unknown name 'cheep'. Did you mean 'cheap'?"),
        ("tunings.notes.also", ["deer"], "tunings.notes.also: unknown name 'deer'. Did you mean 'dear'?"),
        ("tunings.notes.variants", ["plan"], "cheap has no 'plan'. Did you mean 'plant'?"),
        ("finetunings", {**CONFIG["finetunings"], "focal.head0.002.lr0.1.epochs6.patience2": {}},
         "this name belongs to a point of tunings.notes"),
        ("tuned", {"notes/tiny/plan+focal": {"head_learning_rate": 0.1, "learning_rate": 0.1}},
         "no experiment has a run 'notes/tiny/plan+focal'. Did you mean 'notes/tiny/plant+focal'?"),
    ],
)  # fmt: skip
def test_a_tuning_that_cannot_run_and_a_choice_of_no_run_are_refused(path: str, value: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        load(changed(path, value))
    assert said in str(error.value)


def test_points_that_differ_in_anything_have_other_names() -> None:
    grid = load(CONFIG).tunings["notes"]
    names = {
        name
        for tuning in (grid, grid.model_copy(update={"epochs": 7}), grid.model_copy(update={"patience": 3}))
        for name in Tuning.points(tuning, "focal")
    }
    assert len(names) == 3 * len(HEADS) * len(RATES)
