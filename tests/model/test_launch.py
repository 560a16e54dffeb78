"""The script of Stage 1 under `accelerate launch`, as the rules start it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch

from plant.ground.checkpoints import load_tensors
from plant.ground.files import write_arrays
from plant.ground.job import describe

pytestmark = pytest.mark.slow  # each process spends seconds on imports; test_parallel.py has the numbers

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "workflow" / "scripts" / "pretrain.py"
LAUNCH = [Path(sys.executable).with_name("accelerate"), "launch", "--multi_gpu", "--num_machines", "1",
          "--num_processes", "2", "--mixed_precision", "no", "--dynamo_backend", "no",
          "--num_cpu_threads_per_process", "1", "--main_process_port", "0"]  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, tiny, backbone_folder, corpus_files):
    """What the rule hands over: 40 documents of 12 tokens, 5 labels, an adapter on a tiny quantised backbone."""
    folder, random = tmp_path_factory.mktemp("inputs"), np.random.default_rng(0)
    labels = np.arange(40) % 5
    ids = random.integers(20, 200, size=(40, 12)).astype(np.int32)
    ids[np.arange(40), random.integers(0, 12, size=40)] = 10 + labels
    rows = [(row, [f"label {label}"]) for row, label in zip(ids, labels, strict=True)]
    documents = {"train": rows[:30], "val": rows[30:35], "test": rows[35:]}
    corpus_files(folder, documents, [f"label {i}" for i in range(5)])
    tokens = np.concatenate([[10 + label, *range(20, 60)] for label in range(5)]).astype(np.int32)
    relevance = np.tile(np.linspace(1, 0.1, 41, dtype=np.float32), 5)
    write_arrays(folder / "mig.safetensors", {"indptr": np.arange(6) * 41, "token_id": tokens, "relevance": relevance})
    backbone = tiny(devices=2, hidden_size=64, adapter="lora", lora={"dropout": 0.0}, quantization="nf4",
                    gradient_checkpointing=True)  # fmt: skip
    settings = {
        "backbone": backbone.model_dump(mode="json"),
        "pretraining": {"epochs": 12, "patience": None, "batch_size": 3, "accumulation": 2, "learning_rate": 1e-3,
                        "head_learning_rate": 1e-3},
        "compute": {"device": "cpu"},
    }  # fmt: skip
    files = {"labels": "labels.safetensors", "tokens": "tokens.safetensors", "relevance": "mig.safetensors"}
    named = {name: folder / file for name, file in files.items()}
    return {
        "inputs": named | {"made": [], "features": [], "embeddings": []},
        "rule": "pretrain", "wildcards": {"seed": "0"},
        "params": {"settings": settings, "backbone": str(backbone_folder(backbone)), "code": ""},
    }  # fmt: skip


def start(prefix, inputs, out):
    command = [*prefix, SCRIPT, json.dumps(describe(**inputs, outputs={"sidecar": out / "provenance.json"}))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process):
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return errors


@pytest.fixture(scope="module")
def launched(inputs, tmp_path_factory):
    """Folder and log of the job in two processes."""
    out = tmp_path_factory.mktemp("two") / "out"
    return out, finish(start(LAUNCH, inputs, out))


def weights(out):
    return {f"{name}/{key}": value for name in ("label_attention", "backbone")
            for key, value in load_tensors(out / f"{name}.safetensors").items()}  # fmt: skip


def test_two_launched_processes_train_what_one_trains(launched, inputs, tmp_path):
    out, log = launched
    finish(start([sys.executable], inputs, tmp_path / "one"))
    histories = [pyarrow.parquet.read_table(path / "history.parquet").to_pylist() for path in (tmp_path / "one", out)]
    assert len(histories[0]) == 12
    for one, two in zip(*histories, strict=True):
        assert two == pytest.approx(one, rel=1e-3)  # single precision, twelve epochs of AdamW
    assert histories[0][-1]["loss"] < 0.95 * histories[0][0]["loss"]
    one, two = weights(tmp_path / "one"), weights(out)
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=1e-3)
    assert log.count("pretrain started") == 1
    assert log.count("Stage 1 epoch 12/12") == 1
    assert "default" not in log  # accelerate has nothing to complain of
    used = json.loads((out / "provenance.json").read_text(encoding="utf-8"))["resources"]
    assert (used["processes"], used["attempts"]) == (2, 1)
    assert not (out / "checkpoint").exists()


def test_sigterm_to_the_launcher_saves_and_the_next_launch_ends_with_the_same_bits(launched, inputs, tmp_path):
    whole, _ = launched
    out = tmp_path / "out"
    process = start(LAUNCH, inputs, out)
    until = time.monotonic() + 100
    while not (out / "checkpoint/state.json").is_file() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode != 0
    assert errors.count("the same command continues from there") == 2
    stopped = json.loads((out / "checkpoint/state.json").read_text(encoding="utf-8"))
    assert stopped["epoch"] < 12
    assert not (out / "history.parquet").exists()
    log = finish(start(LAUNCH, inputs, out))
    assert f"resumed in epoch {stopped['epoch']} after step {stopped['step']}" in log
    found = weights(out)
    assert all(torch.equal(value, found[name]) for name, value in weights(whole).items())
    assert (out / "history.parquet").read_bytes() == (whole / "history.parquet").read_bytes()
    assert json.loads((out / "provenance.json").read_text(encoding="utf-8"))["resources"]["attempts"] == 2
