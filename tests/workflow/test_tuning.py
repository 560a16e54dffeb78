"""Target `tune` as users start it: a small grid is trained, and the experiment takes what it chose."""

import csv
import json

import yaml

GRID = {
    "experiment": "small", "variants": ["plant", "random_init"], "head_learning_rate": [0.00002, 0.005],
    "learning_rate": [0.00002], "epochs": 2, "patience": 1,
}  # fmt: skip


def test_a_small_grid_is_trained_and_the_experiment_takes_its_choice(tmp_path, snakemake, config):
    config |= {"tunings": {"first": GRID}}
    made = snakemake(tmp_path, config, "tune_first", "--show-failed-logs")
    assert made.returncode == 0, made.stdout[-3000:]
    assert not list(tmp_path.rglob("*.scores.parquet"))  # nothing is predicted, test is not read
    assert len(list(tmp_path.glob("results/pretraining/small/tiny/*/seed0"))) == 1  # shared by the points of an arm
    with (tmp_path / "results/tuning/first/grid.csv").open(encoding="utf-8", newline="") as handle:
        points = {(row["arm"], float(row["head_learning_rate"])) for row in csv.DictReader(handle)}
    assert points == {(arm, rate) for arm in GRID["variants"] for rate in GRID["head_learning_rate"]}
    chosen = yaml.safe_load((tmp_path / "results/tuning/first/chosen.yaml").read_text(encoding="utf-8"))
    taken = chosen["tuned"]["small/tiny/plant+focal"]
    again = snakemake(tmp_path, config | chosen, "results/finetuning/small/tiny/plant+focal/seed0/history.parquet")
    assert again.returncode == 0, again.stdout[-3000:]
    sidecar = tmp_path / "results/finetuning/small/tiny/plant+focal/seed0/provenance.json"
    recipe = json.loads(sidecar.read_text(encoding="utf-8"))["settings"]["finetuning"]
    assert recipe.items() >= taken.items()
    assert taken.keys() == {"head_learning_rate", "learning_rate", "epochs", "patience"}


def test_tunings_are_no_part_of_all(tmp_path, snakemake, config):
    plain = snakemake(tmp_path, config, "--dry-run", "--quiet", "rules")
    assert plain.returncode == 0, plain.stdout
    assert "head0.005" in snakemake(tmp_path, config | {"tunings": {"first": GRID}}, "--dry-run", "tune").stdout
    assert "head0.005" not in snakemake(tmp_path, config | {"tunings": {"first": GRID}}, "--dry-run").stdout
