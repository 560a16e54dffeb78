"""What goes wrong on a machine: a full or read-only disk, no shared memory, vanished files, two Snakemakes at once.

Each time one clear error, nothing half-written, and the same command goes on to the same bytes.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from plant.ground.checkpoints import save_tensors
from plant.ground.files import write_arrays, write_json, write_table, write_with
from plant.ground.staging import staged

STEM = "qzvxjw"  # begins the canaries in the notes (conftest)
FULL, READ_ONLY = "No space left on device", "Read-only file system"


class Disk:
    """A small disk in a folder."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder = folder
        self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")

    def _mount(self, *options: str) -> None:
        ended = subprocess.run(["mount", *options, self.folder], capture_output=True, text=True)
        if ended.returncode:
            pytest.skip(f"a small disk needs root and `mount`: {ended.stderr.strip()}")

    def change(self, how: str) -> None:
        """`ro`, `rw`, or a new `size=...`."""
        self._mount("-o", f"remount,{how}")

    def fill(self, room: int) -> None:
        """Leave `room` bytes."""
        state = os.statvfs(self.folder)
        with (self.folder / "filler").open("wb") as file:
            file.write(bytes(max(0, state.f_bavail * state.f_frsize - room)))


@pytest.fixture
def disk() -> Iterator[Callable[[Path, str], Disk]]:
    """(folder, size) -> a disk there; unmounted in the end."""
    made: list[Disk] = []

    def make(folder: Path, size: str) -> Disk:
        folder.mkdir(exist_ok=True)
        made.append(Disk(folder, size))
        return made[-1]

    yield make
    for one in made:
        subprocess.run(["umount", "--lazy", one.folder], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder that says what, not when and how."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith("provenance.json") and not path.name.startswith(".")
    }


# --- every writer ---------------------------------------------------------------------------------


WRITERS = {
    "json": lambda path: write_json(path, ["x" * 20_000]),
    "arrays": lambda path: write_arrays(path, {"x": np.zeros(5000)}),
    "tensors": lambda path: save_tensors(path, {"x": torch.zeros(5000)}),
    "table": lambda path: write_table(path, [{"x": os.urandom(20_000)}]),
    "polars": lambda path: write_with(path, pl.DataFrame({"x": [os.urandom(20_000)]}).write_parquet),
    "folder": lambda path: write_with(path, lambda folder: folder.mkdir() or (folder / "a").write_bytes(bytes(20_000))),
}


@pytest.mark.parametrize("kind", [*WRITERS, "staged"])
def test_every_writer_tells_of_a_full_and_of_a_read_only_disk_and_leaves_what_was_there(tmp_path, disk, kind):
    small = disk(tmp_path / "disk", "64k")
    target = small.folder / "target"
    target.write_text("old")

    def write() -> None:
        if kind != "staged":
            WRITERS[kind](target)
            return
        with staged(small.folder) as folder:
            (folder / "other").write_text("small")
            pl.DataFrame({"x": [os.urandom(20_000)]}).write_parquet(folder / "target")

    small.fill(12_000)
    with pytest.raises(OSError, match=FULL):
        write()
    small.change("ro")
    with pytest.raises(OSError, match=READ_ONLY):
        write()
    small.change("rw")
    assert sorted(path.name for path in small.folder.iterdir()) == ["filler", "target"]
    assert target.read_text() == "old"
    small.change("size=1m")
    if kind == "folder":
        target.unlink()
    write()
    assert not list(small.folder.rglob("*partial*"))


# --- jobs on a small disk -------------------------------------------------------------------------

slow = pytest.mark.slow
JOBS = {
    "corpus/small/corpus": 12_000,
    "corpus/small/words/tokens": 8_000,
    "relevance/small/tiny/mig": 8_000,
    "finetuning/small/tiny/plant+focal/seed0": 400_000,  # room for one checkpoint, not for two
    "paper/small/tables": 16_000,
    "corpus/small/tiny/tokenizer": 4_000,
    "model/small/tiny/random_backbone": 16_000,
    "pretraining/small/tiny/plant/seed0": 100_000,
    "evaluation/small/tiny/plant+focal/seed0.predict": 12_000,
    "evaluation/small/words/tfidf_linear": 8_000,
    "statistics/small/intervals_and_tests": 0,
    "paper/small/figures": 20_000,
    "paper/small/report": 20_000,
}
"""Job -> bytes that are left for it: its first files find room, its last ones do not."""
QUICK = 5


