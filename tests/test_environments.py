"""The ways to get the environment onto a machine: one Python, one set of pins, and a job that needs no activation."""

import ast
import hashlib
import importlib.util
import json
import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "envs" / "Containerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGE = PROJECT["project"]
EXTRAS_OF_MODULES = {
    "paper/": {"paper"}, "baselines/": {"baselines"}, "model/transformer/experts.py": {"quantisation"},
    "model/word_vectors.py": {"word_vectors"}, "serving/server.py": {"serve"},
    "ground/tracking.py": {"tensorboard"},
}  # fmt: skip
"""What may import the packages of which extra, by how its path starts."""
UNLOCKED = {"onnx", "tensorboard"}
"""Extras that no result depends on, so no lock holds them."""
OWNERS = packages_distributions()
STEPS = re.findall(r"^(FROM|ARG|WORKDIR|RUN|COPY|CMD) (.*)$", RECIPE, re.MULTILINE)


def steps(verb: str) -> list[str]:
    return [text for found, text in STEPS if found == verb]


def lines(name: str) -> list[str]:
    """The lines of a lock, without remarks. A pin is one line with its hashes."""
    text = (ROOT / "envs" / name).read_text("utf-8").replace("\\\n", " ")
    return [line for line in (line.partition("#")[0].strip() for line in text.splitlines()) if line]


def lock(name: str) -> list[str]:
    """The pins of a lock."""
    return [line.partition(" ")[0] if "==" in line else line for line in lines(name)]


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements} - {PACKAGE["name"]}


