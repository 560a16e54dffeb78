"""Several processes of one job: the same numbers as one, one writer, one stop, exact resume."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from plant.ground.checkpoints import load_tensors

JOB = Path(__file__).with_name("shared_job.py")
SOURCE = Path(__file__).parents[2] / "src"


def launch(count, *arguments):
    """Run the toy job in `count` processes as `accelerate launch` would, without its seconds of start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if count > 1 else {}
    started = [
        subprocess.Popen(
            [sys.executable, JOB, *arguments],
            env={**common, **group, **({"RANK": str(rank), "LOCAL_RANK": str(rank)} if group else {})},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    errors = [process.communicate(timeout=100)[1] for process in started]
    assert [process.returncode for process in started] == [0] * count, "\n".join(errors)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """(count) -> facts and weights of each process of a job of `count` processes."""
    found = {}

    def run(count):
        if count not in found:
            folder = tmp_path_factory.mktemp(f"processes{count}")
            launch(count, folder)
            found[count] = [
                (json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")),
                 load_tensors(folder / f"{rank}.safetensors"))
                for rank in range(count)
            ]  # fmt: skip
        return found[count]

    return run


def test_several_processes_compute_what_one_computes(ended):
    one, several = ended(1)[0], ended(2)[0]
    assert several[0]["count"] == 2
    assert len(one[0]["plain"]) == 4
    for before, after in zip(one[0]["plain"], several[0]["plain"], strict=True):
        assert after == pytest.approx(before, rel=1e-12)
    moved = 0.0
    for name in (name for name in one[1] if name.startswith("plain/")):
        torch.testing.assert_close(several[1][name], one[1][name], rtol=1e-12, atol=1e-12)
        moved = max(moved, (one[1][name] - several[1][name.replace("plain", "dropout")]).abs().max().item())
    assert moved > 1e-3  # dropout does something: what follows would fail without the generators' states


def test_both_stages_compute_in_two_processes_what_they_compute_in_one(ended):
    one, several = ended(1)[0], ended(2)[0]
    assert len(one[0]["stages"]) == 5  # with sampled labels, every reduction, shortlists and epochs that are kept
    for name, history in one[0]["stages"].items():
        assert len(history) == 2
        for before, after in zip(history, several[0]["stages"][name], strict=True):
            assert after == pytest.approx(before, rel=1e-6)  # validation scores are kept in single precision
    for name in (name for name in one[1] if name.startswith("stage")):
        torch.testing.assert_close(several[1][name], one[1][name], rtol=1e-9, atol=1e-9)


def test_all_processes_hold_the_same_bits(ended):
    first, *others = ended(2)
    for facts, weights in others:
        assert {**facts, "own": 0} == {**first[0], "own": 0}
        assert all(torch.equal(value, first[1][name]) for name, value in weights.items())


@pytest.mark.parametrize("count", [1, 2])
def test_sigterm_in_one_process_stops_all_at_one_update_and_the_resumed_run_has_the_same_bits(ended, count):
    for facts, weights in ended(count):
        assert facts["stopped"] == "toy, epoch 2, step 2"
        assert facts["resumed"] == facts["dropout"]
        for name in (name for name in weights if name.startswith("resumed/")):
            assert torch.equal(weights[name], weights[name.replace("resumed", "dropout")]), name


def test_each_process_draws_its_own_dropout(ended):
    first, second = (facts["own"] for facts, _ in ended(2))
    assert first == ended(1)[0][0]["own"] != second


def test_a_parameter_without_a_gradient_anywhere_is_left_alone(ended):
    for count in (1, 2):
        assert all(torch.equal(w["plain/never"], torch.ones(2, dtype=torch.float64)) for _, w in ended(count))