def sidecar_of(command: str) -> str:
    """The sidecar that a job writes: outputs stand behind inputs, in a script of Snakemake and in a command."""
    _, script, *more = command.split(" ", 2)
    text = more[0] if more else Path(script).read_text(encoding="utf-8")
    return re.findall(r"results/[^\s'\"\\]*provenance\.json", text)[-1]


@pytest.mark.parametrize("job", [*list(JOBS)[:QUICK], *(pytest.param(job, marks=slow) for job in list(JOBS)[QUICK:])])
def test_a_job_on_a_full_disk_says_so_and_goes_on_when_there_is_room(finished, again, commands, replay, disk, job):
    whole = contents(finished / "results")
    shutil.rmtree(again / "results")
    small = disk(again / "results", "16m")
    shutil.copytree(finished / "results", again / "results", dirs_exist_ok=True)
    sidecar = again / sidecar_of(commands[job])
    outputs = json.loads(sidecar.read_text(encoding="utf-8"))["outputs"]
    for path in (*map(again.joinpath, outputs), sidecar):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    small.fill(JOBS[job])

    def check_refused(reason: str) -> None:
        ended = replay(job, again)
        assert ended.returncode == 2, ended.stderr
        (line,) = (line for line in ended.stderr.splitlines() if "error: " in line)
        assert any(f"error: {Path(path)}" in line for output in outputs for path in (output, Path(output).parent))
        assert f"expected to write, got {reason!r}" in line
        assert "Traceback" not in ended.stderr
        assert STEM not in ended.stderr.lower()
        left = contents(small.folder)
        assert all(left[name] == whole[name] for name in left.keys() & whole.keys())  # what is there is whole
        assert not list(small.folder.rglob("*partial*"))
        assert not sidecar.exists()

    check_refused(FULL)
    if "finetuning" in job:
        state = json.loads((sidecar.parent / "checkpoint/state.json").read_text(encoding="utf-8"))
        assert (state["epoch"], state["step"]) == (2, 0)
    else:
        small.change("size=32m,ro")
        check_refused(READ_ONLY)
    small.change("size=32m,rw")
    ended = replay(job, again)
    assert ended.returncode == 0, ended.stderr
    assert ("resumed in epoch 2" in ended.stderr) == ("finetuning" in job)
    left = contents(small.folder)
    assert left.pop("filler")
    assert left == whole


def test_snakemake_on_a_disk_that_nobody_may_write_to_says_so_and_goes_on(tmp_path, config, disk, snakemake):
    small = disk(tmp_path / "results", "4m")
    target = "results/corpus/small/train.parquet"
    for change in ("ro", "rw"):
        small.change(change)
        if change == "rw":
            small.fill(8192)
        ended = snakemake(tmp_path, config, target)
        assert ended.returncode != 0
        assert (READ_ONLY if change == "ro" else f"expected to write, got {FULL!r}") in ended.stdout
        assert "Traceback" not in ended.stdout
    small.change("size=8m")
    ended = snakemake(tmp_path, config, target)
    assert ended.returncode == 0, ended.stdout
    small.change("ro")
    ended = snakemake(tmp_path, config, target, "--force")
    assert ended.returncode != 0
    assert "Write-protected output files" in ended.stdout  # Snakemake's own words
    assert "Traceback" not in ended.stdout


@slow
def test_a_pipeline_whose_disk_is_full_again_and_again_ends_with_the_numbers_of_an_undisturbed_run(
    finished, tmp_path, config, disk, snakemake
):
    """All is on the small disk: results, logs, and what Snakemake keeps for itself."""
    small, size, failures = disk(tmp_path / "all", "700k"), 700, 0
    while True:
        ended = snakemake(small.folder, config, "--show-failed-logs", "--rerun-incomplete")
        if ended.returncode == 0:
            break
        failures += 1
        assert FULL in ended.stdout, ended.stdout[-3000:]
        assert not list(small.folder.rglob("results/**/*partial*"))
        size += 400
        small.change(f"size={size}k")
    assert failures >= 5
    found, whole = contents(small.folder / "results"), contents(finished / "results")
    metrics = [name for name in whole if name.endswith(("metrics.json", "intervals.csv", ".safetensors"))]
    assert len(metrics) > 20
    assert all(found[name] == whole[name] for name in metrics)


# --- no shared memory -----------------------------------------------------------------------------

SMALL_MEMORY = "mount -t tmpfs -o size=64k tmpfs /dev/shm && head -c 65536 /dev/zero > /dev/shm/filler && exec "


