"""Cells: which experiment measures a row of the paper, gains and their signs, and where verdicts turn."""

from __future__ import annotations

import shutil
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped import shipped

from plant.ground.files import read_json, write_json
from plant.ground.seeds import generator
from plant.ground.settings import load
from plant.paper.grid.cells import GridCell, average, block_cells, judge
from plant.paper.grid.results import Grid, Number
from plant.paper.values.transcription import is_table, load_values

VALUES = load_values()


def cells_of(grid: Grid, item: str, block_of: str, dataset: str | None = None) -> list[GridCell]:
    found, block = next(pair for pair in VALUES.blocks() if (pair[0].item, pair[1].dataset) == (item, block_of))
    return block_cells(grid, VALUES, found, block, dataset=dataset or block_of)


def one(cells: list[GridCell], row: str, column: str, kind: str) -> GridCell:
    (cell,) = [cell for cell in cells if (cell.row, cell.column, cell.kind) == (row, column, kind)]
    return cell


def test_a_row_is_measured_by_the_experiment_with_its_dataset_backbone_and_variant(world):
    world.run(level=lambda system, metric: 0.5)
    world.run("mimic4_full_phi3_mini", level=lambda system, metric: {"plant": 0.565, "single_stage": 0.55}[system])
    cell = one(cells_of(world.grid, "T2", "mimic4_full"), "Phi-3 + PLANT", "p@15", "value")
    assert (cell.experiment, cell.seeds, cell.verdict) == ("mimic4_full_phi3_mini", 2, "within")
    assert (cell.ours, cell.low, cell.high) == pytest.approx((56.5, 56.1, 56.9))
    assert str(cell.paper) == "56.3"


def test_a_row_without_a_backbone_is_that_of_the_main_one(world):
    def cell(grid: Grid) -> GridCell:
        return one(cells_of(grid, "T5", "eurlex4k"), "PLANT (Ours)", "p@5", "value")

    world.run("eurlex4k_mistral_7b")
    assert cell(world.grid).ours is not None
    paper = world.settings.paper.model_copy(update={"main_backbone": None})
    none = world.settings.model_copy(update={"paper": paper})
    assert "paper.main_backbone" in cell(Grid(none, world.paths)).why


@pytest.mark.parametrize(("dataset", "backbone", "systems", "paired", "why"), [
    ("mimic5", "mistral_7b", ["plant"], False, "no experiment of this config is on mimic5"),
    ("mimic4_full", "deepseek_v3", ["plant"], False, "is on mimic4_full with deepseek_v3"),
    ("mimic4_full", "phi3_mini", ["plant_mse"], False, "has plant_mse on mimic4_full with phi3_mini"),
    ("mimic4_full", "llama3_8b", ["plant_mse", "plant_bce"], True, "no paired interval"),
])  # fmt: skip
def test_what_no_experiment_measures_is_said_in_words(world, dataset, backbone, systems, paired, why):
    found = world.grid.find(dataset, backbone, systems, paired=paired)
    assert found.name is None
    assert why in found.why


@pytest.mark.parametrize(("other", "taken"), [
    ({"seeds": [0, 1, 2]}, "larger"),
    ({}, "mimic4_full_phi3_mini"),  # the first of the config
    ({"seeds": [0, 1, 2], "on_request": True}, "mimic4_full_phi3_mini"),
    ({"seeds": [0, 1, 2], "report": False}, "mimic4_full_phi3_mini"),
])  # fmt: skip
def test_of_several_experiments_the_one_that_all_runs_then_more_seeds_then_the_first(world, other, taken):
    plain = world.settings.experiments["mimic4_full_phi3_mini"].model_dump(mode="json")
    found = world.change(experiments={"larger": plain | other}).grid.find("mimic4_full", "phi3_mini", ["plant"])
    assert {found.name, *found.others} == {"mimic4_full_phi3_mini", "larger"}
    assert found.name == taken


def test_of_several_experiments_the_one_with_results_is_taken(world):
    plain = world.settings.experiments["mimic4_full_phi3_mini"].model_dump(mode="json")
    world = world.change(experiments={"larger": plain | {"seeds": [0, 1, 2]}, "other": plain | {"seeds": [7]}})
    world.run("mimic4_full_phi3_mini")  # `larger` shares two of its three seeds, but has no intervals
    assert world.grid.find("mimic4_full", "phi3_mini", ["plant"]).name == "mimic4_full_phi3_mini"
    shutil.rmtree(world.paths["mimic4_full_phi3_mini"].statistics)
    found = world.grid.find("mimic4_full", "phi3_mini", ["plant"])
    assert (found.name, found.others) == ("larger", ("mimic4_full_phi3_mini", "other"))


@pytest.mark.parametrize("reference", ["plant", "single_stage"])
def test_a_gain_is_the_row_minus_the_papers_other_row_whichever_is_the_reference(world, reference):
    level = {"plant": 0.568, "single_stage": 0.53}
    world = world.change(experiments={"mimic4_full_phi3_mini": {"reference": reference}})
    world.run("mimic4_full_phi3_mini", level=lambda system, metric: level[system])
    gain = one(cells_of(world.grid, "T2", "mimic4_full"), "Phi-3 + PLANT", "p@15", "gain")
    assert (gain.ours, gain.low, gain.high) == pytest.approx((3.8, 3.4, 4.2))
    assert (str(gain.paper), gain.verdict) == ("3.1", "above")


