"""Where a result comes from: the sidecar of every result, and digests of inputs and of code."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from plant.ground.errors import InputError
from plant.ground.files import absence, read_json, write_json
from plant.ground.resources import cuda_of_this_step

PACKAGE = Path(__file__).parents[1]
SIDECAR = "provenance.json"
CHEAP = 2**26
"""Inputs of at most this number of bytes are compared with their sidecars before a job starts: it takes 0.1 s."""
DATA = (".yaml", ".j2")
"""Endings of the package's data files."""
NO_PART_OF_A_RESULT = {
    f"plant.ground.{name}" for name in ("errors", "job", "provenance", "reference", "resources", "settings", "trace")
} | {"plant.model.registry"}
"""Modules that no result depends on: messages, sidecars, types of settings (their values are params), and a table of
names, whose modules are named to `digest`."""
IMPORT = re.compile(r"^ *(?:from (plant[.\w]*) import (?:\(([^)]*)\)|([^#\n]*))|import (plant[.\w]+))", re.MULTILINE)
"""A statement that imports from this package, as the house's formatter writes it."""
VERSIONS_OF = (
    "accelerate", "bitsandbytes", "gensim", "matplotlib", "numba", "numpy", "peft", "polars", "pyarrow", "pydantic",
    "safetensors", "scikit-learn", "scipy", "snakemake", "tokenizers", "torch", "transformers",
)  # fmt: skip
"""Packages that can change a number."""


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

    It has no document text and no home directory. Paths below the working directory are relative to it, and the home
    directory is `~`, in `settings` and `extra` too. All inputs and outputs, files and folders, are hashed.

    Args:
        target: the sidecar, usually `provenance.json` beside the result.
        settings: the sections of the config that the step depends on.
        inputs: what was read.
        seed: seed of the step. None: nothing is random.
        started: `time.time()` at the start of the step.
        resources: seconds, memory and energy of the step (`plant.ground.resources`).
        outputs: what was written; by it `plant trace` finds the job of a file.
        device: the device that did the work, as torch names it (`cpu`, `cuda`, `cuda:0`).
        extra: more facts of the step. They cannot replace the others.

    Raises:
        InputError: an input is missing.
    """
    facts = {
        "settings": dict(settings),
        "inputs": {public_path(path): sha256(path) for path in inputs},
        "outputs": {public_path(path): sha256(path) for path in outputs},
        "seed": seed,
        "code": _code(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in VERSIONS_OF}},
        "platform": platform.platform(),
        "device": {"kind": device, "name": _device_name(device)},
        "resources": dict(resources),
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(target, _without_home({**(extra or {}), **facts}))


def sha256(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files in a folder.

    Sidecars (`provenance.json`) and hidden files are left out.

    Raises:
        InputError: nothing is there.
    """
    if path.is_file():
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    if not path.is_dir():
        raise InputError(public_path(path), expected="a file or a folder", got=absence(path), fix="Check the path.")
    total = hashlib.sha256()
    for file in _visible_files(path):
        total.update(f"{file.relative_to(path).as_posix()}\0{sha256(file)}\0".encode())
    return total.hexdigest()


def check_unchanged(paths: Iterable[Path], *, largest: float = CHEAP) -> None:
    """Refuse files and folders that are not what the job that made them wrote.

    Args:
        paths: inputs of a job. Those that no sidecar names, such as raw files, are not compared.
        largest: larger ones are not compared either (bytes).

    Raises:
        InputError: one has changed, or is damaged.
    """
    for path in paths:
        if not path.exists() or _size(path) > largest:
            continue
        made = _made(path)
        if made is not None and sha256(path) != made:
            raise InputError(
                public_path(path), expected="the bytes that its job wrote", got="others: it is damaged, or was changed",
                fix=f"Make it anew: snakemake --cores 1 --force {public_path(path)} (and your --configfile).",
            )  # fmt: skip


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in _visible_files(path))


def _made(path: Path) -> str | None:
    """The SHA-256 of a file or folder when its job wrote it, from the sidecars beside it and beside its folder."""
    sidecars = [file for folder in list(path.parents)[:2] for file in folder.glob(f"*{SIDECAR}")]
    found = [facts for facts in map(read_json, sidecars) if isinstance(facts, dict)]
    newest_last = sorted(found, key=lambda facts: str(facts.get("written")))
    digests = [facts.get("outputs", {}).get(public_path(path)) for facts in newest_last]
    return next((one for one in reversed(digests) if one is not None), None)