def without_shared_memory(command: str, folder: Path) -> subprocess.CompletedProcess:
    """Run a command to which /dev/shm is full; nobody else sees that."""
    tried = subprocess.run(["unshare", "--mount", "sh", "-c", f"{SMALL_MEMORY} true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"a full /dev/shm needs root and `unshare`: {tried.stderr.strip()}")
    shell = ["unshare", "--mount", "sh", "-c", SMALL_MEMORY + command]
    return subprocess.run(shell, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("job", ["pretraining/small/tiny/plant/seed0", "evaluation/small/words/tfidf_linear"])
def test_training_needs_no_shared_memory(finished, again, commands, job):
    folder = Path(sidecar_of(commands[job])).parent
    kept = contents(finished / folder)
    shutil.rmtree(again / folder)
    ended = without_shared_memory(commands[job], again)
    assert ended.returncode == 0, ended.stderr
    made = contents(again / folder)
    assert len(made) >= 3
    assert made.items() <= kept.items()


@slow
def test_two_processes_need_no_shared_memory(again, commands):
    command = commands["pretraining/small/tiny/plant/seed0"]
    python, script, rest = command.split(" ", 2)
    launch = (
        f"{python} -m accelerate.commands.launch --multi_gpu --num_machines 1 --num_processes 2 --mixed_precision no"
        " --dynamo_backend no --num_cpu_threads_per_process 1 --main_process_port 0"
    )
    run = again / "results/pretraining/small/tiny/plant/seed0"
    shutil.rmtree(run)
    ended = without_shared_memory(f"{launch} {script} {rest}", again)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((run / "provenance.json").read_text(encoding="utf-8"))["resources"]["processes"] == 2


# --- vanished files -------------------------------------------------------------------------------

VANISHED = {
    "corpus/small/words/tokens": "corpus/small/val.parquet",
    "relevance/small/words/mig": "corpus/small/words/vocabulary.parquet",
    "evaluation/small/words/tfidf_linear": "corpus/small/train.parquet",
    "model/small/tiny/random_backbone": "corpus/small/tiny/tokenizer",
    "paper/small/tables": "statistics/small/wilcoxon.parquet",
}


@pytest.mark.parametrize("job", VANISHED)
def test_an_input_that_vanished_before_it_was_read_is_named_and_the_next_try_works(again, replay, job):
    gone, kept = again / "results" / VANISHED[job], again / "elsewhere"
    before = contents(again / "results")
    gone.rename(kept)
    ended = replay(job, again)
    assert ended.returncode == 2
    assert re.search(rf"error: results/{VANISHED[job]}\S*: expected a file, got nothing there", ended.stderr)
    assert "Traceback" not in ended.stderr
    kept.rename(gone)
    assert replay(job, again).returncode == 0
    assert contents(again / "results") == before


def test_a_deleted_intermediate_is_made_again_where_it_is_asked_for(finished, again, config, snakemake):
    """And nowhere else: as long as what was made from it is there, nobody misses it."""
    target = "results/corpus/small/words/tokens.safetensors"
    (again / target).unlink()
    planned = snakemake(again, config, "--dry-run")
    assert "Nothing to be done" in planned.stdout
    ended = snakemake(again, config, target)
    assert ended.returncode == 0, ended.stdout
    assert re.findall(r"^\[\d+/1\] (\w+) ", ended.stdout, re.MULTILINE) == ["tokens"]
    assert (again / target).read_bytes() == (finished / target).read_bytes()


# --- two at once ----------------------------------------------------------------------------------


def test_a_second_snakemake_in_the_same_folder_is_turned_away_and_the_first_is_unharmed(
    finished, tmp_path, config, snakemake, start_snakemake
):
    target = "results/corpus/small/tiny/tokens.safetensors"
    first = start_snakemake(tmp_path, config, target, cores="1")
    try:
        until = time.monotonic() + 100
        while not list(tmp_path.glob("logs/**/*.log")) and time.monotonic() < until:  # a job runs: the lock is written
            time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)  # it stays in the middle, however slow the second one starts
        # without the option it may stop even earlier, at the output that the first one's job has begun
        second = snakemake(tmp_path, config, target, "--rerun-incomplete")
        first.send_signal(signal.SIGCONT)
        said, _ = first.communicate(timeout=200)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    assert second.returncode != 0
    assert "Directory cannot be locked" in second.stdout
    assert "Traceback" not in second.stdout
    assert first.returncode == 0, said
    assert (tmp_path / target).read_bytes() == (finished / target).read_bytes()
