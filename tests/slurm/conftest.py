"""A private Slurm for the session, and copies of the repository that stand for fresh clones."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "config", "docs", "envs", "profiles", "slurm", "src", "workflow")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scontrol")
ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb", "mariadb-install-db", "sacct", "sacctmgr")
SCRIPT = Path(__file__).with_name("mini_slurm.sh")
MAIN = "@job"
STAGE = {"epochs": 1, "batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005}
NOTES = {"admissions": 160, "codes": 25, "words": 400, "words_per_note": 25}
TINY = {"kind": "random", "hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2, "vocabulary": 500}
EXPERIMENT = {"dataset": "small", "backbone": "tiny", "variants": ["plant", "random_init"],
              "baselines": ["tfidf_linear"], "reference": "plant", "seeds": [0]}  # fmt: skip
MINIATURE = {
    "datasets": {"small": {"source": "mimic3", "generate": NOTES, "credentialed": False}},
    "backbones": {"tiny": TINY, "words": {"kind": "words"}},
    "relevance": {"k": 200},
    "pretrainings": {"plant": {**STAGE, "k": 200}},
    "finetunings": {"focal": {**STAGE, "hard_negatives": 5}, "focal_long": {**STAGE, "hard_negatives": 5, "epochs": 2}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal_long"}},
    "statistics": {"resamples": 50},
    "experiments": {"small": EXPERIMENT},
}


def environment(**more: str) -> dict[str, str]:
    """What a user's shell has after the environment was activated."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLANT_SLURM", "SLURM_"))}
    return {**kept, "PATH": path, "OMP_NUM_THREADS": "1", **more}


