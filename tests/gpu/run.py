"""Everything that only a GPU can show, by one command: `make gpu`, or `python tests/gpu/run.py [names]`.

The steps run in order of worth, each in a process of its own with a time limit; all limits together are below 40
minutes. After each step the table is written anew: table.md and steps.json in results/gpu/<device>/, with a log of each
step beside them. A later call skips the steps that are done with this code, and runs those that failed or were cut.

It needs torch, transformers, peft, safetensors, numpy, pydantic and PyYAML. `--device cpu --tiny` runs every step on a
CPU with small sizes: it shows that the code runs, and its times say nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("numpy", "peft", "pydantic", "safetensors", "torch", "transformers", "yaml")
ARCHITECTURES = ("llama", "mistral", "phi3", "deepseek_v3")
PATHS = ("weights", "corpus", "tokens")
LIMIT = 40  # minutes, of all steps together
SCRATCH = "scratch"  # folder of what steps write for each other


@dataclass(frozen=True)
class Step:
    """One step: `module.function(place, *arguments)` yields the rows of the table.

    Attributes:
        name: in the table and on the command line.
        call: module and function.
        minutes: after which it is stopped.
        arguments: of the function, beside the place.
        packages: without one of them the step is left out.
        paths: options of the command line that it needs.
        disk: GB that it needs on disk.
    """

    name: str
    call: str
    minutes: float
    arguments: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    disk: float = 0.1


NF4 = ("bitsandbytes", "accelerate")
STEPS = (
    *(Step(f"lora_{kind}", "checks.lora", 1.5, (kind,)) for kind in ARCHITECTURES),
    *(Step(f"nf4_{kind}", "checks.nf4", 1.5, (kind,), NF4) for kind in ARCHITECTURES),
    Step("loss_oracle", "checks.oracle", 1),
    Step("deterministic", "checks.deterministic", 1.5),
    Step("resume", "checks.resume", 1.5),
    Step("ranking_loss", "speed.ranking_loss", 2),
    Step("label_attention", "speed.label_attention", 4),
    Step("7b_bf16", "speed.seven_billion", 5, ("none",), disk=16),
    Step("7b_nf4", "speed.seven_billion", 6, ("nf4",), NF4, disk=16),
    Step("label_memory", "speed.label_memory", 2),
    Step("minilm", "speed.minilm", 4, paths=PATHS),
)


def left_out(step: Step, asked: argparse.Namespace, folder: Path) -> str:
    """Why a step cannot run here; empty where it can."""
    if lacking := [name for name in step.packages if not find_spec(name)]:
        return f"not installed: {', '.join(lacking)}"
    absent = [f"--{name}" for name in step.paths if not getattr(asked, name)]
    if absent:
        return f"not given: {', '.join(absent)}"
    free = shutil.disk_usage(folder).free / 1e9
    if not asked.tiny and free < step.disk:
        return f"{step.disk:.0f} GB of disk are needed in {folder}, {free:.0f} GB are free"
    return ""


def run_step(step: Step, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run a step in a process of its own and return what the record keeps.

    Its rows are read from a file, so that those before a failure or a cut are kept.
    """
    rows, log, start = folder / f"{step.name}.rows", folder / f"{step.name}.log", monotonic()
    rows.write_text("", encoding="utf-8")
    options = [f"--{name}={Path(value).resolve()}" for name in PATHS if (value := getattr(asked, name))]
    command = [sys.executable, __file__, step.name, "--rows", str(rows), "--device", asked.device, *options]
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    with log.open("wb") as handle:
        child = subprocess.Popen(
            command + ["--tiny"] * asked.tiny, stdout=handle, stderr=subprocess.STDOUT, cwd=folder,
            env=os.environ | {"PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"}, start_new_session=True,
        )  # fmt: skip
        try:
            code = child.wait(step.minutes * 60)
            state, why = ("done", "") if code == 0 else ("failed", _last_line(log))
        except subprocess.TimeoutExpired:
            state, why = "out of time", f"stopped after {step.minutes:g} minutes"
        finally:
            if child.poll() is None:  # out of time, or this process was asked to end
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    rows.unlink()
    return {"state": state, "why": why, "seconds": round(monotonic() - start, 1), "rows": found}


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message")[:300]


def write_table(folder: Path, record: dict[str, Any]) -> None:
    """steps.json and table.md, each replaced as a whole."""
    lines = [f"# {record['device']}", "", record["with"], ""]
    lines += ["| step | what | value | unit | goal |", "|---|---|---:|---|---|"]
    remarks = []
    for step in STEPS:
        entry = record["steps"].get(step.name, {"state": "not run yet", "why": "", "rows": []})
        for row in entry["rows"]:
            value = row.get("value")
            shown = "not measured" if value is None else value if isinstance(value, str) else f"{value:.4g}"
            lines.append(f"| {step.name} | {row['what']} | {shown} | {row.get('unit', '')} | {row.get('goal', '')} |")
        if entry["state"] != "done":
            remarks.append(f"- {step.name}: {entry['state']}{entry['why'] and ': '}{entry['why']}")
    lines += ["", "Steps that are not done:", "", *(remarks or ["- none"])]
    for name, text in (("steps.json", json.dumps(record, indent=1)), ("table.md", "\n".join(lines))):
        partial = folder / f".{name}"
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(folder / name)