def imported(file: Path) -> set[str]:
    """The distributions that a file imports, inside functions too; none for what comes with Python."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    others = {module.split(".")[0] for module in modules} - {*sys.stdlib_module_names, "plant"}
    return {canonicalize_name(OWNERS.get(module, [module])[0]) for module in others}


def test_every_pin_is_in_the_range_of_the_package_and_no_range_is_a_pin():
    pins = {canonicalize_name(name): pin for name, pin in (line.split("==") for line in lock("cpu.txt"))}
    extras = [line for group in PACKAGE["optional-dependencies"].values() for line in group]
    ranges = list(map(Requirement, [*PACKAGE["dependencies"], *extras, *PROJECT["build-system"]["requires"]]))
    own = [wanted for wanted in ranges if wanted.name == PACKAGE["name"]]
    assert {extra for wanted in own for extra in wanted.extras} <= PACKAGE["optional-dependencies"].keys()
    foreign = [wanted for wanted in ranges if wanted not in own]
    unlocked = names([line for extra in UNLOCKED for line in PACKAGE["optional-dependencies"][extra]])
    locked = [wanted for wanted in foreign if canonicalize_name(wanted.name) not in unlocked]
    assert [str(wanted) for wanted in locked if pins[canonicalize_name(wanted.name)] not in wanted.specifier] == []
    bounds = {str(wanted): {bound.operator for bound in wanted.specifier} for wanted in foreign}
    open_above = {wanted for wanted, operators in bounds.items() if operators != {">=", "<"}}
    assert open_above == set(PROJECT["build-system"]["requires"])


def test_every_import_of_the_library_is_declared_where_it_is_needed():
    """The dependencies are enough for every module but those of `EXTRAS_OF_MODULES`."""
    extras = {name: names(group) for name, group in PACKAGE["optional-dependencies"].items()}
    missing = {}
    for file in sorted((ROOT / "src" / "plant").rglob("*.py")):
        place = file.relative_to(ROOT / "src" / "plant").as_posix()
        of = [extras[extra] for start, group in EXTRAS_OF_MODULES.items() if place.startswith(start) for extra in group]
        if more := imported(file) - names(PACKAGE["dependencies"]).union(*of):
            missing[place] = more
    assert missing == {}


def test_the_locks_hold_every_pin_and_every_import_and_no_cuda_library_reaches_the_cpu():
    pins = {name: {line.lower() for line in lock(name)} for name in ("cpu.txt", "cpu.in", "dev.txt", "dev.in")}
    assert pins["cpu.in"] <= pins["cpu.txt"]
    assert pins["dev.in"] <= pins["cpu.txt"] | pins["dev.txt"]
    run_time = names(lock("cpu.txt"))
    assert not [name for name in run_time if name.startswith(("nvidia-", "cuda-", "triton"))]
    assert not run_time & names(lock("cuda.txt")[1:])
    files = [file for folder in ("src", "workflow") for file in (ROOT / folder).rglob("*.py")]
    installed = {canonicalize_name(owner[0]) for owner in OWNERS.values()}
    needed = set().union(*map(imported, files)) & installed
    assert needed - {"plant-xmtc"} - names(lock("cpu.in")) == set()


def test_nothing_is_declared_that_nobody_uses():
    """Used is what the library imports; of the extras of the pipeline what its files import or start."""
    library = set().union(*(imported(file) for file in (ROOT / "src").rglob("*.py")))
    extras = {name: names(group) for name, group in PACKAGE["optional-dependencies"].items()}
    started = {
        "workflow": {"accelerate", "snakemake"},
        "slurm": {"snakemake-executor-plugin-slurm"},
        "onnx": {"onnx", "onnxscript"},  # by torch.onnx.export
    }
    assert {name: found for name, found in extras.items() if name in started} == started
    declared = names(PACKAGE["dependencies"]).union(*(extras[name] for name in extras.keys() - started.keys()))
    assert declared - library == set()
    assert "from snakemake" in (ROOT / "Snakefile").read_text("utf-8")
    assert "accelerate launch" in (ROOT / "workflow" / "rules" / "launch.smk").read_text("utf-8")
    assert re.search("^executor: slurm$", (ROOT / "slurm" / "profile.yaml").read_text("utf-8"), re.MULTILINE)


def test_conda_and_container_have_a_python_that_the_package_accepts():
    accepted = SpecifierSet(PACKAGE["requires-python"])
    conda = yaml.safe_load((ROOT / "envs" / "plant.yaml").read_text("utf-8"))["dependencies"]
    (python,) = (entry.removeprefix("python=") for entry in conda if str(entry).startswith("python="))
    (image,) = steps("FROM")
    assert image == f"docker.io/library/python:{python}-slim"
    assert f"{python}.0" in accepted


def test_every_rule_that_starts_a_job_gets_the_conda_file():
    """So that `--sdm conda` runs nothing outside of it. The path starts at the folder of the rules."""
    (named,) = re.findall(r'conda_env = None if each.norun else "(.*)"', (ROOT / "Snakefile").read_text("utf-8"))
    assert (ROOT / "workflow" / "rules" / named).resolve() == ROOT / "envs" / "plant.yaml"


def test_the_conda_file_holds_the_pins_of_the_lock_in_its_order():
    pip = yaml.safe_load((ROOT / "envs" / "plant.yaml").read_text("utf-8"))["dependencies"][-1]["pip"]
    assert pip == [line.split()[0] for line in lines("cpu.txt")]


def test_the_container_copies_what_exists_and_what_is_let_through():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    needed = {"Snakefile", "config", "envs", "profiles", "pyproject.toml", "slurm", "src", "workflow"}
    assert needed <= allowed
    assert [name for name in allowed if not (ROOT / name).exists()] == []
    assert steps("COPY") == ["envs/ envs/", ". ."]


def test_the_container_installs_locks_that_exist_and_starts_what_they_hold():
    (default,) = (argument.removeprefix("LOCK=") for argument in steps("ARG"))
    assert "PIP_NO_CACHE_DIR=1 python envs/install.py ${LOCK}" in steps("RUN")
    assert set(re.findall(r"LOCK=(\w+)", RECIPE)) == {default, "cuda"}
    assert lock("cuda.txt")[0] == "-r cpu.txt"
    (command,) = map(json.loads, steps("CMD"))
    assert command[0] in {pin.split("==")[0] for pin in lock(f"{default}.txt")}


def test_a_job_finds_its_environment_from_another_folder_with_an_empty_one(tmp_path):
    """As on a node: no PATH, no HOME, nothing activated; only the Python of a shared folder is named."""
    generate = {"admissions": 40, "codes": 8, "words": 100, "words_per_note": 20}
    words = {"backbone": "words", "variants": [], "baselines": ["tfidf_linear"], "reference": "tfidf_linear"}
    config = {
        "datasets": {"small": {"source": "mimic3", "credentialed": False, "generate": generate}},
        "backbones": {"words": {"kind": "words"}}, "finetunings": {}, "variants": {},
        "experiments": {"small": {"dataset": "small", **words}},
    }  # fmt: skip
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


def test_the_locks_are_what_is_installed_here():
    """A job that runs in this environment has the versions that the locks name."""
    from importlib.metadata import version

    pins = dict(pin.split("==") for pin in lock("cpu.txt") if "==" in pin)
    wrong = {name: version(name) for name in ("torch", "transformers", "snakemake", "scipy", "numba")
             if version(name).split("+")[0] != pins[name]}  # fmt: skip
    assert wrong == {}


def test_every_pin_has_the_hashes_of_its_files_and_nothing_is_installed_without_them():
    version, digests = r"-r [\w.]+|[\w.-]+==[\w.+!]+", r"( --hash=sha256:[0-9a-f]{64})+"
    files = dict.fromkeys(("cpu.in", "dev.in"), version)
    files |= dict.fromkeys(("cpu.txt", "dev.txt", "cuda.txt", "docs.txt", "optional.txt"), version + digests)
    wrong = [
        line for name, form in files.items() for line in lines(name) if not re.fullmatch(form, " ".join(line.split()))
    ]
    assert wrong == []
    assert "envs/install.py dev" in (ROOT / "Makefile").read_text("utf-8")
    assert '"install", "--no-deps", "--require-hashes", "-r"' in (ROOT / "envs" / "install.py").read_text("utf-8")


def load_installer():
    """The module envs/install.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "envs" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_build_of_torch_that_the_lock_does_not_know_is_refused(monkeypatch):
    installer, calls = load_installer(), []

    def run(command, *, check):
        calls.append(command[len(installer.PIP)])
        (Path(command[command.index("--dest") + 1]) / "torch-9+odd.whl").write_bytes(b"other")

    monkeypatch.setattr(installer.subprocess, "run", run)
    with pytest.raises(SystemExit, match=r"torch-9\+odd.whl: expected a SHA-256"):
        installer.install_torch("9", {hashlib.sha256(b"small").hexdigest()})
    assert calls == ["download"]


def test_the_pin_of_torch_is_read_with_its_hashes():
    pin, hashes = load_installer().torch_pin()
    (line,) = (line for line in lines("cpu.txt") if line.startswith("torch=="))
    assert line.startswith(f"torch=={pin} ")
    assert {f"--hash=sha256:{each}" for each in hashes} == set(line.split()[1:])


def test_the_cpu_builds_of_torch_are_among_the_files_of_its_pin():
    (torch,) = (line for line in lines("cpu.txt") if line.startswith("torch=="))
    builds = [line.split() for line in (ROOT / "envs" / "torch-cpu.sha256").read_text("utf-8").splitlines()]
    assert len(builds) == 8
    assert all(f"sha256:{digest}" in torch for digest, _ in builds)
    assert {file.split("-")[1] for _, file in builds} == {torch.split()[0].removeprefix("torch==") + "+cpu"}
