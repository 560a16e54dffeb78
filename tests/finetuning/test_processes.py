"""Both stages in two processes: the numbers of one."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).with_name("stages_job.py")
SOURCE = Path(__file__).parents[2] / "src"


def launch(count, folder):
    """What each of `count` processes found."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if count > 1 else {}
    started = [
        subprocess.Popen(
            [sys.executable, JOB, folder], text=True, stderr=subprocess.PIPE,
            env={**common, **group, **({"RANK": str(rank), "LOCAL_RANK": str(rank)} if group else {})},
        )
        for rank in range(count)
    ]  # fmt: skip
    errors = [process.communicate(timeout=100)[1] for process in started]
    assert [process.returncode for process in started] == [0] * count, "\n".join(errors)
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(count)]


def flat(value):
    """The numbers of a nested structure, in order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in flat(value[key])]
    return [number for part in value for number in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.slow
def test_two_processes_train_both_stages_to_the_numbers_of_one(tmp_path):
    (alone,) = launch(1, tmp_path / "one")
    first, second = launch(2, tmp_path / "two")
    assert first == second
    assert flat(first) == pytest.approx(flat(alone), rel=1e-9, abs=1e-8)  # AdamW magnifies rounding
    assert all(row["loss"] > 0 for found in alone.values() for row in found["stage 1"] + found["stage 2"])
    kept = sorted(path.name for path in (tmp_path / "two" / "sampled1" / "epochs").iterdir())
    assert kept == ["1", "2"]
