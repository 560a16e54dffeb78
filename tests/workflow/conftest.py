"""One run of the whole pipeline for all tests of this folder: on credentialed notes, each with a word that is its own.

The words are canaries: none of them may be found in what leaves `results/`, whatever goes wrong.
"""

import copy
import csv
import gzip
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plant.corpus.synthetic import write_raw
from plant.ground.settings import Mimic3

ROOT = Path(__file__).resolve().parents[2]
STEM = "qzvxjw"  # begins every canary, and no word of the synthetic notes
LETTERS = "bcdfghjklm"
STAGE1 = {"epochs": 1, "batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005, "k": 200}
STAGE2 = {"epochs": 2, "batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005, "hard_negatives": 5}
GENERATE = {"admissions": 160, "codes": 25, "words": 400, "words_per_note": 25}
CONFIG = {
    "datasets": {"small": {"source": "mimic3"}},  # and its path
    "backbones": {
        "tiny": {"kind": "random", "hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2, "vocabulary": 500},
        "words": {"kind": "words"},
    },
    "relevance": {"k": 200},
    "pretrainings": {"plant": STAGE1},
    "finetunings": {"focal": STAGE2, "focal_long": {**STAGE2, "epochs": 3}},
    "evidences": {"all": {}},
    "variants": {
        "plant": {"pretraining": "plant", "finetuning": "focal"},
        "random_init": {"finetuning": "focal_long"},
        "plant_evidence": {"pretraining": "plant", "finetuning": "focal", "evidence": "all"},
    },
    "statistics": {"resamples": 50},
    "experiments": {
        "small": {
            "dataset": "small",
            "backbone": "tiny",
            "variants": ["plant", "random_init", "plant_evidence"],
            "baselines": ["tfidf_linear", "mig_log_odds", "combined"],
            "reference": "plant",
            "seeds": [0],
        }
    },
}


def canary(number: str) -> str:
    """A word for an admission; the empty number gives the word that all notes share."""
    return STEM + "".join(LETTERS[int(digit)] for digit in number) + "xvzq"


@pytest.fixture(scope="session")
def notes(tmp_path_factory) -> Path:
    """A raw MIMIC-III folder; every note holds the canary of its admission and the one that all share."""
    folder = tmp_path_factory.mktemp("raw")
    write_raw(Mimic3(source="mimic3", generate=GENERATE), folder)
    file = folder / "NOTEEVENTS.csv.gz"
    header, *rows = csv.reader(io.StringIO(gzip.decompress(file.read_bytes()).decode("utf-8")))
    admission, text = header.index("HADM_ID"), header.index("TEXT")
    for row in rows:
        row[text] = f"{canary('')} {row[text]} {canary(row[admission])} {canary('')}"
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([header, *rows])
    file.write_bytes(gzip.compress(out.getvalue().encode("utf-8")))
    return folder


@pytest.fixture
def config(notes) -> dict:
    """The config of the run, free to be changed."""
    return with_notes(notes)


def with_notes(folder: Path) -> dict:
    found = copy.deepcopy(CONFIG)
    found["datasets"]["small"]["path"] = str(folder)
    return found


@pytest.fixture
def on_request() -> Callable[..., None]:
    """(config, *datasets): an experiment of each that `all` does not run, as a config may hold no unused dataset."""
    words = {"backbone": "words", "variants": [], "baselines": ["tfidf_linear"], "reference": "tfidf_linear"}

    def add(config: dict, *datasets: str) -> None:
        config["experiments"] |= {name: {"dataset": name, "on_request": True, **words} for name in datasets}

    return add


@pytest.fixture(scope="session")
def finished(tmp_path_factory, notes, snakemake) -> Path:
    """A folder in which the whole pipeline has run; what Snakemake said is in snakemake.out. Not to be written to."""
    folder = tmp_path_factory.mktemp("run")
    ended = snakemake(folder, with_notes(notes), "--show-failed-logs", "--printshellcmds", "--skip-script-cleanup")
    assert ended.returncode == 0, ended.stdout[-3000:]
    (folder / "snakemake.out").write_text(ended.stdout, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def commands(finished) -> dict[str, str]:
    """Log of a job, without ending -> its shell command, from any folder that is like that of the run."""
    said = (finished / "snakemake.out").read_text(encoding="utf-8")
    found = re.findall(r"Shell command: exec python \S*?(workflow/scripts/.*) > logs/(\S+)\.log 2>&1", said)
    launched = {log: f"{sys.executable} {ROOT}/{command}" for command, log in found}
    scripts = {}
    for script in (finished / ".snakemake/scripts").glob("*.py"):  # as Snakemake began them
        (log,) = set(re.findall(r"logs/([^\s'\\]+)\.log", script.read_text(encoding="utf-8")))
        scripts[log] = f"{sys.executable} {script}"
    assert (len(launched), len(scripts)) == (3, 23), said[:2000]
    return launched | scripts


@pytest.fixture(scope="session")
def replay(commands) -> Callable[..., subprocess.CompletedProcess]:
    """(job, folder) -> the job once more, without Snakemake; stderr holds its log too."""

    def run(job: str, folder: Path) -> subprocess.CompletedProcess:
        log = folder / f"logs/{job}.log"
        log.unlink(missing_ok=True)
        ended = subprocess.run(commands[job], shell=True, cwd=folder, capture_output=True, text=True)
        said = log.read_text(encoding="utf-8") if log.is_file() else ""
        return subprocess.CompletedProcess(ended.args, ended.returncode, ended.stdout, ended.stderr + said)

    return run


@pytest.fixture
def again(finished, tmp_path) -> Path:
    """A copy of the finished run that may be changed."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path