def run(asked: argparse.Namespace, folder: Path, device: str) -> int:
    """Run the steps that are asked for and not done; 1 if one failed or ran out of time."""
    import torch

    code, file = _commit(), folder / "steps.json"
    folder.mkdir(parents=True, exist_ok=True)
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"device": device, "steps": {}}
    record["with"] = f"torch {torch.__version__}, CUDA {torch.version.cuda}, {sys.platform}; commit {code}."
    worst = 0
    for step in STEPS:
        before = record["steps"].get(step.name, {})
        if asked.names and step.name not in asked.names:
            continue
        if before.get("state") == "done" and before.get("commit") == code and not asked.anew:
            print(f"{step.name}: done before, {before['when']}", flush=True)
            continue
        why = left_out(step, asked, folder)
        print(f"{step.name}: {why or f'at most {step.minutes:g} minutes'}", flush=True)
        entry = {"state": "left out", "why": why, "rows": []} if why else run_step(step, asked, folder)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        record["steps"][step.name] = entry | {"commit": code, "when": now}
        write_table(folder, record)
        worst |= entry["state"] not in ("done", "left out")
        print(f"{step.name}: {entry['state']} {entry['why']}", flush=True)
    shutil.rmtree(folder / SCRATCH, ignore_errors=True)
    print((folder / "table.md").read_text(encoding="utf-8") if (folder / "table.md").exists() else "")
    return worst


def other_versions() -> list[str]:
    """What is installed in another version than pyproject.toml asks for; the steps run all the same."""
    from packaging.requirements import Requirement

    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    found = [(each, version(each.name)) for each in map(Requirement, asked) if each.name in NEEDED]
    return [f"expected {each}, got {here}" for each, here in found if not each.specifier.contains(here)]


def _commit() -> str:
    """The commit of this checkout, with a mark where files differ from it; `unknown` outside git."""
    if not shutil.which("git"):
        return "unknown"
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def work(asked: argparse.Namespace) -> None:
    """Inside a step's own process: write its rows one by one."""
    import torch
    from samples import Place

    step = next(step for step in STEPS if step.name == asked.names[0])
    module, name = step.call.split(".")
    function: Callable[..., Iterator[dict[str, Any]]] = getattr(importlib.import_module(module), name)
    paths = {name: Path(getattr(asked, name)) for name in PATHS if getattr(asked, name)}
    scratch = Path(asked.rows).parent / SCRATCH
    # what a step writes is its own, but for the large backbone, which two steps read
    place = Place(torch.device(asked.device), asked.tiny, scratch / step.call.replace(".", "_"), paths)
    if "7b" not in step.name:
        shutil.rmtree(place.folder, ignore_errors=True)
    place.folder.mkdir(parents=True, exist_ok=True)
    for row in function(place, *step.arguments):
        with Path(asked.rows).open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")
        print(row, flush=True)


def main() -> int:
    """Read the command line, look at the machine, run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(step.name for step in STEPS)}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small sizes: that the code runs")
    parser.add_argument("--anew", action="store_true", help="run the steps that are done, too")
    parser.add_argument("--out", default=str(ROOT / "results" / "gpu"), help="folder of the tables")
    parser.add_argument("--weights", help="folder of MiniLM, for the step minilm")
    parser.add_argument("--corpus", help="folder of a corpus that the pipeline has made, such as EURLEX57K")
    parser.add_argument("--tokens", help="folder of its tokens for MiniLM")
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.names) - {step.name for step in STEPS}:
        parser.error(f"expected names of steps, got {', '.join(sorted(unknown))}")
    if lacking := [name for name in NEEDED if not find_spec(name)]:
        print(f"make gpu: expected {', '.join(NEEDED)}, got no {', '.join(lacking)}. Install them.", file=sys.stderr)
        return 2
    if asked.rows:
        work(asked)
        return 0
    import torch

    for line in other_versions():
        print(f"warning: {line}", file=sys.stderr)
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("make gpu: expected a GPU and a PyTorch for CUDA, got none. Try the code with: "
              "python tests/gpu/run.py --device cpu --tiny", file=sys.stderr)  # fmt: skip
        return 2
    device = torch.cuda.get_device_name() if asked.device == "cuda" else "CPU"
    name = "".join(c if c.isalnum() else "_" for c in device.lower()) + "_tiny" * asked.tiny
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a step's process ends with this one
    return run(asked, Path(asked.out).resolve() / name, device)  # a step works in this folder


if __name__ == "__main__":
    sys.exit(main())
