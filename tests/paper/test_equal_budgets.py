"""The table of equal budgets, against hand-made curves and a loop over them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from plant.ground.files import read_json, write_json
from plant.paper.experiment.budgets import budget_table
from plant.paper.experiment.tables import build_tables
from plant.paper.wording import percent

STAGE1_EPOCHS, STAGE1_SECONDS = 4, 20.0  # of the toy experiment's files


def overwrite(folder, curve: list[float], seconds: float) -> None:
    epochs = range(1, len(curve) + 1)
    pl.DataFrame({"epoch": epochs, "loss": 0.0, "macro_f1": curve, "threshold": 0.0}).write_parquet(
        folder / "history.parquet"
    )
    record = read_json(folder / "provenance.json")
    record["resources"]["cpu_seconds"] = seconds
    write_json(folder / "provenance.json", record)


def test_networks_are_compared_within_the_passes_and_the_seconds_of_the_references_best_epoch(toy):
    for seed in range(3):
        # The reference, after Stage 1: best in epoch 2, so 6 passes and 20 + 2 * 10 = 40 seconds.
        overwrite(toy.inputs.finetunings["plant"][seed], [0.1, 0.5, 0.4], 30.0)
        # 8 epochs of 4 seconds without Stage 1: 6 passes allow 6 epochs, 40 seconds allow all 8.
        overwrite(toy.inputs.finetunings["focal"][seed], [0.1, 0.2, 0.25, 0.3, 0.28, 0.35, 0.6, 0.55], 32.0)
        # One long epoch of 41 seconds: within the passes, not within the seconds.
        overwrite(toy.inputs.finetunings["bce"][seed], [0.2 + seed / 10], 41.0)
    table = build_tables(toy.data)["budgets"]
    rows = {row[0].main: [cell.main for cell in row[1:]] for row in table.rows}
    titles = {system.name: system.title for system in toy.data.systems}
    assert rows[titles["plant"]] == ["50.0", "6.0", "40.0 s", "50.0", "50.0"]
    assert rows[titles["focal"]] == ["60.0", "7.0", "28.0 s", "35.0", "60.0"]
    assert rows[titles["bce"]] == ["30.0", "1.0", "41.0 s", "30.0", "–"]


def test_every_value_is_that_of_a_loop_over_the_files(toy):
    table = build_tables(toy.data)["budgets"]
    networks = toy.data.networks

    def points(name: str, seed: int) -> list[tuple[float, float, float]]:
        """(macro-F1, passes, seconds) of every epoch; the toy's Stage 2 takes 70 seconds."""
        curve = pl.read_parquet(toy.inputs.finetunings[name][seed] / "history.parquet")["macro_f1"].to_list()
        planted = networks[name].pretraining is not None
        passes, seconds = (STAGE1_EPOCHS, STAGE1_SECONDS) if planted else (0, 0.0)
        each = 70.0 / len(curve)
        return [(value, passes + i, seconds + i * each) for i, value in enumerate(curve, start=1)]

    for row in table.data.iter_rows(named=True):
        budget = max(points("plant", row["seed"]))
        own = points(row["name"], row["seed"])
        assert row["best"] == max(own)[0]
        for column, place in (("best_in_equal_passes", 1), ("best_in_equal_seconds", 2)):
            within = [point[0] for point in own if point[place] <= budget[place]]
            assert row[column] == (max(within) if within else None)
    assert table.data.height == 3 * len(networks)


def test_a_reference_with_stage_3_has_the_budget_of_its_network_and_a_baseline_has_none(toy):
    first = budget_table(toy.data).data
    both = {"pretraining": "mig", "finetuning": "focal", "evidence": "words"}
    experiment = {"variants": [*toy.experiment.variants, "both"], "reference": "both"}
    stage3 = toy.with_config(experiment, evidences={"words": {}}, variants={"both": both})
    assert budget_table(stage3.data).data.equals(first)
    baseline = toy.with_experiment(reference="combined")
    assert "Not equal compute" not in " ".join(build_tables(baseline.data)["ablation"].notes)
    none = budget_table(baseline.data)
    assert none.data["best_in_equal_passes"].is_null().all() and none.data["best"].equals(first["best"])
    assert {row[-1].main for row in none.rows} == {percent(None)}


def test_a_network_that_starts_from_an_epoch_of_stage_1_pays_for_the_epochs_until_then(toy):
    whole = budget_table(toy.data).data
    early = {"pretraining": "mig", "finetuning": "focal", "pretraining_epoch": 1}
    config = {"pretrainings": {"mig": {"epochs": 4, "patience": None, "k": 100, "keep_epochs": True}}}
    part = budget_table(toy.with_config(variants={"plant": early}, **config).data).data
    for column, fewer in (("passes", 3), ("seconds", 15.0)):  # 1 of 4 epochs, which take 20 seconds
        both = (table.filter(name="plant")[column].to_numpy() for table in (whole, part))
        assert np.subtract(*both) == pytest.approx(fewer)
