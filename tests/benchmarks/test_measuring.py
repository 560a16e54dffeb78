"""The measuring itself: what is known to take a time or a memory must be found to."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import run

WAYS_OF_WORK = """
import time
import numpy as np
from run import Job
def keep(way, megabytes):
    return lambda: int(np.ones(megabytes * 1_000_000, dtype=np.uint8).sum())
def burn(way, seconds):
    def work():
        end = time.process_time() + seconds * (5 if way == "plain" else 1)
        while time.process_time() < end:
            pass
        return 1.0
    return work
def differ(way):
    return lambda: 1.0 if way == "fast" else 1.1
def fail(way):
    raise ValueError("nothing to measure")
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """The module `made_up`, which other processes find too."""
    (tmp_path / "made_up.py").write_text(WAYS_OF_WORK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return "made_up"


def test_memory_is_the_peak_of_the_work_and_not_what_is_left(bench):
    small, large = (run.fresh(bench, "keep", "fast", megabytes=size) for size in (20, 220))
    assert (small.value, large.value) == (20_000_000, 220_000_000)
    assert large.extra_mb - small.extra_mb == pytest.approx(200, abs=30)


def test_a_row_says_how_many_times_faster_and_multiplies_a_part_up(bench):
    job = run.Job("burn", {"seconds": 0.15}, {"seconds": 0.15}, {"seconds": 0.05}, 3.0)
    for quick, mark in ((True, ""), (False, "~")):
        ratio = run.row(bench, "a job", job, quick=quick).split("|")[4].strip()
        assert ratio.startswith(mark) and float(ratio.strip("~")) == pytest.approx(5, rel=0.1)


def test_the_other_way_may_run_in_another_environment_in_turn_and_without_it_the_row_says_how(bench, monkeypatch):
    job = run.Job("burn", {"seconds": 0.1}, {"seconds": 0.1}, outside=("OTHER_PYTHON", "make it"), turns=3)
    monkeypatch.delenv("OTHER_PYTHON", raising=False)
    assert "OTHER_PYTHON is not set. Make the environment: `make it`" in run.row(bench, "a job", job, quick=False)
    asked, fresh = [], run.fresh
    monkeypatch.setenv("OTHER_PYTHON", "other")
    monkeypatch.setattr(run, "fresh", lambda *order, python, **sizes: asked.append(python) or fresh(*order, **sizes))
    cell = run.row(bench, "a job", job, quick=False).split("|")[4].split(",")
    assert float(cell[0]) == pytest.approx(5, rel=0.1) and "of the memory" in cell[1]
    assert asked == [sys.executable, "other"] * 3


def test_ways_that_do_not_agree_are_an_error(bench):
    with pytest.raises(AssertionError, match=r"fast way gives 1\.0, the plain one 1\.1"):
        run.row(bench, "a job", run.Job("differ", {}, {}), quick=True)
    assert run.agree([1.0, np.nan], [1.0, np.nan]) and not run.agree("a", "b")


def test_a_failure_in_the_other_process_is_told(bench):
    with pytest.raises(RuntimeError, match="nothing to measure"):
        run.fresh(bench, "fail", "fast")