def test_a_drop_of_an_ablation_keeps_its_sign(world):
    world.run("mimic4_full_llama3_8b", level=lambda system, metric: 0.569 if system == "plant" else 0.52)
    drop = one(cells_of(world.grid, "T6", "mimic4_full"), "Single-Stage BCE", "p@15", "gain")
    assert (drop.ours, drop.low, drop.high) == pytest.approx((-4.9, -5.3, -4.5))
    assert (str(drop.paper), str(drop.paper_low), str(drop.paper_high)) == ("-4.9", "-5.7", "-3.9")
    assert drop.verdict == "within"


def test_a_gain_without_its_reference_is_not_attempted_and_one_over_quoted_numbers_never_is(world, complete):
    world = world.change(experiments={"mimic4_full_llama3_8b": {"reference": "plant_mse"}})
    world.run("mimic4_full_llama3_8b")
    gain = one(cells_of(world.grid, "T6", "mimic4_full"), "Single-Stage BCE", "p@15", "gain")
    assert (gain.verdict, gain.ours) == ("not attempted", None)
    assert "nor plant is the reference of mimic4_full_llama3_8b" in gain.why
    gains = [cell for cell in cells_of(complete.grid, "T3", "mimic4_full") if cell.kind == "gain"]
    assert len(gains) == 6
    assert {(cell.ours, cell.verdict) for cell in gains} == {(None, "not attempted")}
    assert all("no documents to pair with" in cell.why for cell in gains)


def test_quoted_rows_carry_their_citation_and_convention_and_no_verdict(complete):
    quoted = [cell for cell in cells_of(complete.grid, "T3", "mimic4_full") if cell.kind == "quoted"]
    assert len(quoted) == 4 * 6
    assert {(cell.verdict, cell.ours, cell.experiment) for cell in quoted} == {("", None, "")}
    assert all(cell.cite for cell in quoted)
    conventions = {cell.row: cell.convention for cell in quoted if cell.column == "macro_f1"}
    assert conventions == {
        "CoRelation": "unknown", "PLM-CA": "present", "GKI-ICD": "present", "GPT-4 Zero-Shot": "unknown"
    }  # fmt: skip
    assert all("not comparable" in cell.why for cell in quoted if cell.column == "macro_f1")


def test_the_average_gain_waits_for_all_four_backbones(complete):
    cells = [cell for cell in cells_of(complete.grid, "T9", "mimic3_full") if cell.column == "p@15"]
    mean = one(cells, "Avg. gain with PLANT", "p@15", "gain")
    rows = [cell for cell in cells if cell.kind == "gain" and cell is not mean]
    assert len(rows) == 4
    assert mean.ours == pytest.approx(sum(cell.ours for cell in rows) / 4)
    assert mean.low == pytest.approx(sum(cell.low for cell in rows) / 4)
    assert mean.verdict in {"within", "above", "below"}
    lacking = one(cells_of(complete.grid, "T9", "mimic4_full"), "Avg. gain with PLANT", "p@15", "gain")
    assert (lacking.verdict, lacking.ours) == ("not attempted", None)
    assert "DeepSeek-V3 + PLANT" in lacking.why


def test_the_interval_of_an_average_is_never_too_narrow_however_gains_hang_together():
    random = generator(0, "test", "average")
    for common in (0.0, 0.5, 2.0):
        draws = random.normal(size=(20_000, 4)) * [0.5, 1, 1.5, 2] + common * random.normal(size=(20_000, 1))
        errors = draws.std(axis=0)
        gains = [Number(0.0, -1.96 * error, 1.96 * error, 1) for error in errors]
        mean = average(gains, names=list("abcd"))
        assert mean.high >= 1.96 * draws.mean(axis=1).std()
        assert mean.high <= 1.96 * np.max(errors)


def test_every_micro_column_is_judged_at_the_threshold_tuned_for_micro_f1(complete):
    micro = {"micro_f1", "micro_precision", "micro_recall"}
    seen = set()
    for item, block in VALUES.blocks():
        if item.item in {"T2", "T3", "T4", "T9", "T10", "T11"}:
            for cell in block_cells(complete.grid, VALUES, item, block, dataset=block.dataset):
                if cell.kind != "quoted":
                    assert (cell.column in micro) == cell.metric.endswith("@micro"), (item.item, cell.row, cell.column)
                    seen |= {cell.column} & micro
    assert seen == micro


def test_the_shipped_grid_has_intervals_of_every_metric_that_is_judged():
    settings = load(shipped("paper.yaml"))
    judged = {
        cell.metric
        for item, block in VALUES.blocks()
        if is_table(item.item) and not block.is_corpus
        for cell in VALUES.within(f"{item.item}/{block.dataset}").values()
        if cell.origin == "own"
    }
    assert judged <= set(settings.statistics.metrics)


