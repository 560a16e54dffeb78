"""The ways to get the environment onto a machine: one Python, one set of pins, and a job that needs no activation."""

import json
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "envs" / "Containerfile").read_text(encoding="utf-8")
STEPS = re.findall(r"^(FROM|ARG|WORKDIR|RUN|COPY|CMD) (.*)$", RECIPE, re.MULTILINE)


def steps(verb: str) -> list[str]:
    return [text for found, text in STEPS if found == verb]


def lock(name: str) -> list[str]:
    """The pins of a lock, without remarks."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / "envs" / name).read_text("utf-8").splitlines())
    return [line for line in lines if line]


def test_conda_and_container_have_a_python_that_the_package_accepts():
    accepted = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"])
    conda = yaml.safe_load((ROOT / "envs" / "plant.yaml").read_text("utf-8"))["dependencies"]
    (python,) = (entry.removeprefix("python=") for entry in conda if str(entry).startswith("python="))
    (image,) = steps("FROM")
    assert image == f"docker.io/library/python:{python}-slim"
    assert f"{python}.0" in accepted


def test_every_rule_that_starts_a_job_names_the_conda_file():
    """So that `--sdm conda` runs nothing outside of it."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
    rules = [rule for text in texts for rule in re.split(r"^rule ", text, flags=re.MULTILINE)[1:] if "shell:" in rule]
    assert len(rules) > 15
    bare = [rule.split(":")[0] for rule in rules if "../../envs/plant.yaml" not in rule]
    assert bare == []


def test_the_conda_file_holds_the_pins_of_the_lock_in_its_order():
    pip = yaml.safe_load((ROOT / "envs" / "plant.yaml").read_text("utf-8"))["dependencies"][-1]["pip"]
    assert pip == lock("cpu.txt")


def test_the_container_copies_what_exists_and_what_is_let_through():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    needed = {"Snakefile", "config", "envs", "profiles", "pyproject.toml", "slurm", "src", "workflow"}
    assert needed <= allowed
    assert [name for name in allowed if not (ROOT / name).exists()] == []
    assert steps("COPY") == ["envs/ envs/", ". ."]


def test_the_container_installs_locks_that_exist_and_starts_what_they_hold():
    (default,) = (argument.removeprefix("LOCK=") for argument in steps("ARG"))
    assert "pip install --no-cache-dir -r envs/${LOCK}.txt" in steps("RUN")
    assert set(re.findall(r"LOCK=(\w+)", RECIPE)) == {default, "cuda"}
    assert lock("cuda.txt")[0] == "-r cpu.txt"
    (command,) = map(json.loads, steps("CMD"))
    assert command[0] in {pin.split("==")[0] for pin in lock(f"{default}.txt")}


def test_the_commands_of_the_recipe_are_those_of_make():
    """The container installs the package as `make setup` does: without a download, as it lies there."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for text in (steps("RUN")[-1], makefile):
        assert re.search(r"pip install .*--no-build-isolation --no-deps --editable \.", text)


def test_a_job_finds_its_environment_from_another_folder_with_an_empty_one(tmp_path):
    """As on a node: no PATH, no HOME, nothing activated; only the Python of a shared folder is named."""
    generate = {"admissions": 40, "codes": 8, "words": 100, "words_per_note": 20}
    config = {
        "datasets": {"small": {"source": "mimic3", "credentialed": False, "generate": generate}},
        "backbones": {"tiny": {"kind": "random"}},
        "finetunings": {"focal": {}},
        "variants": {"random_init": {"finetuning": "focal"}},
        "experiments": {
            "small": {"dataset": "small", "backbone": "tiny", "variants": ["random_init"], "reference": "random_init"}
        },
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    target = "results/corpus/small/labels.parquet"
    inner = (
        f"cd / && {sys.executable} -m snakemake --snakefile {ROOT}/Snakefile --directory {tmp_path}"
        f" --configfile {tmp_path}/config.yaml --cores 1 {target}"
    )
    ended = subprocess.run(["env", "-i", "sh", "-c", inner], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    sidecar = json.loads((tmp_path / "results/corpus/small/provenance.json").read_text(encoding="utf-8"))
    assert sidecar["versions"]["python"] == platform.python_version()
    pins = dict(pin.split("==") for pin in lock("cpu.txt") if "==" in pin)
    assert {name: sidecar["versions"][name] for name in ("numpy", "polars")} == {
        name: pins[name] for name in ("numpy", "polars")
    }


def test_the_locks_are_what_is_installed_here():
    """A job that runs in this environment has the versions that the locks name."""
    from importlib.metadata import version

    pins = dict(pin.split("==") for pin in lock("cpu.txt") if "==" in pin)
    wrong = {name: version(name) for name in ("torch", "transformers", "snakemake", "scipy", "numba")
             if version(name).split("+")[0] != pins[name]}  # fmt: skip
    assert wrong == {}


@pytest.mark.parametrize("name", ["cpu.txt", "dev.txt", "cuda.txt", "optional.txt"])
def test_every_line_of_a_lock_is_one_exact_version(name):
    assert [line for line in lock(name) if not re.fullmatch(r"-r [\w.]+|[\w.-]+==[\w.+!]+", line)] == []
