"""What each compiled way buys in a whole job: `python tests/benchmarks/run.py [--quick] [names]`.

A file `bench_<name>.py` of this folder has JOBS, a dict from a job's name to a `Job`. Both ways of a job run in a
process of their own, on one thread, and must give the same result. The table goes to the screen and to
results/benchmarks/<name>.md (with --quick, small sizes, to the screen alone). A kernel stays in src/plant/kernels/ if a
job gets 1.5 times faster by it, or fits in memory by it.

CPU-seconds count all threads. Inputs are made, and compiled code is loaded, before the clock starts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "results" / "benchmarks"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")
MARK = "measured:"
WAYS = ("fast", "plain")
NUMBERS = ("cpu_seconds", "extra_mb", "peak_mb")


@dataclass(frozen=True)
class Job:
    """A piece of work of realistic size, done in two ways.

    Attributes:
        prepare: name of a function in the same file. Called as prepare(way, **sizes), with way "fast" or "plain", it
            makes the inputs and returns the work: a function without arguments whose result JSON can hold.
        sizes: of the whole job.
        quick: of a small one.
        of_plain: sizes of the part that is measured where the plain way would take hours.
        times: how many such parts the whole job is.
        outside: where the plain way is another project's: the variable of the environment that names the Python of an
            environment with it, and how to make that environment.
        turns: how many times both ways are measured, in turn; the median counts.
    """

    prepare: str
    sizes: Mapping[str, Any]
    quick: Mapping[str, Any]
    of_plain: Mapping[str, Any] = field(default_factory=dict)
    times: float = 1.0
    outside: tuple[str, str] | None = None
    turns: int = 1


@dataclass(frozen=True)
class Measured:
    """What a piece of work took, and its result.

    `extra_mb` is the most memory beyond what was held before, `peak_mb` that of the whole process.
    """

    value: Any
    cpu_seconds: float
    extra_mb: float
    peak_mb: float


def measure(work: Callable[[], Any]) -> Measured:
    """Do the work here and now."""
    before, start = _memory("VmRSS", reset=True), time.process_time()
    value = work()
    seconds = time.process_time() - start
    peak = _memory("VmHWM")
    return Measured(value, seconds, peak - before, peak)


def fresh(bench: str, prepare: str, *arguments: str, python: str = sys.executable, **sizes: Any) -> Measured:
    """Prepare and do a piece of work in a process of its own, by this Python or another one.

    Raises:
        RuntimeError: the process failed; its last lines are in the message.
    """
    order = json.dumps({"bench": bench, "prepare": prepare, "arguments": arguments, "sizes": sizes})
    done = subprocess.run(
        [python, __file__, "--order", order], env=os.environ | dict.fromkeys(THREADS, "1"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode != 0 or not answers:
        last = "\n".join(done.stderr.splitlines()[-12:])
        raise RuntimeError(f"{bench}.{prepare}{arguments} ended with {done.returncode}:\n{last}")
    return Measured(**json.loads(answers[-1][len(MARK) :]))


def row(bench: str, name: str, job: Job, *, quick: bool) -> str:
    """One line of the table; the two ways must agree."""
    sizes = dict(job.quick if quick else job.sizes)
    part = {} if quick else job.of_plain
    pythons = dict.fromkeys(WAYS, sys.executable)
    if job.outside is not None:
        variable, how = job.outside
        if not os.environ.get(variable):
            return f"| {name} | | not measured: {variable} is not set. Make the environment: `{how}` | |"
        pythons["plain"] = os.environ[variable]
    turns = [
        [
            fresh(bench, job.prepare, way, python=pythons[way], **sizes | (part if way == "plain" else {}))
            for way in WAYS
        ]
        for _ in range(1 if quick else job.turns)
    ]
    fast, plain = (middle(measured) for measured in zip(*turns, strict=True))
    if not agree(fast.value, plain.value):
        raise AssertionError(f"{name}: the fast way gives {fast.value}, the plain one {plain.value}")
    seconds, about = plain.cpu_seconds * (job.times if part else 1.0), "~" if part else ""
    cells = (
        name, f"{fast.cpu_seconds:.3g} s, {fast.extra_mb:,.0f} MB", f"{about}{seconds:.3g} s, {plain.extra_mb:,.0f} MB",
        f"{about}{seconds / fast.cpu_seconds:.3g}",
    )  # fmt: skip
    if job.outside is not None:  # what another project holds before it starts counts too
        here, there = (f"{each.cpu_seconds:.3g} s, {each.peak_mb:,.0f} MB" for each in (fast, plain))
        memory = f"{fast.peak_mb / plain.peak_mb:.2g} of the memory"
        cells = (name, here, there, f"{cells[-1]}, {memory}")
    return "| " + " | ".join(cells) + " |"


def middle(measured: Sequence[Measured]) -> Measured:
    """The medians of several turns; the result is that of the first."""
    medians = (float(np.median([getattr(each, name) for each in measured])) for name in NUMBERS)
    return Measured(measured[0].value, *medians)


def agree(one: Any, other: Any) -> bool:
    """Equal texts, or numbers that are close."""
    if isinstance(one, str):
        return bool(one == other)
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-7, equal_nan=True))


def run(names: list[str], *, quick: bool) -> int:
    """Run benchmarks one after the other; 1 if any failed."""
    failed = 0
    for name in names:
        bench = f"bench_{name}"
        lines = ["| job | fast | plain | times faster |", "|---|---:|---:|---:|"]
        print("\n" + "\n".join(lines), flush=True)
        jobs = importlib.import_module(bench).JOBS
        for title, job in list(jobs.items())[: 1 if quick else None]:  # small, all jobs of a file are one
            try:
                lines.append(row(bench, title, job, quick=quick))
                print(lines[-1], flush=True)
            except (RuntimeError, AssertionError) as error:
                print(f"Failed: {error}", flush=True)
                failed = 1
        if not quick:
            RESULTS.mkdir(parents=True, exist_ok=True)
            text = "\n".join([*lines, "", f"CPU-seconds on one thread of {machine()}; memory beyond the inputs."])
            (RESULTS / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return failed


def machine() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory(key: str, *, reset: bool = False) -> float:
    """VmRSS or VmHWM of this process in MB; `reset` makes the peak start anew. Linux alone has both."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) * 1024 / 1e6


def main() -> int:
    """Run what was asked for, all by default."""
    known = [path.stem.removeprefix("bench_") for path in sorted(HERE.glob("bench_*.py"))]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: that both ways agree")
    parser.add_argument("--order", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.order:
        order = json.loads(asked.order)
        prepare = getattr(importlib.import_module(order["bench"]), order["prepare"])
        print(MARK + json.dumps(asdict(measure(prepare(*order["arguments"], **order["sizes"])))))
        return 0
    if unknown := set(asked.names) - set(known):
        parser.error(f"expected names of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    return run(asked.names or known, quick=asked.quick)


if __name__ == "__main__":
    sys.exit(main())
