"""A training that was half done goes on with the inputs that it began with, or begins anew."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plant.ground.files import write_arrays
from plant.ground.job import describe

ROOT = Path(__file__).parents[2]
NETWORK = {"kind": "word_network", "encoder": "cnn", "attention": "per_label", "embedding_size": 4, "hidden_size": 4,
           "word_vectors": "trained"}  # fmt: skip
ONE_EPOCH = {"epochs": 1, "patience": None}


def files_of(folder, corpus_files):
    """A corpus, its relevance and its word vectors, by the names of a rule's inputs."""
    rows = [([10 + n % 2, 20, 21 + n % 3], [f"label {n % 2}"]) for n in range(12)]
    corpus_files(folder, {"train": rows[:8], "val": rows[8:10], "test": rows[10:]}, ["label 0", "label 1"])
    arrays = {"indptr": np.array([0, 2, 4]), "token_id": np.array([10, 20, 11, 20], np.int32)}
    write_arrays(folder / "mig.safetensors", arrays | {"relevance": np.array([1, 0.1, 1, 0.1], np.float32)})
    write_arrays(folder / "word_vectors.safetensors", {"vectors": np.ones((24, 4), np.float32)})
    names = {"labels": "labels", "tokens": "tokens", "relevance": "mig", "made": "word_vectors"}
    return {name: folder / f"{file}.safetensors" for name, file in names.items()}


def run(script, section, inputs, out, code="old"):
    empty = {name: [] for name in ("features", "embeddings", "shortlist", "static", "residual", "planted")}
    settings = {"backbone": NETWORK, section: ONE_EPOCH, "compute": {"device": "cpu"}}
    task = describe(
        inputs | empty, {"sidecar": out / "provenance.json"}, rule=script, wildcards={"seed": "0"},
        params={"settings": settings, "backbone": str(inputs["made"]), "code": code},
    )  # fmt: skip
    command = [sys.executable, ROOT / f"workflow/scripts/{script}.py", json.dumps(task)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def half_done(tmp_path, corpus_files):
    """(script, section) -> inputs and folder of a training that has left its state."""

    def make(script, section):
        inputs, out = files_of(tmp_path, corpus_files), tmp_path / "out"
        (out / "history.parquet" / "in the way").mkdir(parents=True)
        assert run(script, section, inputs, out).returncode != 0
        assert (out / "checkpoint/state.json").is_file()
        (out / "history.parquet" / "in the way").rmdir()
        (out / "history.parquet").rmdir()
        return inputs, out

    return make


@pytest.mark.parametrize(("script", "section"), [("pretrain", "pretraining"), ("finetune", "finetuning")])
def test_a_state_that_began_with_other_word_vectors_is_not_used(half_done, script, section):
    inputs, out = half_done(script, section)
    write_arrays(inputs["made"], {"vectors": np.full((24, 4), 2, np.float32)})
    ended = run(script, section, inputs, out)
    assert ended.returncode == 0, ended.stderr
    assert "resumed" not in ended.stderr


@pytest.mark.parametrize(("code", "resumed"), [("old", True), ("new", False)])
def test_a_state_is_used_by_the_code_that_left_it_alone(half_done, code, resumed):
    inputs, out = half_done("finetune", "finetuning")
    ended = run("finetune", "finetuning", inputs, out, code)
    assert ended.returncode == 0, ended.stderr
    assert ("resumed in epoch 2" in ended.stderr) == resumed