@pytest.mark.parametrize(("seeds", "over"), [([0], "documents, one seed"), ([0, 1], "seeds and documents")])
def test_a_cell_says_what_its_interval_is_over(world, seeds, over):
    world = world.change(experiments={"mimic4_full_phi3_mini": {"seeds": seeds, "baselines": ["tfidf_linear"]}})
    world.run("mimic4_full_phi3_mini")
    cells = [cell for cell in cells_of(world.grid, "T2", "mimic4_full") if cell.ours is not None]
    assert {cell.over for cell in cells if cell.row in {"Phi-3", "Phi-3 + PLANT"}} == {over}
    baseline = [cell for cell in cells if cell.row == "TF-IDF + linear"]
    assert {cell.over for cell in baseline if cell.kind == "measured"} == {"documents"}
    assert {(cell.over, cell.seeds) for cell in baseline if cell.kind == "difference"} == {(over, len(seeds))}


def test_systems_that_the_paper_lacks_stand_apart_and_once(complete):
    cells = cells_of(complete.grid, "T2", "mimic4_full")
    rows = list(dict.fromkeys(cell.row for cell in cells if cell.kind in {"measured", "difference"}))
    assert rows == [
        "single stage, equal epochs, mistral_7b", "TF-IDF + linear", "MIG log-odds", "TF-IDF + MIG combined",
        "single stage, equal epochs, llama3_8b",
    ]  # fmt: skip
    assert {cell.verdict for cell in cells if cell.kind in {"measured", "difference"}} == {""}
    few = {cell.row for cell in cells_of(complete.grid, "T4", "mimic3_few") if cell.kind == "measured"}
    assert "single stage" in few  # the paper leaves it out of Table 4
    other = cells_of(complete.grid, "T4", "mimic3_few", dataset="mimic3_few_full_test")
    assert {cell.row for cell in other if cell.kind == "measured"} == few


def test_without_intervals_metrics_of_the_seeds_that_ran_are_averaged_and_what_lacks_is_said(world):
    world.run("mimic4_full_phi3_mini")
    inputs = world.paths["mimic4_full_phi3_mini"]
    path = inputs.statistics / "intervals.parquet"
    pl.read_parquet(path).filter(pl.col("metric") != "p@15").write_parquet(path)
    first, second = inputs.evaluations["plant"]
    values = [100 * read_json(folder / "metrics.json")["p@15"] for folder in (first, second)]
    assert values[0] != values[1]

    def shown() -> GridCell:
        return one(cells_of(world.grid, "T2", "mimic4_full"), "Phi-3 + PLANT", "p@15", "value")

    assert (shown().ours, shown().seeds) == (pytest.approx(sum(values) / 2), 2)
    assert shown().verdict == "not attempted"
    assert shown().why == "no interval yet: target `experiment_mimic4_full_phi3_mini`"
    shutil.rmtree(inputs.statistics)
    shutil.rmtree(second)
    assert (shown().ours, shown().seeds) == (pytest.approx(values[0]), 1)
    write_json(first / "metrics.json", {"p@5": 0.5, "p@15": None})
    assert (shown().ours, shown().verdict) == (None, "not attempted")
    assert "p@15 is not in metrics.json" in shown().why


@pytest.mark.parametrize(("printed", "low", "high", "expected"), [
    ("57.0", 56.0, 58.0, "within"), ("57.0", 57.0, 57.0, "within"),
    ("57.0", 57.05, 60.0, "within"), ("57.0", 57.06, 60.0, "above"),  # numbers from 56.95 to 57.05 are printed as 57.0
    ("57.0", 50.0, 56.95, "within"), ("57.0", 50.0, 56.94, "below"),
    ("70.24", 70.25, 71.0, "above"), ("70.2", 70.25, 71.0, "within"), ("-0.1", -0.05, 0.3, "within"),
    ("52723", 52722.0, 52722.0, "below"), ("52723", 52723.0, 52723.0, "within"), ("52723", 52724.0, 52724.0, "above"),
])  # fmt: skip
def test_a_verdict_turns_half_a_unit_of_the_last_place_beside_the_printed_number_and_at_one_for_a_count(
    printed, low, high, expected
):
    assert judge(Decimal(printed), low, high, decimals=len(printed.partition(".")[2])) == expected


@given(
    true=st.decimals(-100, 100, places=5), decimals=st.integers(0, 3),
    below=st.floats(0, 5), above=st.floats(0, 5), shift=st.floats(0.001, 50),
)  # fmt: skip
def test_an_interval_that_holds_the_unrounded_number_is_within_and_one_far_off_is_not(
    true, decimals, below, above, shift
):
    printed, number = round(true, decimals), float(true)
    assert judge(printed, number - below, number + above, decimals=decimals) == "within"
    away = 10.0**-decimals + shift
    assert judge(printed, number + away, number + away + above, decimals=decimals) == "above"
    assert judge(printed, number - away - below, number - away, decimals=decimals) == "below"
