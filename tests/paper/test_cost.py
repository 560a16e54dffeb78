"""Costs: shared runs once, shares and energy by hand, one line a run in the CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from plant.ground.files import read_json, write_json
from plant.ground.settings import Settings, load
from plant.paper.costs import cost_table, read_runs, write_costs
from plant.paper.experiment.tables import build_tables

SECONDS = {
    "corpus/toy/": 1.0, "corpus/toy/tiny/": 2.0, "relevance/toy/tiny/mig.": 5.0,
    **{f"pretraining/toy/tiny/plant/seed{seed}/": 20.0 + 2 * seed for seed in (0, 1)},
    **{f"finetuning/toy/tiny/{name}/seed{seed}/": 40.0 + 2 * seed for name in ("plant+focal", "none+focal", "plant+bce")
       for seed in (0, 1)},
    "evaluation/toy/tiny/plant+focal/seed0/": 2.0, "evaluation/toy/tiny/plant+focal/seed0/metrics.": 1.0,
    "evaluation/toy/words/tfidf_linear/seed0/": 3.0, "corpus/notes/": 1 / 3, "corpus/no_dataset_of_the_config/": 9.0,
}  # fmt: skip
"""Sidecar -> time of the job."""


def write_sidecar(path: Path, seconds: float, energy: dict[str, float | None]) -> None:
    write_json(path, {
        "seed": 0, "device": {"kind": f"cuda:{seconds:.0f}", "name": "a card"}, "trainable_parameters": 2_500_000,
        "resources": {"wall_seconds": seconds, "cpu_seconds": seconds, "peak_host_mb": 700.0, "peak_device_mb": 9000.0,
                      "devices": 1, "energy_joules": energy},
    })  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for name, seconds in SECONDS.items():
        energy = {"device": 10_800.0 if "pretraining" in name else 3600.0} if "seed" in name else {}
        write_sidecar(tmp_path / f"{name}provenance.json", seconds, energy)
    return load({
        "results": str(tmp_path),
        "datasets": {"toy": {"source": "mimic3", "generate": {}, "credentialed": False},
                     "notes": {"source": "mimic3", "path": "data"}},
        "backbones": {"tiny": {"kind": "random"}}, "pretrainings": {"plant": {}}, "finetunings": {"focal": {}},
        "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}},
        "experiments": {"main": {"dataset": "toy", "backbone": "tiny", "variants": ["plant"], "reference": "plant"},
                        "real": {"dataset": "notes", "backbone": "tiny", "variants": ["plant"], "reference": "plant"}},
    })  # fmt: skip


def test_times_shares_energy_and_weights_are_those_by_hand(settings):
    expected = {
        ("toy†", "tiny", "Stage 1", "Runs"): "2",
        ("toy†", "tiny", "Stage 2", "Runs"): "6",
        ("toy†", "tiny", "Stage 2", "Time in all"): "4.1 min",  # 3 systems x (40 + 42) s = 246 s
        ("toy†", "tiny", "Stage 2", "Time a run"): "41.0 s",
        ("toy†", "tiny", "relevance mig", "Time a run, of Stage 2"): "12%",  # 5 of 41
        ("toy†", "tiny", "Stage 1", "Time a run, of Stage 2"): "51%",  # 21 of 41
        ("toy†", "words", "scores", "Time a run, of Stage 2"): "–",
        ("toy†", "tiny", "Stage 1", "Energy a run"): "3 Wh",
        ("toy†", "tiny", "Stage 2", "Energy a run"): "1 Wh",
        ("toy†", "tiny", "relevance mig", "Energy a run"): "–",
        ("toy†", "tiny", "Stage 2", "Weights trained"): "2.5 M",
        ("toy†", "tiny", "scores", "Weights trained"): "–",
        ("toy†", "tiny", "scores metrics", "Runs"): "1",
        ("toy†", "tiny", "tokens", "Runs"): "1",
        ("notes", "–", "corpus", "Runs"): "1",
    }
    table = cost_table(settings, read_runs(settings))
    printed = {
        (*(cell.main for cell in row[:3]), column): cell.main
        for row in table.rows for column, cell in zip(table.columns, row, strict=True)
    }  # fmt: skip
    assert {key: printed[key] for key in expected} == expected
    assert any(note.startswith("† Synthetic") for note in table.notes)
    assert "Devices: cuda (a card)." in table.notes


def test_csv_has_one_line_a_run_at_full_precision(settings, tmp_path):
    write_costs(settings, tmp_path / "paper")
    with (tmp_path / "paper" / "tables" / "cost.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == len(SECONDS) - 1  # the config has no such dataset
    assert [row["wall_seconds"] for row in rows if row["dataset"] == "notes"] == [str(1 / 3)]


def test_the_table_is_written_before_anything_has_run(settings, tmp_path):
    write_costs(settings.model_copy(update={"results": "nowhere"}), tmp_path / "paper")
    assert {path.name for path in (tmp_path / "paper").rglob("cost.*")} == {"cost.csv", "cost.md", "cost.tex"}


def test_cost_table_of_one_experiment_has_weights_and_energy(toy):
    for folder in toy.inputs.pretrainings["mig"]:
        path = folder / "provenance.json"
        record = read_json(path)
        record["resources"]["energy_joules"] = {"device": 1800.0}
        write_json(path, record | {"trainable_parameters": 356_673})
    table = build_tables(toy.data)["cost"]
    row = next(row for row in table.rows if row[0].main == "Stage 1: mig")
    assert [cell.main for cell in row][6:8] == ["0.357 M", "0.5 Wh"]
    assert table.data.filter(name="mig").get_column("energy_device_joules").to_list() == [1800.0] * 3
