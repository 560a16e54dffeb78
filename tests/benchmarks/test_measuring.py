"""The measuring itself: what is known to take a time, a memory, a power must be found to."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import common
import goals
import pages
import profile_run
import tables


def keep(megabytes: int):
    """Prepares nothing; the work takes memory and lets it go."""
    return lambda: int(np.ones(megabytes * 1_000_000, dtype=np.uint8).sum())


def burn(rounds: int):
    numbers = np.arange(100_000.0)
    return lambda: max(float(np.sqrt(numbers).sum()) for _ in range(rounds))


def fail():
    raise ValueError("nothing to measure")


def test_memory_is_the_peak_of_the_work_and_not_what_is_left() -> None:
    small, large = common.fresh(keep, megabytes=20), common.fresh(keep, megabytes=220)
    assert (small.value, large.value) == (20_000_000, 220_000_000)
    assert large.extra_mb - small.extra_mb == pytest.approx(200, abs=30)
    assert large.peak_mb > 220


def test_ten_times_the_work_takes_about_ten_times_the_time() -> None:
    few, many = (common.fresh(burn, rounds=rounds, repeats=3) for rounds in (200, 2000))
    assert many.value == few.value
    assert 5 < many.cpu_seconds / few.cpu_seconds < 20


def test_a_failure_in_the_other_process_is_told() -> None:
    with pytest.raises(RuntimeError, match="nothing to measure"):
        common.fresh(fail)


def test_a_power_law_is_found_with_its_error() -> None:
    sizes = [10, 30, 100, 300]
    exact = common.growth(sizes, [5 * size**1.5 for size in sizes])
    assert exact == pytest.approx((1.5, 0, 5), abs=1e-5)
    noise = np.random.default_rng(0).normal(0, 0.1, size=(400, 4))
    fits = [common.growth(sizes, [5 * size**1.5 for size in sizes] * np.exp(each)) for each in noise]
    assert np.std([fit.exponent for fit in fits]) == pytest.approx(
        0.1 / np.sqrt(((np.log(sizes) - np.mean(np.log(sizes))) ** 2).sum()), rel=0.15
    )
    assert math.isnan(common.growth([1, 2], [1, 2]).error)


def test_a_ratio_is_one_row_s_seconds_over_those_of_the_way_it_names() -> None:
    rows = [
        {"kernel": "k", "way": "ours", "size": 10, "cpu_seconds": 2.0},
        {"kernel": "k", "way": "theirs", "size": 10, "cpu_seconds": 8.0, "ratio_to": "ours"},
        {"kernel": "k", "way": "theirs", "size": 20, "cpu_seconds": 8.0, "ratio_to": "ours"},
    ]
    assert [row["ratio"] for row in tables.with_ratios(rows)] == [None, 4.0, None]


def test_tables_and_figures_are_written(tmp_path: Path) -> None:
    rows = [
        common.row("a kernel", way, size, cpu_seconds=factor * size, ratio_to="ours", more=1)
        for way, factor in (("ours", 1e-3), ("theirs", 1e-2))
        for size in (10, 100, 1000)
    ]
    tables.write("name", rows, tmp_path, {"processor": "some"})
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")) == [
        "figures/name.a-kernel.pdf", "figures/name.a-kernel.png", "tables/name.csv", "tables/name.md",
    ]  # fmt: skip
    text = (tmp_path / "tables" / "name.md").read_text(encoding="utf-8")
    assert "10 x ours" in text
    assert "1.00 ± 0.00" in text


def measured_rows() -> list[common.Row]:
    return [
        common.row("MIG table", "ours", "MIMIC-III", cpu_seconds=2.0, peak_mb=700.0),
        common.row("MIG table", "duckdb", "MIMIC-III", cpu_seconds=30.0, ratio_to="ours", extrapolated=True),
        common.row("MIG table", "ours", "MIMIC-IV", cpu_seconds=4.0, peak_mb=1200.0),
        common.row("MIG table", "duckdb", "MIMIC-IV", cpu_seconds=32.0, ratio_to="ours"),
    ]


def test_a_page_s_blocks_are_filled_from_the_last_run_and_nothing_else_changes(tmp_path: Path) -> None:
    tables.write("mig", measured_rows(), tmp_path, {"processor": "some"})
    page = tmp_path / "page.md"
    before = "Words.\n<!-- bench:mig -->\nold\n<!-- /bench -->\nMore.\n<!-- bench:goals -->\n<!-- /bench -->\n"
    page.write_text(before + "<!-- bench:bootstrap -->\nstays\n<!-- /bench -->\n", encoding="utf-8")
    assert pages.refill(tmp_path, tmp_path) == ["page.md"]
    after = page.read_text(encoding="utf-8")
    assert "| duckdb | ~30 s, 15x | 32 s, 8x |" in after
    assert "old" not in after
    assert after.startswith("Words.\n<!-- bench:mig -->\n")
    assert after.endswith("<!-- bench:bootstrap -->\nstays\n<!-- /bench -->\n")
    assert "| MIG: CPU-seconds of duckdb over ours | at least 10 | 8 to 15 | met at 1 of 2 sizes; missed at" in after
    assert pages.refill(tmp_path, tmp_path) == []


def test_goals_name_rows_that_the_benchmarks_have() -> None:
    """A renamed way or kernel must not turn a goal into one that nothing measures."""
    for goal in goals.GOALS:
        source = (Path(__file__).parent / f"bench_{goal.bench}.py").read_text(encoding="utf-8")
        assert f'"{goal.way}"' in source, goal
        assert goal.kernel.removesuffix(".*") in source, goal


def test_a_goal_is_met_up_to_its_bound() -> None:
    found = {verdict.goal.text: verdict for verdict in goals.verdicts({"mig": tables.with_ratios(measured_rows())})}
    assert found["MIG: MB of memory at MIMIC-III's size"].words == "met"
    assert found["MIG: CPU-seconds of scipy SpGEMM + numpy over ours"].words == "not measured"
    assert found["MIG: CPU-seconds of duckdb over ours"].missed == ["MIG table, MIMIC-IV (8)"]


def test_a_run_s_steps_are_added_up_by_kind(tmp_path: Path) -> None:
    for path, seconds in (
        ("finetuning/d/b/a/seed0/provenance.json", 30.0), ("finetuning/d/b/a/seed1/provenance.json", 50.0),
        ("evaluation/d/b/a/seed0/provenance.json", 15.0), ("evaluation/d/b/a/seed0/metrics.provenance.json", 4.0),
        ("evaluation/d/words/tfidf_linear/seed0/provenance.json", 1.0),
    ):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        facts = {"resources": {"cpu_seconds": seconds, "peak_host_mb": 100 + seconds}}
        (tmp_path / path).write_text(json.dumps(facts), encoding="utf-8")
    assert profile_run.of_sidecars(tmp_path)[2:] == [
        "| finetuning | 2 | 80.0 | 80% | 40.0 | 150 |",
        "| evaluation: scores | 1 | 15.0 | 15% | 15.0 | 115 |",
        "| evaluation: metrics | 1 | 4.0 | 4% | 4.0 | 104 |",
        "| baselines: tfidf_linear | 1 | 1.0 | 1% | 1.0 | 101 |",
        "| all | 5 | 100.0 | 100% | | |",
    ]


def test_a_clock_counts_a_part_within_a_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [7.0]  # of the process: a busy machine has no part in it
    monkeypatch.setattr(profile_run.time, "process_time", lambda: spent[0])
    clock = profile_run.Clock()
    with clock.part("outer"):
        spent[0] += 1
        with clock.part("inner"):
            spent[0] += 3
        spent[0] += 1
    assert {name: clock.seconds[name] for name in ("outer", "inner")} == {"outer": 2, "inner": 3}
