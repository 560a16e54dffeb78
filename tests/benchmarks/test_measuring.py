"""The measuring itself: what is known to take a time, a memory, a power must be found to."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import common
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
