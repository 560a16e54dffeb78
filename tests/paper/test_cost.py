"""Cost across experiments: shared runs once, planting by hand, what is missing, and a legible figure."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from pydantic import TypeAdapter

from plant.ground.files import read_json, write_arrays, write_json
from plant.ground.settings import Settings, load
from plant.paper.experiment.tables import build_tables
from plant.paper.figures.cost import cost_figure
from plant.paper.figures.style import look
from plant.paper.grid.cost import PLANTING, drawn, find_plantings, grid_cost_table, write_costs
from plant.paper.grid.cost_records import SCHEMA, read_grid_costs
from plant.paper.inputs import Inputs
from plant.paper.paths import Paths

SECONDS = {"mig": 5.0, "pretraining": 20.0, "finetuning": 40.0, "evaluation": 2.0}


def make_settings() -> Settings:
    """`main` and `again` share corpus, Stage 1 and the planted runs; `real` is another dataset, not synthetic."""
    variants = {
        "plant": {"pretraining": "plant", "finetuning": "focal"}, "late": {"pretraining": "plant", "finetuning": "bce"},
        "bare": {"finetuning": "focal"},
    }  # fmt: skip
    common = {"backbone": "tiny", "reference": "plant", "seeds": [0, 1]}
    return load({
        "datasets": {"toy": {"source": "mimic3", "generate": {}, "credentialed": False},
                     "notes": {"source": "mimic3", "path": "data"}},
        "backbones": {"tiny": {"kind": "random"}, "words": {"kind": "words"}},
        "pretrainings": {"plant": {}}, "finetunings": {"focal": {}, "bce": {}}, "variants": variants,
        "experiments": {
            "main": {**common, "dataset": "toy", "variants": ["plant", "bare"], "baselines": ["tfidf_linear"]},
            "again": {**common, "dataset": "toy", "variants": ["plant", "late"], "report": False},
            "real": {**common, "dataset": "notes", "variants": ["plant", "bare"]},
        },
    })  # fmt: skip


def make_paths(root: Path, settings: Settings) -> dict[str, Inputs]:
    """The paths of the workflow, whether or not anything is there."""
    paths = Paths(settings.model_copy(update={"results": str(root)}))
    return TypeAdapter(dict[str, Inputs]).validate_python({name: paths.inputs(name) for name in settings.experiments})


def write_sidecar(path: Path, seconds: float, *, energy: dict[str, float | None] | None = None) -> None:
    write_json(path, {
        "seed": 0, "device": {"kind": "cuda:0", "name": "a card"}, "trainable_parameters": 2_500_000,
        "resources": {"wall_seconds": seconds, "cpu_seconds": seconds, "peak_host_mb": 700.0, "peak_device_mb": 9000.0,
                      "devices": 1, **({} if energy is None else {"energy_joules": energy})},
    })  # fmt: skip


def run_everything(root: Path, paths: dict[str, Inputs], *names: str) -> None:
    """Sidecars of every run of the experiments; seed 1 takes two seconds longer."""
    for name in names:
        inputs = paths[name]
        place = inputs.stages["relevance"][0].relative_to(root / "relevance")
        write_sidecar(inputs.corpus / "provenance.json", 1.0)
        write_sidecar(inputs.corpus / place.name / "provenance.json", 1.0)
        write_sidecar(root / "relevance" / place / "mig.provenance.json", SECONDS["mig"])
        for group in (inputs.pretrainings, inputs.finetunings, inputs.evaluations):
            for folders in group.values():
                for seed, folder in enumerate(folders):
                    room = folder.relative_to(root).parts[0]
                    write_sidecar(
                        folder / "provenance.json", SECONDS[room] + 2 * seed, energy={"device": 3600.0, "host": None}
                    )
                    if room == "evaluation":
                        write_sidecar(folder / "metrics.provenance.json", 1.0)
                    else:
                        pl.DataFrame({"epoch": [1, 2, 3]}).write_parquet(folder / "history.parquet")


@pytest.fixture
def grid(tmp_path: Path) -> tuple[Settings, dict[str, Inputs], Path]:
    """`main` and `again` have run, `real` has not."""
    settings = make_settings()
    paths = make_paths(tmp_path, settings)
    run_everything(tmp_path, paths, "main", "again")
    return settings, paths, tmp_path


def rows_of(grid: tuple[Settings, dict[str, Inputs], Path]) -> dict[tuple[str, str], dict[str, str]]:
    """(backbone, stage) -> column -> printed cell."""
    settings, paths, _ = grid
    costs = read_grid_costs(settings, paths)
    table = grid_cost_table(settings, costs, find_plantings(settings, paths, costs.frame))
    return {
        (row[1].main, row[2].main): dict(zip(table.columns, (cell.main for cell in row), strict=True))
        for row in table.rows
    }


def test_stage_3_is_a_stage_of_its_own_beside_the_prediction_of_the_network_that_it_reads(tmp_path):
    both = {"both": {"channels": ["network", "linear"]}, "words": {"channels": ["linear"]}}
    rest = make_settings().model_dump(mode="json", exclude_unset=True)
    settings = load({
        **rest, "evidences": both, "datasets": {"toy": rest["datasets"]["toy"]},
        "variants": {name: {"finetuning": "focal", "evidence": name} for name in both},
        "experiments": {"main": {"dataset": "toy", "backbone": "tiny", "variants": list(both), "reference": "both",
                                 "seeds": [0]}},
    })  # fmt: skip
    paths = make_paths(tmp_path, settings)
    run_everything(tmp_path, paths, "main")
    network = tmp_path / "evaluation/toy/tiny/none+focal/seed0/provenance.json"
    found = {(place.stage, place.name) for place in read_grid_costs(settings, paths).missing}
    assert ("prediction", "none+focal") in found
    write_sidecar(network, 2.0)
    runs = read_grid_costs(settings, paths).frame.select("stage", "name").rows()
    assert [run for run in runs if run[0] in ("prediction", "Stage 3")] == [
        ("prediction", "none+focal"), ("Stage 3", "none+focal+both"), ("Stage 3", "none+focal+words"),
    ]  # fmt: skip


def test_shared_runs_count_once_and_planting_energy_and_weights_are_those_by_hand(grid):
    expected = {
        ("tiny", "Stage 1", "Runs"): "2",  # two seeds of one recipe, under four variants
        ("tiny", "Stage 2", "Runs"): "6",  # plant+focal (twice named), none+focal, plant+bce
        ("tiny", "Stage 2", "Time in all"): "4.1 min",  # 3 systems x (40 + 42) s = 246 s
        ("–", "corpus", "Runs"): "1",
        ("words", "baselines", "Runs"): "1",
        ("tiny", PLANTING, "Time a run"): "26.0 s",  # 5 + 21 seconds against 41
        ("tiny", PLANTING, "of Stage 2"): "63%",
        ("tiny", "MIG", "of Stage 2"): "12%",
        ("tiny", "Stage 1", "of Stage 2"): "51%",
        ("tiny", "Stage 2", "Energy a run"): "1 Wh",  # of devices; the host tells nothing
        ("tiny", "MIG", "Energy a run"): "–",
        ("tiny", "Stage 2", "Weights trained"): "2.5 M",
        ("tiny", "prediction", "Weights trained"): "–",
    }
    rows = rows_of(grid)
    assert {key: rows[key[:2]][key[2]] for key in expected} == expected
    settings, paths, root = grid
    for folder in paths["main"].pretrainings["plant"]:
        write_sidecar(folder / "provenance.json", 20.0, energy={"device": 3600.0, "host": 7200.0})
    assert rows_of((settings, paths, root))["tiny", "Stage 1"]["Energy a run"] == "3 Wh"


def test_tokens_a_second_are_training_tokens_times_epochs_over_the_time(grid):
    settings, paths, root = grid
    corpus = root / "corpus" / "toy"
    write_arrays(corpus / "labels.safetensors", {
        "indptr": np.zeros(11, dtype=np.int64), "indices": np.zeros(0, dtype=np.int32),
        "split_sizes": np.array([5, 2, 3]), "counts": np.zeros((3, 1), dtype=np.int64),
    })  # fmt: skip
    lengths = np.arange(1, 11) * 100  # train 1500, val 1300, test 2700
    ids = np.zeros(lengths.sum(), dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    write_arrays(
        corpus / "tiny" / "tokens.safetensors", {"input_ids": ids, "offsets": offsets, "starts": ids, "ends": ids}
    )
    frame = read_grid_costs(settings, paths).frame
    stage1 = frame.filter(stage="Stage 1").get_column("tokens_per_second").sort().to_list()
    assert stage1 == pytest.approx([3 * 1500 / 22, 3 * 1500 / 20])
    assert set(frame.filter(stage="prediction").get_column("tokens")) == {4000}


def test_what_has_not_run_is_said_and_half_a_set_of_runs_is_marked(grid):
    settings, paths, _ = grid
    (paths["main"].pretrainings["plant"][1] / "provenance.json").unlink()
    assert rows_of(grid)["tiny", "Stage 1"]["Runs"] == "1 of 2"
    costs = read_grid_costs(settings, paths)
    notes = " ".join(grid_cost_table(settings, costs, {}).notes)
    assert "Has not run: notes, tiny: tokens (1), Stage 1 (2), Stage 2 (4), prediction (4), metrics (4)." in notes
    assert "Has not run: toy†, tiny: Stage 1 (1)." in notes


def test_csv_has_one_line_a_run_at_full_precision(grid):
    settings, paths, root = grid
    write_sidecar(paths["main"].corpus / "provenance.json", 1 / 3)
    write_costs(settings, paths, root / "paper")
    with (root / "paper" / "tables" / "cost.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    sidecars = [path for path in root.rglob("*provenance.json") if "paper" not in path.parts]
    assert len(rows) == len(sidecars)
    corpus = next(row for row in rows if row["stage"] == "corpus")
    assert (corpus["wall_seconds"], corpus["experiments"]) == (str(1 / 3), "main again")


def test_everything_is_written_before_anything_has_run(tmp_path):
    settings = make_settings()
    write_costs(settings, make_paths(tmp_path, settings), tmp_path / "paper")
    names = {path.relative_to(tmp_path / "paper").as_posix() for path in (tmp_path / "paper").rglob("cost.*")}
    assert names == {*(f"tables/cost.{kind}" for kind in ("csv", "md", "tex")), "figures/cost.pdf", "figures/cost.png"}
    assert "Has not run" in (tmp_path / "paper" / "tables" / "cost.md").read_text(encoding="utf-8")


def test_the_figure_prints_what_planting_adds_and_leaves_out_sweeps_that_the_table_has(grid):
    settings, paths, root = grid
    run_everything(root, paths, "real")
    quiet = settings.experiments["real"].model_copy(update={"report": False})
    swept = settings.model_copy(update={"experiments": {**settings.experiments, "real": quiet}})
    costs = read_grid_costs(swept, paths)
    table = grid_cost_table(swept, costs, {})
    assert {row[0].main for row in table.rows} == {"toy†", "notes"}
    assert any(note.startswith("† Synthetic") for note in table.notes)
    shown = drawn(swept, paths, costs.frame)
    assert set(shown.get_column("dataset")) == {"toy"}
    shares = {place: planting.share for place, planting in find_plantings(swept, paths, costs.frame).items()}
    with look():
        figure = cost_figure(shown, shares=shares)
    text = "\n".join(artist.get_text() for artist in figure.findobj(mpl.text.Text))
    assert " 63%" in text
    assert "toy†\ntiny" in text


def frame_of(pairs: int, *, longest: float, energy: bool) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"dataset": f"dataset_{pair}", "backbone": "mistral_7b", "stage": stage, "name": "x", "seed": seed,
         "stand_in": False, "wall_seconds": longest * factor * (1 + 0.1 * seed) / (1 + pair), "peak_host_mb": 9000.0,
         "peak_device_mb": 40_000.0, "energy_device_joules": longest * factor * 400 if energy else None}
        for pair in range(pairs)
        for stage, factor in (("MIG", 0.0005), ("Stage 1", 0.9), ("Stage 2", 1.0), ("prediction", 0.02))
        for seed in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


@pytest.mark.parametrize("longest", [0.5, 30.0, 4000.0, 90_000.0, 900_000.0])
@pytest.mark.parametrize(("pairs", "energy"), [(1, False), (12, True)])
def test_no_two_tick_labels_of_the_figure_touch(pairs, energy, longest):
    shares = {(f"dataset_{pair}", "mistral_7b"): 0.1 + pair / 10 for pair in range(pairs)}
    with look():
        figure = cost_figure(frame_of(pairs, longest=longest, energy=energy), shares=shares)
        figure.draw_without_rendering()
        for axes in figure.axes:
            low, high = axes.get_xlim()
            shown = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
            boxes = [label.get_window_extent() for label in shown]
            assert len(boxes) >= 1
            assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
        heights = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
        assert all(upper.y0 > lower.y1 for upper, lower in pairwise(heights))
    assert len(figure.axes) == (4 if energy else 3)


def test_cost_table_of_one_experiment_has_weights_and_energy(toy):
    for folder in toy.inputs.pretrainings["mig"]:
        path = folder / "provenance.json"
        record = read_json(path)
        record["resources"]["energy_joules"] = {"device": None, "host": 1800.0}
        write_json(path, record | {"trainable_parameters": 356_673})
    table = next(t for t in build_tables(toy.data) if t.name == "cost")
    row = next(row for row in table.rows if row[0].main == "Stage 1: mig")
    assert [cell.main for cell in row][6:8] == ["0.357 M", "0.5 Wh"]
    assert table.data.filter(name="mig").get_column("energy_host_joules").to_list() == [1800.0] * 3
