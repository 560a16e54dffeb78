"""Tables of the grid: complete with nothing run and with everything run, in three formats that say the same."""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl
import pytest

from plant.ground.errors import InputError
from plant.paper.grid.cells import JUDGED
from plant.paper.grid.items import needs, write_item
from plant.paper.grid.results import Grid
from plant.paper.grid.tables import BANNER, build_sheet, to_frame, to_page, to_tex
from plant.paper.values.transcription import load_values

GOLDEN = Path(__file__).parent / "golden"
VALUES = load_values()
TABLES = tuple(f"table_{number}" for number in range(2, 13))
RESULTS = tuple(name for name in TABLES if name not in {"table_7", "table_8"})
COLUMNS = [
    "item", "dataset", "row", "column", "kind", "paper", "paper_low", "paper_high", "ours", "low", "high", "seeds",
    "verdict", "why", "experiment", "stand_in",
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_with_nothing_run_every_cell_says_what_is_missing_and_the_item_needs_just_that(world, name):
    frame = to_frame(build_sheet(name, Grid(world.settings, {}), VALUES))
    judged = frame.filter(pl.col("kind").is_in(JUDGED))
    assert judged.get_column("verdict").unique().to_list() == ["not attempted"]
    assert frame.get_column("ours").is_null().all()
    for why in judged.get_column("why").unique():
        target = re.search(r"target `experiment_(\w+)`", why)
        assert (target and target[1] in world.settings.experiments) or "no experiment" in why or "gain" in why
    experiments, datasets = needs(name, world.settings)
    if name in RESULTS:
        named = set(re.findall(r"experiment_(\w+)", " ".join(frame["why"].drop_nulls())))
        assert (set(experiments), datasets) == (named, [])
    else:  # of corpora
        assert experiments == []
        assert set(datasets) == set(frame["dataset"].drop_nulls()) & set(world.settings.datasets)


@pytest.mark.parametrize("name", RESULTS)
def test_with_everything_run_only_what_cannot_be_measured_is_left(complete, name):
    frame = complete.frame(name)
    left = frame.filter(pl.col("kind").is_in(JUDGED) & (pl.col("verdict") == "not attempted"))
    reasons = set(left.get_column("why").str.slice(0, 40))
    assert reasons <= {
        "the paper measures this gain from the be", "no experiment of this config is on mimic",
        "needs the gains of all 4 rows; without a",
    }  # fmt: skip
    assert set(frame.filter(kind="quoted").get_column("verdict")) <= {""}
    assert set(frame.filter(pl.col("kind").is_in(JUDGED)).get_column("verdict")) & {"within", "above", "below"}


@pytest.mark.parametrize("name", RESULTS)
def test_every_number_of_the_papers_table_stands_in_ours_as_it_is_printed(world, name):
    frame = world.frame(name).filter(pl.col("dataset") != "mimic3_few_full_test")
    item = f"T{name.removeprefix('table_')}"
    found = {
        (row["dataset"], row["row"], row["column"], row["kind"] == "gain"): row["paper"]
        for row in frame.filter(pl.col("paper").is_not_null()).iter_rows(named=True)
    }
    expected = {}
    for cell in VALUES.cells.values():
        if cell.item == item:
            mean = cell.system == "average_gain"
            expected[cell.dataset, cell.row, cell.column, mean] = float(cell.value)
            if cell.gain is not None:
                expected[cell.dataset, cell.row, cell.column, True] = float(cell.gain)
    assert found == expected


def test_the_numbers_of_the_csv_are_those_of_the_statistics(complete, tmp_path):
    write_item("table_12", complete.settings, complete.paths, tmp_path / "paper")
    frame = pl.read_csv(tmp_path / "paper" / "tables" / "table_12.csv")
    assert frame.columns[: len(COLUMNS)] == COLUMNS
    titles = {cell.row: cell.system for cell in VALUES.cells.values() if cell.item == "T12"}
    checked = 0
    for name in ("mimic3_full_mistral_7b", "mimic4_full_llama3_8b"):
        intervals = pl.read_parquet(complete.paths[name].statistics / "intervals.parquet")
        for row in frame.filter((pl.col("experiment") == name) & pl.col("kind").is_in(JUDGED)).iter_rows(named=True):
            source = intervals.filter(system=titles[row["row"]], metric=row["metric"]).row(0, named=True)
            columns = ("difference", "diff_low", "diff_high") if row["kind"] == "gain" else ("value", "low", "high")
            assert [row["ours"], row["low"], row["high"]] == [100 * source[column] for column in columns]
            assert row["seeds"] == 2
            checked += 1
    assert checked == 2 * (8 + 7) * 3


def test_the_summary_counts_the_verdicts_of_the_csv_and_leaves_the_second_reading_out(complete):
    sheet = complete.sheet("table_11")
    judged = to_frame(sheet).filter(pl.col("kind").is_in(JUDGED))
    first = judged.filter(pl.col("dataset") != "mimic3_few_full_test").get_column("verdict").to_list()
    second = judged.filter(dataset="mimic3_few_full_test").get_column("verdict").to_list()
    assert (len(first), len(second)) == (20, 12)
    words = ", ".join(f"{first.count(word)} {word}" for word in ("within", "above", "below", "not attempted"))
    assert sheet.summary[0] == f"20 cells: {words}."
    assert sheet.summary[-1].startswith("mimic3_few_full_test, not counted above: 12 cells: ")


def test_the_second_reading_of_few_is_measured_on_its_own_dataset_and_quotes_nothing(complete):
    frame = complete.frame("table_4").filter(dataset="mimic3_few_full_test")
    assert set(frame.get_column("experiment")) - {""} == {"mimic3_few_full_test_mistral_7b"}
    assert "quoted" not in frame.get_column("kind").to_list()
    assert frame.filter(kind="value").get_column("paper").to_list() == [66.3, 71.0, 65.1, 68.6, 81.0, 81.7]


def test_stand_ins_are_named_before_any_number_and_real_corpora_are_not(complete):
    page, tex = (dress(complete.sheet("table_2")) for dress in (to_page, to_tex))
    assert page.index(BANNER) < page.index("| 90.2 |")
    assert tex.index("SYNTHETIC STAND-IN TEXT") < tex.index("90.2")
    real = complete.sheet("table_5")
    assert "SYNTHETIC" not in to_page(real) + to_tex(real)
    assert to_frame(real).get_column("stand_in").unique().to_list() == [False]
    judged = complete.frame("table_2").filter(pl.col("kind") != "quoted")
    assert judged.get_column("stand_in").unique().to_list() == [True]


def test_a_small_table_equals_its_golden_file(world):
    """After an intended change: PLANT_UPDATE_GOLDEN=1 python -m pytest tests/paper/grid, and review the diff."""
    ours = {"macro_auc": 0.968, "micro_auc": 0.994, "macro_f1_all": 0.2331, "micro_f1@micro": 0.58}
    ours |= {"p@8": 0.721, "p@15": 0.57}
    drop = {"plant": 0.0, "single_stage": 0.03, "equal_compute": 0.02}
    level = lambda system, metric: ours.get(metric, 0.5) - drop.get(system, 0.1)  # noqa: E731
    world.run("mimic4_full_mistral_7b", level=level)
    written = to_page(world.sheet("table_3"))
    golden = GOLDEN / "table_3.md"
    if os.environ.get("PLANT_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(written, encoding="utf-8")
    assert written == golden.read_text(encoding="utf-8")


def test_no_verdict_of_one_seed_stands_without_saying_so(world):
    one = world.change(experiments={"mimic4_full_mistral_7b": {"seeds": [0]}})
    one.run("mimic4_full_mistral_7b")
    sheet = one.sheet("table_3")
    stated = to_frame(sheet).filter(pl.col("verdict").is_in(["within", "above", "below"]))
    assert stated.height == 6
    assert stated["over"].unique().to_list() == ["documents, one seed"]
    page = to_page(sheet)
    assert len(re.findall(r"(within|above|below)\*{0,2} one seed", page)) == 6
    assert "6 of the verdicts on one seed" in sheet.summary[0]
    assert "the interval is over test documents alone" in page
    world.run("mimic4_full_mistral_7b")
    several = to_page(world.sheet("table_3"))
    assert "one seed" not in several
    assert "training seeds and test documents together" in several


@pytest.mark.parametrize("name", TABLES)
def test_latex_is_balanced_and_ascii_and_its_rows_fill_the_columns(world, name, assert_latex):
    world.run("mimic4_full_mistral_7b", "mimic3_few_mistral_7b", "eurlex4k_mistral_7b")
    text = to_tex(world.sheet(name))
    assert_latex(text, "longtable")
    assert text.count(r"\begingroup") == text.count(r"\endgroup") == 1


def test_an_item_is_written_in_its_formats(world, tmp_path):
    for item in ("table_5", "figure_5"):
        write_item(item, world.settings, world.paths, str(tmp_path / "paper"))  # as the workflow passes it
    files = {path.relative_to(tmp_path / "paper").as_posix() for path in (tmp_path / "paper").rglob("*.*")}
    tables = {f"tables/table_5.{kind}" for kind in ("csv", "md", "tex")}
    assert files == tables | {"figures/figure_5.pdf", "figures/figure_5.png"}


def test_an_unreadable_file_is_refused_and_nothing_is_written(world, tmp_path):
    world.run("mimic4_full_mistral_7b")
    path = world.paths["mimic4_full_mistral_7b"].statistics / "intervals.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="expected a parquet file"):
        write_item("table_3", world.settings, world.paths, tmp_path / "paper")
    assert not (tmp_path / "paper").exists()
