"""Where a result comes from: the sidecar of every artifact, and digests of inputs and of the code itself."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from plant.ground.errors import InputError, nearest
from plant.ground.files import absence, write_json
from plant.ground.resources import cuda_of_this_step

PACKAGE = Path(__file__).parents[1]
SIDECAR = "provenance.json"
VERSIONS_OF = (
    "accelerate",
    "bitsandbytes",
    "matplotlib",
    "numba",
    "numpy",
    "peft",
    "polars",
    "pyarrow",
    "pydantic",
    "safetensors",
    "scikit-learn",
    "scipy",
    "snakemake",
    "tokenizers",
    "torch",
    "transformers",
)


def write_provenance(
    target: Path,
    *,
    settings: Mapping[str, Any],
    inputs: Sequence[Path],
    seed: int | None,
    started: float,
    resources: Mapping[str, Any],
    outputs: Sequence[Path] = (),
    device: str = "cpu",
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write the sidecar of one step, as JSON.

    It holds no document text and no home directory: paths below the working directory are relative to it, and the
    home directory is written `~`, in `settings` and `extra` too.

    Args:
        target: the sidecar itself (by custom `provenance.json` beside the artifact).
        settings: the sections of the config that the step depends on, resolved.
        inputs: files and folders that were read; each is hashed.
        seed: of the step; None where nothing is random.
        started: `time.time()` at the start of the step.
        resources: seconds, memory and energy that it used (`plant.ground.resources`).
        outputs: files and folders that were written; each is hashed, so that `plant trace` finds what made it.
        device: that did the work, as torch names it (`cpu`, `cuda`, `cuda:0`).
        extra: more facts of the step; they stand beside the others and may not replace them.

    Raises:
        InputError: an input is missing.
    """
    facts = {
        "settings": dict(settings),
        "inputs": {_public(str(path)): sha256(path) for path in map(Path, inputs)},
        "outputs": {_public(str(path)): sha256(path) for path in map(Path, outputs)},
        "seed": seed,
        "code": _code(),
        "versions": _versions(),
        "platform": platform.platform(),
        "device": {"kind": device, "name": _device_name(device)},
        "resources": dict(resources),
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(target, _without_home({**(extra or {}), **facts}))


def sha256(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder: names relative to it and contents, in order.

    Sidecars (`provenance.json`) and hidden files do not count: they say when and how, not what.

    Raises:
        InputError: nothing is there.
    """
    if path.is_file():
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    if not path.is_dir():
        raise InputError(
            _public(str(path)), expected="a file or a folder", got=absence(path), fix="Check the path in the config."
        )
    total = hashlib.sha256()
    for file in _visible_files(path):
        total.update(f"{file.relative_to(path).as_posix()}\0{sha256(file)}\0".encode())
    return total.hexdigest()


@cache
def digest(*rooms: str) -> str:
    """SHA-256 of what the named parts of this package do, so that a rule can rerun when its code changes.

    Comments, docstrings and layout do not count: to reword a sentence retrains nothing. Digests depend on the
    Python version (they are taken from the syntax tree).

    Args:
        rooms: folders (`"relevance"`) or modules (`"metrics/f1.py"`, `"evaluation/metrics.py"`) below src/plant.

    Raises:
        InputError: no such folder or module.

    >>> digest("ground/errors.py") == digest("ground/seeds.py")
    False
    """
    total = hashlib.sha256()
    for room in sorted(set(rooms)):
        for source in _sources(room):
            total.update(f"{source.relative_to(PACKAGE).as_posix()}\0{_meaning(source.read_text('utf-8'))}\0".encode())
    return total.hexdigest()


def _sources(room: str) -> list[Path]:
    path = PACKAGE / room
    if path.is_dir():
        return sorted(path.rglob("*.py"))
    if path.is_file():
        return [path]
    known = [source.relative_to(PACKAGE).as_posix() for source in PACKAGE.rglob("*.py")]
    known += [child.name for child in PACKAGE.iterdir() if child.is_dir()]
    raise InputError(
        "provenance.digest", expected="a folder or module of src/plant", got=repr(room), fix=nearest(room, known)
    )


def _meaning(source: str) -> str:
    """The syntax tree of a module as text, without the strings that stand alone (docstrings)."""

    class Bare(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
            bare = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            return None if bare else self.generic_visit(node)

    return ast.dump(Bare().visit(ast.parse(source)))


def _visible_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name != SIDECAR:
            yield path


def _code() -> dict[str, Any]:
    """The commit of the checkout that this package runs from; None outside git or without git."""
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "modified": None if commit is None or changes is None else bool(changes)}


def _git(*arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(PACKAGE), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git on this machine
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _versions() -> dict[str, str | None]:
    """Version of Python and of each package that can move a number; None where one is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in VERSIONS_OF}}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _device_name(device: str) -> str:
    cuda = cuda_of_this_step(device)
    if cuda is not None:
        return str(cuda.get_device_name(device))
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _without_home(value: Any) -> Any:
    """`value` with every string that is a path made public."""
    if isinstance(value, Mapping):
        return {_public(str(key)): _without_home(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_home(inner) for inner in value]
    if isinstance(value, Path):
        return _public(str(value))
    return _public(value) if isinstance(value, str) else value


def public_path(path: Path) -> str:
    """A path as sidecars write it: below the working directory relative to it, below the home directory with `~`."""
    return _public(str(path))


def _public(text: str) -> str:
    """An absolute path relative to the working directory or to `~`; any other text as it is."""
    if not text.startswith("/"):
        return text
    path, here, home = Path(text), Path.cwd(), Path.home()
    if path.is_relative_to(here):
        return path.relative_to(here).as_posix()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else text
