"""Measuring one piece of work: CPU-seconds, wall seconds and peak memory, in a process of its own.

A benchmark file `bench_<name>.py` has

    def rows(quick: bool) -> Iterable[Row]: ...

and asserts in it that the ways it compares agree; `run.py` calls it, prints the ratios and writes tables and figures.
A piece of work is a function at the top of that file that prepares its inputs (and loads compiled code, by a tiny call)
and returns what is to be measured, a function without arguments whose result JSON can hold:

    def our_sum(size: int) -> Callable[[], float]:
        numbers = np.arange(size)
        return lambda: float(numbers.sum())

    measured = fresh(our_sum, size=10_000)          # a process of its own, one thread
    rows = [row("sum", "ours", 10_000, measured), row("sum", "theirs", 10_000, theirs, ratio_to="ours")]

CPU-seconds count all threads; of several repeats the minimum holds: other programs can only add to it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypedDict

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
)  # fmt: skip
PEERS = Path(__file__).resolve().parents[2] / "results" / "benchmarks" / "peers"
"""Libraries that only the benchmarks compare with (envs/bench.txt); `make bench` puts them here, apart from .venv."""
MARK = "measured:"
GIVEN_UP_AFTER = 3600  # seconds
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "polars", "torch", "duckdb", "allrank", "triton")


class Row(TypedDict, total=False):
    """One line of a table. The first five keys are needed, more may follow."""

    kernel: str
    """What is computed."""
    way: str
    """How, or by whom."""
    size: float | str
    """A number gives the x axis of the growth figure."""
    cpu_seconds: float | None
    wall_seconds: float | None
    peak_mb: float | None
    """Most memory of the whole process while it worked."""
    ratio_to: str
    """Another way of the same kernel and size: the table says how many times its CPU-seconds this way takes."""
    extrapolated: bool
    """Time that was not measured but multiplied up from a smaller piece of the same work."""
    note: str
    shown: str
    """What the pages show in place of CPU-seconds."""


@dataclass(frozen=True)
class Measured:
    """What a piece of work took, and its result."""

    value: Any
    cpu_seconds: float
    wall_seconds: float
    peak_mb: float
    """Most memory of the whole process (inputs and libraries too) while it worked."""
    extra_mb: float
    """The same beyond what the process held before."""


class Growth(NamedTuple):
    """y = factor * size ** exponent, by least squares on logarithms."""

    exponent: float
    error: float
    """Standard error of the exponent; NaN for two sizes."""
    factor: float


def row(
    kernel: str, way: str, size: float | str, measured: Measured | None = None, *, ratio_to: str = "", note: str = "",
    **more: Any,
) -> Row:  # fmt: skip
    """A line of a table; `more` adds columns, or takes the place of what was measured."""
    taken: dict[str, Any] = {"cpu_seconds": None, "wall_seconds": None, "peak_mb": None}
    if measured is not None:
        taken = {key: getattr(measured, key) for key in taken}
    return {"kernel": kernel, "way": way, "size": size, **taken, "ratio_to": ratio_to, "note": note, **more}


def measure(work: Callable[[], Any], *, repeats: int = 1) -> Measured:
    """Do the work here and now; the minimum of the repeats (memory: the maximum)."""
    best: Measured | None = None
    for _ in range(repeats):
        before = _memory("VmRSS", reset=True)
        cpu, wall = time.process_time(), time.perf_counter()
        value = work()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak = _memory("VmHWM")
        if best is not None:
            cpu, wall, peak = min(cpu, best.cpu_seconds), min(wall, best.wall_seconds), max(peak, best.peak_mb)
            before = min(before, best.peak_mb - best.extra_mb)
        best = Measured(value, cpu, wall, peak, peak - before)
    if best is None:
        raise ValueError("measure: at least one repeat is needed")
    return best


def fresh(job: Callable[..., Callable[[], Any]], *, repeats: int = 1, threads: int = 1, **arguments: Any) -> Measured:
    """Prepare and do a piece of work in a process of its own.

    Args:
        job: a function at the top of a file; called with `arguments` (JSON can hold them) it prepares, and returns
            the work.
        repeats: the minimum of so many holds.
        threads: of every library that asks the environment.

    Raises:
        RuntimeError: the process failed; its last lines are in the message.
    """
    order = {"file": job.__code__.co_filename, "job": job.__name__, "arguments": arguments, "repeats": repeats}
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(order)], env=environment, capture_output=True, text=True, check=False,
        timeout=GIVEN_UP_AFTER,
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode != 0 or not answers:
        last = "\n".join(done.stderr.splitlines()[-12:])
        raise RuntimeError(f"{job.__name__}({arguments}) ended with {done.returncode}:\n{last}")
    return Measured(**json.loads(answers[-1][len(MARK) :]))


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> Growth:
    """The exponent of a power law through the points (at least two distinct sizes).

    >>> growth([10, 100, 1000], [0.3, 30, 3000])
    Growth(exponent=2.0, error=0.0, factor=0.003)
    """
    import numpy as np

    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    spread = float(((x - x.mean()) ** 2).sum())
    exponent = float(((x - x.mean()) * (y - y.mean())).sum() / spread)
    offset = float(y.mean() - exponent * x.mean())
    left = float(((y - offset - exponent * x) ** 2).sum())
    error = float(np.sqrt(left / (x.size - 2) / spread)) if x.size > 2 else float("nan")
    return Growth(round(exponent, 6), round(error, 6), float(f"{np.exp(offset):.6g}"))


def find_peers() -> None:
    """Let this process import what lies in `PEERS`, after everything else."""
    if PEERS.is_dir() and str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))


def machine() -> dict[str, str]:
    """Processor, cores, memory, GPU and the versions of what is compared."""
    from importlib.metadata import PackageNotFoundError, version

    found = {
        "processor": f"{_processor()}, {os.cpu_count()} cores visible",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return {**found, "packages": ", ".join(versions)} | _gpu()


def load(path: Path) -> ModuleType:
    """A benchmark file as a module; its folder is where it finds `common`."""
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpu() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return {}
    return {"gpu": done.stdout.strip()} if done.returncode == 0 else {}


def _memory(field: str, *, reset: bool = False) -> float:
    """VmRSS or VmHWM of this process in MB; `reset` makes the peak start anew (Linux). Elsewhere the process's peak."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        scale = 1 if platform.system() == "Darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024 / 1e6


def _main(order: dict[str, Any]) -> None:
    find_peers()
    work = getattr(load(Path(order["file"])), order["job"])(**order["arguments"])
    print(MARK + json.dumps(asdict(measure(work, repeats=order["repeats"]))))


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
