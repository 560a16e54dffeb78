"""Nothing is lost: Snakemake and all of its jobs are killed again and again, and the numbers come out the same.

`pytest -m slow -s tests/workflow/test_kill.py` prints its figures; PLANT_KILLS says how many kills (50).
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
PASSES = {"batch_size": 16, "accumulation": 1}
STAGE = {**PASSES, "head_learning_rate": 0.005}
CONFIG = {
    "datasets": {
        "small": {
            "source": "mimic3",
            "generate": {"admissions": 160, "codes": 25, "words": 400, "words_per_note": 25},
            "credentialed": False,
        }
    },
    "backbones": {
        "tiny": {"kind": "random", "hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2, "vocabulary": 500},
        "words": {"kind": "words"},
        "lstm": {
            "kind": "word_network", "encoder": "awd_lstm", "embedding_size": 8, "hidden_size": 16,
            "attention_heads": 2, "options": {"segment": 20}, "language_model": {**PASSES, "epochs": 1},
        },
    },
    "relevance": {"k": 200},
    "pretrainings": {
        "plant": {**STAGE, "epochs": 2, "k": 200},
        "ranked_words": {**STAGE, "lists": "vocabulary", "epochs": 2, "k": 50, "l2r_size": 8, "l2r_hidden": 8},
    },
    "finetunings": {"focal": {**STAGE, "epochs": 3, "hard_negatives": 5}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal"},
                 "plant_words": {"pretraining": "ranked_words", "finetuning": "focal"}},
    "statistics": {"resamples": 50},
    "experiments": {
        "small": {
            "dataset": "small",
            "backbone": "tiny",
            "variants": ["plant", "random_init"],
            "baselines": ["tfidf_linear", "mig_log_odds", "combined"],
            "reference": "plant",
            "seeds": [0],
        },
        "earlier": {"dataset": "small", "backbone": "lstm", "variants": ["plant_words"], "reference": "plant_words",
                    "seeds": [0]},
    },
}  # fmt: skip


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


def prepare(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
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
def test_killed_at_random_moments_the_pipeline_ends_with_the_numbers_of_an_undisturbed_run(tmp_path: Path) -> None:
    began = time.monotonic()
    undisturbed = prepare(tmp_path / "undisturbed")
    finish(undisturbed)
    expected = numbers(undisturbed)
    assert len([name for name in expected if name.endswith("metrics.json")]) == 6

    random = generator(0, "kills")
    kills, runs, resumed, partial = 0, 0, 0, 0
    while kills < KILLS:
        folder = prepare(tmp_path / f"run{runs}")
        runs += 1
        first = True
        while kills < KILLS:
            moment, run = time.time(), start(folder)
            killed = kill_after(run, float(random.uniform(2, LONGEST)))
            said = logs_since(folder, moment)
            assert not [name for name, text in said.items() if "Traceback" in text or "error: " in text]
            resumed += sum("resumed in epoch" in text for text in said.values())
            if not killed:
                assert run.returncode == 0, (folder / "snakemake.log").read_text("utf-8")[-3000:]
                break
            kills += 1
            unlock(folder, by_command=first)
            first = False
        moment = time.time()
        finish(folder)
        resumed += sum("resumed in epoch" in text for text in logs_since(folder, moment).values())
        log = (folder / "snakemake.log").read_text("utf-8")
        assert "Traceback" not in log
        assert "Error in rule" not in log
        assert numbers(folder) == expected
        partial += len(list((folder / "results").rglob("*.partial")))
    seconds = time.monotonic() - began
    print(  # for the record
        f"{kills} kills in {runs} runs, {resumed} trainings resumed, {partial} unfinished files left behind, "
        f"{len(expected)} files equal in each, {seconds:.0f} s"
    )
    assert kills == KILLS
