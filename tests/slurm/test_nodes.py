"""Training on a cluster of two nodes, and what happens to it when a node, the controller or its place is lost."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet
import pytest

pytestmark = pytest.mark.slurm_nodes

# Polling for the impatient: on a real cluster the profile's own numbers hold.
QUICK = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "15")
MOVED = ("--rerun-triggers", "mtime")  # results that came from a folder with another name count as made here
STAGE_1 = "results/pretraining/small/tiny/plant/seed{}/label_attention.safetensors"
# Takes seconds to write a state, as a large model does: time for a test to disturb the training.
SLOWLY = """\
import time
from plant.model import fitting
write = fitting.save_checkpoint
fitting.save_checkpoint = lambda *where, **what: (write(*where, **what), time.sleep(4))
"""
WITNESS = """\
import os, pathlib, time
seen = pathlib.Path(f"seen.{time.time()}.{os.getpid()}")
seen.write_text(os.environ.get("SLURMD_NODENAME", "no node"))
"""


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / STAGE_1.format(0)).parent.glob("*.safetensors")}


@pytest.fixture(scope="module")
def undisturbed(cluster, tmp_path_factory):
    """A clone in which Stage 1 has run without the scheduler: what every disturbed run must end with."""
    clone = cluster.clone(tmp_path_factory.mktemp("undisturbed") / "clone")
    config = clone.config()
    config["pretrainings"]["plant"]["epochs"] = 4
    clone.write_config(config)
    subprocess.run(["snakemake", "--cores", "2", STAGE_1.format(0)], cwd=clone.folder, env=clone.env, check=True)
    assert len(weights(clone.folder)) == 2
    return clone


@pytest.fixture
def ready(undisturbed, cluster, tmp_path):
    """A fresh clone with all that Stage 1 reads, on a cluster whose nodes are idle."""
    cluster.wait_until(lambda: cluster.idle() == {"node1", "node2"}, 120)
    clone = cluster.clone(tmp_path / "clone")
    clone.write_config(undisturbed.config())
    for folder in ("results", ".snakemake"):
        shutil.copytree(undisturbed.folder / folder, clone.folder / folder, symlinks=True)
    shutil.rmtree(clone.folder / "results" / "pretraining")
    for code in (WITNESS, SLOWLY):
        clone.first("pretrain", code)
    return clone


class Training:
    """Stage 1 on the cluster, from its first written state to its end."""

    def __init__(self, cluster, clone) -> None:
        self.cluster, self.clone = cluster, clone

    def run(self, disturb, *arguments: str) -> None:
        """Start it, disturb it with `disturb(node)` after its first epoch, and wait for its end."""
        state = (self.clone.folder / STAGE_1.format(0)).parent / "checkpoint" / "state.json"
        with self.clone.running(STAGE_1.format(0), *QUICK, *MOVED, *arguments) as run:
            self.cluster.wait_until(state.exists)
            (job,) = self.cluster.jobs(self.clone)
            self.number, self.node = job.number, self.cluster.node_of(job.number)
            disturb(self.node)
            assert run.wait(400) == 0, self.said()[-5000:]

    def said(self) -> str:
        return (self.clone.folder / "first.log").read_text("utf-8")

    def log(self) -> str:
        return (self.clone.folder / "logs/pretraining/small/tiny/plant/seed0.log").read_text("utf-8")

    def nodes(self) -> list[str]:
        """Where the script was started, start by start."""
        return [path.read_text("utf-8") for path in sorted(self.clone.folder.glob("seen.*"))]

    def attempts(self) -> int:
        """How many starts of the training could write what they had used."""
        sidecar = (self.clone.folder / STAGE_1.format(0)).with_name("provenance.json")
        return json.loads(sidecar.read_text("utf-8"))["resources"]["attempts"]

    def restarts(self) -> str:
        shown = self.cluster.ask("scontrol", "show", "job", str(self.number)).split()
        return next(word for word in shown if word.startswith("Restarts="))


@pytest.fixture
def training(cluster, ready):
    return Training(cluster, ready)


@pytest.fixture(params=["squeue", "sacct"])
def command(request, cluster):
    """How Snakemake asks for the state of its jobs."""
    if request.param == "sacct" and "slurmdbd" not in cluster.ask("scontrol", "show", "config"):
        pytest.skip("no MariaDB here, so sacct has nothing to answer (packages: see mini_slurm.sh)")
    return request.param


def test_a_job_whose_node_failed_runs_on_the_other_and_ends_with_the_same_bits(
    training, cluster, undisturbed, command
) -> None:
    other = {"node1": "node2", "node2": "node1"}
    try:
        training.run(cluster.kill_node, "--slurm-status-command", command)
    finally:
        cluster.script("node", training.node)
    assert training.restarts() == "Restarts=1"
    assert training.nodes() == [training.node, other[training.node]]
    assert "resumed in epoch" in training.log()
    assert weights(training.clone.folder) == weights(undisturbed.folder)


def test_training_that_is_pushed_out_comes_back_and_ends_with_the_same_bits(training, cluster, undisturbed) -> None:
    def urgent(node: str) -> None:
        """A job that takes the whole node for some seconds."""
        cluster.submit("--partition=urgent", f"--nodelist={node}", "--exclusive", "--wrap=sleep 8")

    training.run(urgent)
    assert training.restarts() == "Restarts=1"
    assert len(training.nodes()) == training.attempts() == 2  # it was told, and wrote its state
    assert "resumed in epoch" in training.log()
    assert weights(training.clone.folder) == weights(undisturbed.folder)


def test_a_drained_node_ends_its_job_and_takes_no_new_one(training, cluster, undisturbed) -> None:
    ran: dict[str, str] = {}

    def drain(node: str) -> None:
        cluster.drain(node)
        jobs = [cluster.submit("--gpus=1", "--wrap=true") for _ in range(4)]
        ended = ["squeue", "--noheader", "--states=completed", f"--jobs={','.join(jobs)}", "--format=%i|%N"]
        cluster.wait_until(lambda: len(cluster.ask(*ended).splitlines()) == 4)
        ran.update(line.split("|") for line in cluster.ask(*ended).splitlines())
        assert cluster.jobs(training.clone)[0].state == "RUNNING"

    try:
        training.run(drain)
    finally:
        cluster.resume(training.node)
    assert set(ran.values()) == {"node1", "node2"} - {training.node}
    assert training.nodes() == [training.node]
    assert weights(training.clone.folder) == weights(undisturbed.folder)


def test_a_controller_that_was_away_while_a_job_ran_loses_nothing(training, cluster, undisturbed) -> None:
    waits = cluster.submit("--begin=now+1hour", "--wrap=true")

    def away(node: str) -> None:
        cluster.kill_controller()
        end = time.monotonic() + 70  # longer than five queries by Snakemake
        cluster.wait_until(lambda: time.monotonic() > end)
        cluster.script("controller")

    training.run(away)
    assert training.restarts() == "Restarts=0"
    assert training.nodes() == [training.node]
    assert weights(training.clone.folder) == weights(undisturbed.folder)
    assert cluster.ask("squeue", "--noheader", f"--jobs={waits}", "--format=%T") == "PENDING"
    cluster.ask("scancel", waits)


def test_jobs_spread_over_both_nodes(ready, cluster) -> None:
    whole_node = ("--set-resources", "pretrain:gpu=2")
    run = ready.snakemake(STAGE_1.format(0), STAGE_1.format(1), *QUICK, *MOVED, *whole_node)
    assert run.returncode == 0, (run.stdout + run.stderr)[-5000:]
    first, second = cluster.jobs(ready)
    assert {cluster.node_of(first.number), cluster.node_of(second.number)} == {"node1", "node2"}
    assert all((ready.folder / STAGE_1.format(seed)).is_file() for seed in (0, 1))


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """A folder that has become a small disk without room."""
    ended = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, text=True)
    if ended.returncode:
        pytest.skip(f"a full disk needs root and `mount`: {ended.stderr.strip()}")
    try:
        (folder / "filler").write_bytes(bytes(64 * 1024))
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_scratch_of_a_node_harms_no_job(ready, cluster, undisturbed) -> None:
    scratch = ready.folder / "scratch"
    scratch.mkdir()
    ready.env["TMPDIR"] = str(scratch)
    with full_disk(scratch):
        run = ready.snakemake(STAGE_1.format(0), *QUICK, *MOVED)
        assert run.returncode == 0, (run.stdout + run.stderr)[-5000:]
    assert weights(ready.folder) == weights(undisturbed.folder)


def test_a_node_whose_slurm_has_no_room_is_drained_and_the_held_job_runs_elsewhere_after_release(
    ready, cluster, undisturbed
) -> None:
    reason = ("sinfo", "--noheader", "--nodes=node1", "--partition=cpu", "--format=%E")
    cluster.drain("node2")
    try:
        with ready.running(STAGE_1.format(0), *QUICK, *MOVED) as run:
            with full_disk(cluster.folder / "spool" / "node1"):
                held = ("squeue", "--noheader", "--partition=gpu", "--format=%T %r")
                cluster.wait_until(lambda: cluster.ask(*held) == "PENDING launch failed requeued held")
            assert cluster.ask(*reason) == "SlurmdSpoolDir is full"
            cluster.resume("node2")
            (job,) = cluster.jobs(ready)
            cluster.ask("scontrol", "release", str(job.number))
            assert run.wait(300) == 0, (ready.folder / "first.log").read_text("utf-8")[-5000:]
            assert cluster.node_of(job.number) == "node2"
    finally:
        cluster.resume("node1", "node2")
    assert weights(ready.folder) == weights(undisturbed.folder)


def printed_command(clone) -> tuple[str, str]:
    """The launcher, and the script with its job, of Stage 1 in two processes, as Snakemake shows them."""
    config = clone.config()
    config["backbones"]["tiny"]["devices"] = 2
    clone.write_config(config)
    dry = ["snakemake", "--cores", "2", STAGE_1.format(0), *MOVED, "--force", "--dry-run", "--printshellcmds"]
    run = subprocess.run(dry, cwd=clone.folder, env=clone.env, capture_output=True, text=True, check=True)
    shown = re.search(
        r"exec (env .* accelerate launch .*) (workflow/scripts/pretrain.py .*) > ", run.stdout + run.stderr
    )
    return shown[1], shown[2]


def test_two_processes_on_two_nodes_train_what_one_trains(ready, cluster) -> None:
    """The printed command, with the number of machines and the address of the first one."""
    launcher, script = printed_command(ready)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"--main_process_ip 127.0.0.1 --main_process_port {free.getsockname()[1]}"
    launcher = f"{launcher} --num_machines 2 --machine_rank $SLURM_PROCID {address}"
    (ready.folder / "train.sh").write_text(f"exec {launcher} {script}\n", encoding="utf-8")
    nodes = ["--nodes=2", "--ntasks-per-node=1", "--output=job.log"]
    env = {**ready.env, "PYTHONPATH": str(ready.folder / "src")}
    history = (ready.folder / STAGE_1.format(0)).with_name("history.parquet")
    histories = []
    for start in (["sh", "-c", f"python {script}"], ["sbatch", "--wait", *nodes, "--wrap=srun sh train.sh"]):
        run = subprocess.run(start, cwd=ready.folder, env=env, capture_output=True, text=True, timeout=300)
        log = ready.folder / "job.log"
        assert run.returncode == 0, run.stderr + (log.read_text("utf-8") if log.exists() else "")
        histories.append(pyarrow.parquet.read_table(history).to_pylist())
        shutil.rmtree(history.parent)
    alone, together = histories
    assert len(alone) == 4
    for one, two in zip(alone, together, strict=True):
        assert two == pytest.approx(one, rel=1e-4)  # single precision; the order of additions differs
    assert sorted(Training(cluster, ready).nodes()) == ["no node", "node1", "node2"]