@dataclass(frozen=True)
class Clone:
    """A copy of the repository whose config is the miniature."""

    folder: Path
    env: dict[str, str]

    def command(self, *arguments: str) -> list[str]:
        return ["snakemake", "--profile", "slurm", *arguments]

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `snakemake --profile slurm <arguments>` in the clone."""
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=900
        )

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """The same, in the background; what it says goes to first.log."""
        with (self.folder / "first.log").open("w") as log:
            run = subprocess.Popen(self.command(*arguments), cwd=self.folder, env=self.env, stdout=log, stderr=log)
            try:
                yield run
            finally:
                run.kill()
                run.wait()

    def write_config(self, config: dict[str, object]) -> None:
        """As the default config and as the profile's."""
        for name in ("config", "paper"):
            (self.folder / "config" / f"{name}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def config(self) -> dict[str, object]:
        return yaml.safe_load((self.folder / "config" / "config.yaml").read_text("utf-8"))

    def write_partitions(self, partitions: dict[str, object]) -> None:
        (self.folder / "slurm" / "partitions.yaml").write_text(yaml.safe_dump({"partitions": partitions}), "utf-8")

    def first(self, script: str, code: str) -> None:
        """Let a script of the workflow do something else before its work."""
        path = self.folder / "workflow" / "scripts" / f"{script}.py"
        text = path.read_text(encoding="utf-8")
        assert MAIN in text
        path.write_text(text.replace(MAIN, f"{code}\n{MAIN}", 1), encoding="utf-8")


def make_clone(folder: Path, env: dict[str, str]) -> Clone:
    folder.mkdir()
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=skipped)
        else:
            shutil.copy(ROOT / part, folder / part)
    clone = Clone(folder, env)
    clone.write_config(MINIATURE)
    return clone


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone without a scheduler."""
    return make_clone(tmp_path / "clone", environment())


@dataclass(frozen=True)
class Job:
    """One line of squeue."""

    number: int
    partition: str
    state: str
    comment: str
    memory: str


@dataclass(frozen=True)
class Slurm:
    """A private Slurm, and how to ask it and to disturb it."""

    env: dict[str, str]
    folder: Path

    def clone(self, folder: Path) -> Clone:
        return make_clone(folder, dict(self.env))

    def jobs(self, clone: Clone) -> list[Job]:
        """The jobs that a clone has submitted, in their order, ended ones too."""
        command = ["squeue", "--noheader", "--states=all", "--format=%i|%P|%T|%k|%m|%Z"]
        lines = subprocess.run(command, env=self.env, capture_output=True, text=True, check=True).stdout.splitlines()
        rows = [line.split("|") for line in lines if line.endswith(f"|{clone.folder}")]
        return sorted((Job(int(row[0]), *row[1:5]) for row in rows), key=lambda job: job.number)

    def ask(self, *command: str) -> str:
        """What a command of Slurm prints."""
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=True).stdout.strip()

    def script(self, verb: str, *arguments: str) -> None:
        """Run mini_slurm.sh."""
        command = ["bash", str(SCRIPT), verb, str(self.folder), *arguments]
        subprocess.run(command, env=self.env, check=True, timeout=120, stdin=subprocess.DEVNULL)

    def node_of(self, number: int) -> str:
        """The node that a job runs on, or ran on last."""
        return self.ask("squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%N")

    @staticmethod
    def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds} s in vain"
            time.sleep(0.5)

    def idle(self) -> set[str]:
        return set(self.ask("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N").split())

    def submit(self, *options: str) -> str:
        """The number of a new job."""
        return self.ask("sbatch", "--parsable", "--output=/dev/null", *options)

    def drain(self, node: str) -> None:
        self.ask("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    def resume(self, *nodes: str) -> None:
        """Let nodes that are drained take jobs again."""
        for node in nodes:
            if "drain" in self.ask("sinfo", "--noheader", f"--nodes={node}", "--partition=cpu", "--format=%T"):
                self.ask("scontrol", "update", f"nodename={node}", "state=resume")

    def kill_node(self, name: str) -> None:
        """End everything on a node at once, as when its power fails: its daemon, the keepers of its jobs, the jobs."""
        while lost := [process for process in psutil.process_iter() if self._runs_on(process, name)]:
            for process in lost:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(lost, timeout=1)

    def kill_controller(self) -> None:
        os.kill(int((self.folder / "run" / "slurmctld.pid").read_text("utf-8")), signal.SIGKILL)

    def _runs_on(self, process: psutil.Process, node: str) -> bool:
        """Whether a process is a job of a node, or writes the log of its daemon."""
        try:
            variables, files = process.environ(), [file.path for file in process.open_files()]
        except psutil.Error:  # it has ended, or is somebody else's
            return False
        here = variables.get("SLURM_CONF") == self.env["SLURM_CONF"] and variables.get("SLURMD_NODENAME") == node
        return here or str(self.folder / "log" / f"slurmd.{node}.log") in files


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [open_socket.getsockname()[1] for open_socket in sockets]
    for open_socket in sockets:
        open_socket.close()
    return ports


def missing(programs: tuple[str, ...]) -> list[str]:
    return [program for program in programs if shutil.which(program, path=environment()["PATH"]) is None]


@contextmanager
def private_slurm(folder: Path, nodes: int, accounting: bool = False) -> Iterator[Slurm]:
    """Start a Slurm in a folder, and stop it in the end; skips where Slurm is not installed."""
    if absent := missing(PROGRAMS):
        pytest.skip(f"Slurm is not installed here: {', '.join(absent)} not found (packages: see mini_slurm.sh)")
    ports = " ".join(map(str, free_ports(nodes + 3)))
    env = environment(PORTS=ports, NODES=str(nodes), ACCOUNTING=str(int(accounting)))
    bins = os.pathsep.join([str(folder / "bin"), env["PATH"]])
    slurm = Slurm({**env, "PATH": bins, "SLURM_CONF": str(folder / "slurm.conf")}, folder)
    try:
        slurm.script("up")
        yield slurm
    finally:
        for i in range(nodes):  # a job that a failed test left behind would outlive its daemon
            slurm.kill_node(f"node{i + 1}")
        slurm.script("down")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A private Slurm of one node."""
    with private_slurm(tmp_path_factory.mktemp("slurm"), nodes=1) as slurm:
        yield slurm


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A private Slurm of two nodes, with accounting where a MariaDB is installed."""
    with private_slurm(tmp_path_factory.mktemp("cluster"), nodes=2, accounting=not missing(ACCOUNTING)) as slurm:
        yield slurm
