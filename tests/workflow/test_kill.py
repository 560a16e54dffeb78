"""Nothing is lost: Snakemake and all of its jobs are killed again and again, and the numbers come out the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from plant.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("PLANT_KILLS", "50"))
LONGEST = 14.0  # seconds that a run lives at most before it is killed; a job takes two to eight
STAGE = {"batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005}
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
    },
    "relevance": {"k": 200},
    "pretrainings": {"plant": {**STAGE, "epochs": 2, "k": 200}},
    "finetunings": {"focal": {**STAGE, "epochs": 3, "hard_negatives": 5}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal"}},
    "statistics": {"resamples": 50},
    "experiments": {
        "small": {
            "dataset": "small",
            "backbone": "tiny",
            "variants": ["plant", "random_init"],
            "baselines": ["tfidf_linear", "mig_log_odds", "combined"],
            "reference": "plant",
            "seeds": [0],
        }
    },
}


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
    """All metrics and intervals of a finished run."""
    found: dict[str, object] = {}
    for path in sorted((folder / "results/evaluation").rglob("metrics.json")):
        found[str(path.relative_to(folder))] = json.loads(path.read_text("utf-8"))
    table = folder / "results/paper/small/tables/intervals.csv"
    return found | {"intervals": table.read_text("utf-8")}


@pytest.mark.slow
def test_killed_at_random_moments_the_pipeline_ends_with_the_numbers_of_an_undisturbed_run(tmp_path: Path) -> None:
    undisturbed = prepare(tmp_path / "undisturbed")
    finish(undisturbed)
    expected = numbers(undisturbed)
    assert len(expected) == 6

    random = generator(0, "kills")
    kills, runs = 0, 0
    while kills < KILLS:
        folder = prepare(tmp_path / f"run{runs}")
        runs += 1
        while kills < KILLS:
            run = start(folder)
            time.sleep(float(random.uniform(2, LONGEST)))
            if run.poll() is not None:
                assert run.returncode == 0, (folder / "snakemake.log").read_text("utf-8")[-3000:]
                break
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            kills += 1
            assert start(folder, "--unlock").wait(120) == 0
        finish(folder)
        log = (folder / "snakemake.log").read_text("utf-8")
        assert "Traceback" not in log
        assert numbers(folder) == expected
        leftovers = list((folder / "results").rglob("*.partial"))
        print(f"run {runs}: {kills} kills so far, {len(leftovers)} unfinished files left behind")  # for the record
    assert kills == KILLS
