"""A private Slurm for the session, and copies of the repository that stand for fresh clones."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "config", "docs", "envs", "profiles", "slurm", "src", "workflow")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scontrol")
MAIN = 'if __name__ == "__main__":\n'
STAGE = {"epochs": 1, "batch_size": 16, "accumulation": 1, "head_learning_rate": 0.005}
MINIATURE = {
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
    "pretrainings": {"plant": {**STAGE, "k": 200}},
    "finetunings": {"focal": {**STAGE, "hard_negatives": 5}, "focal_long": {**STAGE, "hard_negatives": 5, "epochs": 2}},
    "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}, "random_init": {"finetuning": "focal_long"}},
    "statistics": {"resamples": 50},
    "experiments": {
        "small": {
            "dataset": "small",
            "backbone": "tiny",
            "variants": ["plant", "random_init"],
            "baselines": ["tfidf_linear"],
            "reference": "plant",
            "seeds": [0],
        }
    },
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
        body = "".join(f"    {line}\n" for line in code.splitlines())
        text = path.read_text(encoding="utf-8")
        assert MAIN in text
        path.write_text(text.replace(MAIN, MAIN + body), encoding="utf-8")


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
    env: dict[str, str]

    def clone(self, folder: Path) -> Clone:
        return make_clone(folder, self.env)

    def jobs(self, clone: Clone) -> list[Job]:
        """The jobs that a clone has submitted, in their order, ended ones too."""
        command = ["squeue", "--noheader", "--states=all", "--format=%i|%P|%T|%k|%m|%Z"]
        lines = subprocess.run(command, env=self.env, capture_output=True, text=True, check=True).stdout.splitlines()
        rows = [line.split("|") for line in lines if line.endswith(f"|{clone.folder}")]
        return sorted((Job(int(row[0]), *row[1:5]) for row in rows), key=lambda job: job.number)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [open_socket.getsockname()[1] for open_socket in sockets]
    for open_socket in sockets:
        open_socket.close()
    return ports


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A private Slurm of one node; skips where Slurm is not installed."""
    env = environment()
    missing = [program for program in PROGRAMS if shutil.which(program, path=env["PATH"]) is None]
    if missing:
        pytest.skip(f"Slurm is not installed here: {', '.join(missing)} not found (packages: see mini_slurm.sh)")
    folder = tmp_path_factory.mktemp("slurm")
    script = str(Path(__file__).with_name("mini_slurm.sh"))
    env["PORTS"] = " ".join(map(str, free_ports(2)))
    try:
        subprocess.run(["bash", script, "up", str(folder)], env=env, check=True, timeout=60, stdin=subprocess.DEVNULL)
        bins = os.pathsep.join([str(folder / "bin"), env["PATH"]])
        yield Slurm({**env, "PATH": bins, "SLURM_CONF": str(folder / "slurm.conf")})
    finally:
        subprocess.run(["bash", script, "down", str(folder)], env=env, check=True, timeout=60)
