"""Write the lock files of envs/ from the pins in cpu.in and dev.in.

    make lock              keep every version that is locked already and still fits
    make lock UPGRADE=1    take the newest version of everything that is not pinned in an .in file

pip resolves against its index alone (no local wheels, no extra index), so that two machines write the
same files. On Linux that index has the CUDA build of torch: what only CUDA needs goes to cuda.txt, so that
cpu.txt and dev.txt install wherever there is a small CPU build of the same torch version. plant.yaml repeats
cpu.txt for conda, which copies that file away from its neighbours.

Every pin has the SHA-256 of all its files on the index, so that pip installs no other file. The CPU builds of torch
are on an index of their own; torch-cpu.sha256 has their digests.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENVS = Path(__file__).parent
ONLY_CUDA = re.compile(r"^(nvidia-|cuda-|triton$)")
HEADERS = {
    "cpu": "All that the pipeline runs on, pinned. Written by `make lock` from cpu.in.",
    "dev": "cpu.txt and what `make check` and `make test` need. Written by `make lock` from dev.in.",
    "cuda": "cpu.txt and the CUDA libraries of torch, for machines with an NVIDIA GPU. Written by `make lock`.\n"
    "# On Linux the index gives torch=={torch} as its CUDA build, which asks for these libraries; the pins make\n"
    "# two GPU machines the same. A CPU build that is offered beside it (an extra index, a folder of wheels) has\n"
    "# the higher version ({torch}+cpu) and would win: take that source off before installing this file.",
}

CONDA = """\
# For conda, and for `snakemake --sdm conda`: the pins of cpu.txt on a conda Python. Written by `make lock`. It has no
# hashes: conda gives pip one list, and with hashes pip would refuse the CUDA libraries that torch asks for elsewhere.
#   conda env create -f envs/plant.yaml
name: plant
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""

Package = dict[str, Any]
"""The metadata of one resolved package, as pip reports it."""


def pins(source: Path) -> dict[str, tuple[str, str]]:
    """Name -> (requirement, reason) of the lines of an .in file."""
    text = source.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.partition(" --hash")[0].partition("#") for line in text.splitlines()]
    found = [(requirement.strip(), reason.strip()) for requirement, _, reason in lines if requirement.strip()]
    return {
        canonicalize_name(Requirement(requirement).name): (requirement, reason)
        for requirement, reason in found
        if not requirement.startswith("-r")
    }


def resolve(sources: Iterable[Path], constraints: Path) -> dict[str, Package]:
    """Ask pip what it would install into an empty environment: name -> metadata."""
    local = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL")
    environment = {name: value for name, value in os.environ.items() if name not in local}
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--disable-pip-version-check", "--report", "-", "--constraint", str(constraints)]
    for source in sources:
        command += ["--requirement", str(source)]
    report = subprocess.run(
        command, env={**environment, "PIP_CONFIG_FILE": os.devnull}, check=True, stdout=subprocess.PIPE
    ).stdout
    packages = [item["metadata"] for item in json.loads(report)["install"]]
    return {canonicalize_name(package["name"]): package for package in packages}


def wanted_by(packages: dict[str, Package], top: Iterable[str]) -> dict[str, list[str]]:
    """Name -> the packages that ask for it; extras count only where somebody asked for them."""
    parents: dict[str, list[str]] = {name: [] for name in packages}
    queue, seen = [(name, "") for name in top], set()
    while queue:
        name, extra = queue.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for requirement in map(Requirement, packages[name].get("requires_dist", ())):
            child = canonicalize_name(requirement.name)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                parents[child].append(name)
                queue += [(child, wanted) for wanted in ("", *requirement.extras)]
    return {name: sorted(set(group) - {name}) for name, group in parents.items()}


def hashes(packages: dict[str, Package]) -> dict[str, list[str]]:
    """Name -> SHA-256 of every file of that version on the index, and of the CPU builds of torch."""
    pinned = "".join(f"{name}=={_version(package)}\n" for name, package in packages.items())
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-config", "--no-deps", "--universal", "--quiet"]
    command += ["--generate-hashes", "--no-annotate", "--no-header", "-"]
    compiled = subprocess.run(command, input=pinned, text=True, check=True, stdout=subprocess.PIPE).stdout
    found = {
        canonicalize_name(pin.partition("==")[0]): re.findall("sha256:([0-9a-f]{64})", pin)
        for pin in re.split(r"^(?=\S)", compiled, flags=re.MULTILINE)
        if pin
    }
    builds = [line.split() for line in (ENVS / "torch-cpu.sha256").read_text(encoding="utf-8").splitlines()]
    torch = _version(packages["torch"])
    if not all(file.startswith(f"torch-{torch}+cpu-") for _, file in builds):
        sys.exit(
            f"envs/torch-cpu.sha256: expected the files of torch {torch}+cpu, got those of another version. "
            "Copy their digests from https://download.pytorch.org/whl/cpu/torch/."
        )
    found["torch"] += [digest for digest, _ in builds]
    return found


def lines(
    packages: dict[str, Package], reasons: dict[str, tuple[str, str]], names: Iterable[str], known: dict[str, list[str]]
) -> Iterator[str]:
    """One pin a package: its reason or the packages that ask for it, its version, and the hashes of its files."""
    parents = wanted_by(packages, reasons)
    for name in sorted(names):
        why = reasons[name][1] if name in reasons else "via " + ", ".join(parents[name])
        yield f"# {why}"
        yield " \\\n    ".join([f"{name}=={_version(packages[name])}", *_options(known[name])])


def _version(package: Package) -> str:
    """The version without the name of a build."""
    return str(package["version"].partition("+")[0])


def _options(digests: Iterable[str]) -> list[str]:
    return [f"--hash=sha256:{digest}" for digest in sorted(digests)]


def main() -> None:
    run_time, development = pins(ENVS / "cpu.in"), pins(ENVS / "dev.in")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        if not os.environ.get("UPGRADE"):
            _keep_locked(constraints, {**run_time, **development})
        base = resolve([ENVS / "cpu.in"], Path(constraints.name))
        _keep(constraints, base)
        full = resolve([ENVS / "cpu.in", ENVS / "dev.in"], Path(constraints.name))
    cuda = {name for name in base if ONLY_CUDA.match(name)}
    known, torch = hashes(full), _version(base["torch"])
    for lock, names, include in (
        ("cpu", set(base) - cuda, []),
        ("dev", set(full) - set(base), ["-r cpu.txt"]),
        ("cuda", cuda, ["-r cpu.txt"]),
    ):
        body = lines(full, {**run_time, **development}, names, known)
        text = [f"# {HEADERS[lock].format(torch=torch)}", "", *include, *body]
        (ENVS / f"{lock}.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
        print(f"envs/{lock}.txt: {len(names)} packages")
    versions = "".join(f"      - {name}=={_version(full[name])}\n" for name in sorted(set(base) - cuda))
    (ENVS / "plant.yaml").write_text(CONDA + versions, encoding="utf-8")


def _keep_locked(constraints: Any, pinned: dict[str, tuple[str, str]]) -> None:
    """Constrain pip to what the lock files say, save for the pins that may just have been edited."""
    for lock in HEADERS:
        path = ENVS / f"{lock}.txt"
        for name, (requirement, _) in (pins(path) if path.exists() else {}).items():
            if name not in pinned:
                constraints.write(requirement + "\n")
    constraints.flush()


def _keep(constraints: Any, packages: dict[str, Package]) -> None:
    """Constrain pip to what has been resolved."""
    for name, package in packages.items():
        constraints.write(f"{name}=={package['version']}\n")
    constraints.flush()


if __name__ == "__main__":
    main()