def changed_inputs(sidecar: Path, sources: Iterable[str]) -> list[str]:
    """Inputs of a finished step at or below some paths that have other contents now. Only newer files are read."""
    if not sidecar.is_file():
        return []
    written, facts = sidecar.stat().st_mtime, read_json(sidecar)
    named = [(Path(path).expanduser(), made) for path, made in facts.get("inputs", {}).items()]
    places = [Path(public_path(source)).expanduser() for source in sources]
    newer = [
        (path, made)
        for path, made in named
        if any(path.is_relative_to(place) for place in places) and path.is_file() and path.stat().st_mtime > written
    ]
    return [str(path) for path, made in newer if sha256(path) != made]


def digest(script: Path, *modules: str) -> str:
    """SHA-256 of the code that a script runs. A rule runs its jobs again when it changes.

    The code is that of the script and of each module of this package that it imports, directly or through others, and
    the data files beside them. `modules` are modules that the script runs and that no import statement names. Comments,
    docstrings and layout do not matter. Digests are taken from byte code, so they depend on the Python version.
    """
    total = hashlib.sha256(_read_code(script)[1].encode())
    for source in code_of(script, *modules):
        meaning = _read_code(source)[1] if source.suffix == ".py" else sha256(source)
        total.update(f"{source.relative_to(PACKAGE).as_posix()}\0{meaning}\0".encode())
    return total.hexdigest()


def code_of(script: Path, *modules: str) -> list[Path]:
    """Files of this package that a script and `modules` depend on, without `NO_PART_OF_A_RESULT`."""
    files = {file for module in modules for file in _modules(module, PACKAGE)}
    waiting = [script, *files]
    while waiting:
        names, _ = _read_code(waiting.pop())
        new = {file for name in names for file in _modules(name, PACKAGE)} - files
        files |= new
        waiting += new
    data = {file for folder in {path.parent for path in files} for file in folder.iterdir() if file.suffix in DATA}
    return sorted(files | data)


@cache
def _modules(name: str, package: Path) -> tuple[Path, ...]:
    """The files that run when `name` is imported: those of its packages, and its own if it is a module."""
    parts, files = name.split("."), []
    for depth in range(1, len(parts) + 1):
        module = ".".join(parts[:depth])
        if module in NO_PART_OF_A_RESULT:
            break
        place = package.joinpath(*parts[1:depth])
        files += [file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()]
    return tuple(files)


def _read_code(path: Path) -> tuple[tuple[str, ...], str]:
    """The names of this package that a source imports, and its byte code as text."""
    status = path.stat()
    return _read_source(path, status.st_ctime_ns, status.st_size)


@cache
def _read_source(path: Path, _changed: int, _size: int) -> tuple[tuple[str, ...], str]:
    """The same, worked out once as long as the file does not change."""
    names, source = [], path.read_text("utf-8")
    for place, several, line, module in IMPORT.findall(source):
        names += [f"{place}.{name.split()[0]}" for name in (several or line).split(",") if name.strip()] or [module]
    return tuple(names), _meaning(compile(source, "", "exec", optimize=2, dont_inherit=True))


def _meaning(code: CodeType) -> str:
    """Byte code as text, without docstrings, line numbers and file names."""
    constants = [
        _meaning(value) if isinstance(value, CodeType)
        else repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
        for value in code.co_consts
    ]  # fmt: skip
    parts = (code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
             code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable)  # fmt: skip
    return repr((parts, constants))


def _visible_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name != SIDECAR:
            yield path


def _code() -> dict[str, Any]:
    """The commit of the checkout of this package. None: it is outside git, or there is no git."""
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "modified": None if commit is None or changes is None else bool(changes)}


def _git(*arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(PACKAGE), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git on this machine
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _version(package: str) -> str | None:
    """None: it is not installed."""
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
    """The value with all paths in it made public."""
    if isinstance(value, Mapping):
        return {public_path(str(key)): _without_home(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_home(inner) for inner in value]
    return public_path(value) if isinstance(value, str | Path) else value


def public_path(path: Path | str) -> str:
    """An absolute path as sidecars write it: relative to the working directory or to `~`. Other text is unchanged."""
    text = str(path)
    if not text.startswith("/"):
        return text
    path, here, home = Path(text), Path.cwd(), Path.home()
    if path.is_relative_to(here):
        return path.relative_to(here).as_posix()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else text
