"""Nothing is lost: Snakemake and all of its jobs are killed again and again, and the numbers come out the same.

`pytest -m slow tests/workflow/test_kill.py` runs it; PLANT_KILLS says how many kills (50).
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from plant.ground.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("PLANT_KILLS", "50"))
LONGEST = 14.0  # seconds that a run lives at most before it is killed; a job takes two to eight
PASSES = {"epochs": 1, "batch_size": 16, "accumulation": 1}
LSTM = {"kind": "word_network", "encoder": "awd_lstm", "embedding_size": 8, "hidden_size": 16, "attention_heads": 2,
        "options": {"segment": 20}, "language_model": PASSES}  # fmt: skip
RANKED_WORDS = {**PASSES, "head_learning_rate": 0.005, "lists": "vocabulary", "k": 50, "l2r_size": 8, "l2r_hidden": 8}


def extended(config: dict) -> dict:
    """The config of the run with longer trainings, and an experiment of the earlier version of the paper."""
    for recipe in (config["pretrainings"]["plant"], config["finetunings"]["focal"]):
        recipe["epochs"] += 1
    config["backbones"]["lstm"] = LSTM
    config["pretrainings"]["ranked_words"] = RANKED_WORDS | {"epochs": 2}
    config["finetunings"]["focal_words"] = config["finetunings"]["focal"] | {"differentiable_attention": 1}
    config["variants"]["plant_words"] = {"pretraining": "ranked_words", "finetuning": "focal_words"}
    config["experiments"]["earlier"] = {
        "dataset": "small", "backbone": "lstm", "variants": ["plant_words"], "reference": "plant_words", "seeds": [0],
    }  # fmt: skip
    return config


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    """Snakemake in a session of its own: its jobs die with it."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder,
               "--configfile", folder / "config.yaml", "--cores", "2", "--rerun-incomplete", *arguments]  # fmt: skip
    with (folder / "snakemake.log").open("ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True
        )


def finish(folder: Path, *arguments: str) -> None:
    run = start(folder, *arguments)
    assert run.wait(900) == 0, (folder / "snakemake.log").read_text("utf-8")[-3000:]


def prepare(folder: Path, config: dict) -> Path:
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def numbers(folder: Path) -> dict[str, object]:
    """All metrics and intervals of a finished run, and the digest of every array and weight."""
    found: dict[str, object] = {}
    for path in sorted((folder / "results/evaluation").rglob("metrics.json")):
        found[str(path.relative_to(folder))] = json.loads(path.read_text("utf-8"))
    for path in sorted((folder / "results").rglob("*.safetensors")):
        found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    table = folder / "results/paper/small/tables/intervals.csv"
    return found | {"intervals": table.read_text("utf-8")}


def logs_since(folder: Path, moment: float) -> dict[str, str]:
    """Logs of the jobs that were started after a moment (`time.time()`)."""
    files = (folder / "logs").rglob("*.log")
    return {str(path): path.read_text("utf-8") for path in files if path.stat().st_mtime >= moment}


def kill_after(run: subprocess.Popen, seconds: float) -> bool:
    """Kill Snakemake and its jobs at once; False where it had ended before."""
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return True
    return False


def unlock(folder: Path, *, by_command: bool) -> None:
    """What a user does after a kill; the command takes seconds, and all that it does is to remove this folder."""
    if by_command:
        assert start(folder, "--unlock").wait(300) == 0
    else:
        shutil.rmtree(folder / ".snakemake" / "locks", ignore_errors=True)


@pytest.mark.slow
def test_killed_at_random_moments_the_pipeline_ends_with_the_numbers_of_an_undisturbed_run(
    tmp_path: Path, config: dict
) -> None:
    config = extended(config)
    undisturbed = prepare(tmp_path / "undisturbed", config)
    finish(undisturbed)
    expected = numbers(undisturbed)
    assert len([name for name in expected if name.endswith("metrics.json")]) == 7

    random = generator(0, "kills")
    kills, runs = 0, 0
    while kills < KILLS:
        folder = prepare(tmp_path / f"run{runs}", config)
        runs += 1
        first = True
        while kills < KILLS:
            moment, run = time.time(), start(folder)
            killed = kill_after(run, float(random.uniform(2, LONGEST)))
            said = logs_since(folder, moment)
            assert not [name for name, text in said.items() if "Traceback" in text or "error: " in text]
            if not killed:
                assert run.returncode == 0, (folder / "snakemake.log").read_text("utf-8")[-3000:]
                break
            kills += 1
            unlock(folder, by_command=first)
            first = False
        finish(folder)
        log = (folder / "snakemake.log").read_text("utf-8")
        assert "Traceback" not in log
        assert "Error in rule" not in log
        assert numbers(folder) == expected
    assert kills == KILLS
