"""Where the CPU-seconds of a whole run go.

    python tests/benchmarks/profile_run.py results            # of a finished run, step by step, from its sidecars
    python tests/benchmarks/profile_run.py --stage-2          # inside Stage 2 on a corpus of CodiEsp's shape
    python tests/benchmarks/profile_run.py --starts           # what starting each script costs before any work

Each prints a Markdown table. --stage-2 draws 500 training and 250 validation documents of 461 cached states on average
and 1,767 labels, runs a few epochs of `plant.finetuning` and puts its other epochs on the line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EPOCHS, MEASURED = 13, 2
ARITHMETIC = "the model's arithmetic"
START = """
import runpy, sys, time
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="start")
print(time.process_time())
"""


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, help="folder of a finished run")
    parser.add_argument("--stage-2", action="store_true", dest="stage_2")
    parser.add_argument("--starts", action="store_true")
    asked = parser.parse_args()
    if asked.results:
        print("\n".join(of_sidecars(asked.results)))
    if asked.stage_2:
        print("\n".join(of_stage_2()))
    if asked.starts:
        print("\n".join(of_starts()))


# --- a finished run ----------------------------------------------------------------------------------------


def of_sidecars(results: Path) -> list[str]:
    """Jobs, CPU-seconds and peak memory of every kind of step."""
    steps: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sidecar in sorted(results.rglob("*provenance.json")):
        facts = json.loads(sidecar.read_text(encoding="utf-8"))
        if "resources" in facts:
            steps[_step(sidecar.relative_to(results))].append(facts["resources"])
    total = sum(job["cpu_seconds"] for jobs in steps.values() for job in jobs)
    lines = ["| step | jobs | CPU-s | share | CPU-s a job | peak MB |", "|---|---:|---:|---:|---:|---:|"]
    for step, jobs in sorted(steps.items(), key=lambda item: -sum(job["cpu_seconds"] for job in item[1])):
        seconds, peak = sum(job["cpu_seconds"] for job in jobs), max(job["peak_host_mb"] or 0 for job in jobs)
        cells = [step, f"{len(jobs)}", f"{seconds:,.1f}", f"{seconds / total:.0%}", f"{seconds / len(jobs):.1f}"]
        lines.append(f"| {' | '.join(cells)} | {peak:,.0f} |")
    return [*lines, f"| all | {sum(map(len, steps.values()))} | {total:,.1f} | 100% | | |"]


def _step(sidecar: Path) -> str:
    """Room and kind: `evaluation: metrics`, `baselines: tfidf_linear`, `statistics: intervals`, `finetuning`."""
    room, kind = sidecar.parts[0], sidecar.name.removesuffix("provenance.json").rstrip(".")
    if room == "evaluation" and not kind and "words" in sidecar.parts:
        return f"baselines: {sidecar.parts[sidecar.parts.index('words') + 1]}"
    if room == "evaluation" and not kind:
        kind = "scores"
    if room == "relevance":
        kind = ""
    return f"{room}: {kind}" if kind else room


# --- what starting costs -----------------------------------------------------------------------------------


def of_starts() -> list[str]:
    """CPU-seconds from the start of Python until each script could begin, all its imports done."""
    lines = ["| script | CPU-s before any work |", "|---|---:|"]
    for script in sorted((ROOT / "workflow" / "scripts").glob("*.py")):
        done = subprocess.run(
            [sys.executable, "-c", START, str(script)], capture_output=True, text=True, check=True, cwd=ROOT
        )
        lines.append(f"| {script.stem} | {float(done.stdout):.2f} |")
    return lines


# --- inside Stage 2 ----------------------------------------------------------------------------------------


class Clock:
    """CPU-seconds by part; what one part calls of another counts for the other only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what happens inside."""
        self._turn()
        self._open.append(name)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def wrap(self, owners: Iterable[Any], function: str, name: str) -> None:
        """Count a function wherever it is looked up; for the rest of this process."""
        for owner in owners:
            plain: Callable[..., Any] = getattr(owner, function)

            def counted(*args: Any, _plain: Callable[..., Any] = plain, **kwargs: Any) -> Any:
                with self.part(name):
                    return _plain(*args, **kwargs)

            setattr(owner, function, counted)


def of_stage_2() -> list[str]:
    """A table of the parts of one job: imports, `MEASURED` epochs put on the line to `EPOCHS`, what comes once."""
    clock = Clock()
    with clock.part("starting Python, imports"):
        clock.seconds["starting Python, imports"] += time.process_time()
        import torch

        from plant.finetuning import finetune, scoring
        from plant.model import fitting
    torch.set_num_threads(1)
    clock.wrap([finetune, scoring], "pad_documents", "padding: cached states to batches")
    clock.wrap([finetune, scoring], "multi_hot", "truth of batches")
    clock.wrap([finetune], "batch_loss", f"{ARITHMETIC}: loss")
    clock.wrap([torch.Tensor], "backward", f"{ARITHMETIC}: gradient")
    clock.wrap([fitting._Fitting], "_update", f"{ARITHMETIC}: AdamW, clipping")
    clock.wrap([scoring], "predict_logits", f"{ARITHMETIC}: validation logits")
    clock.wrap([scoring], "best_threshold", "validation: threshold")
    clock.wrap([fitting._Fitting], "save", "checkpoint")
    epochs: list[dict[str, float]] = []
    for number in (1, MEASURED):
        before = dict(clock.seconds)
        with tempfile.TemporaryDirectory() as folder, clock.part("all else"):
            _train(Path(folder), number)
        epochs.append({name: clock.seconds[name] - before.get(name, 0.0) for name in clock.seconds})
    return _table(clock.seconds["starting Python, imports"], *epochs)


def _train(folder: Path, epochs: int) -> None:
    import numpy as np
    import torch

    from plant.finetuning.finetune import finetune
    from plant.ground.settings import Finetuning
    from plant.model.assemble import save_weights
    from plant.model.batches import Corpus
    from plant.model.classifier import LabelClassifier

    random, labels, documents, carried = np.random.default_rng(0), 1767, 750, 11
    lengths = random.normal(461, 150, documents).clip(60, 900).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    path = folder / "features.npy"
    np.save(path, random.standard_normal((offsets[-1], 384), dtype=np.float32).astype(np.float16))
    indices = np.concatenate([np.sort(random.choice(labels, carried, replace=False)) for _ in range(documents)])
    corpus = Corpus(
        np.zeros(offsets[-1], np.int32), offsets, np.arange(documents + 1) * carried, indices,
        {"train": (0, 500), "val": (500, 750)}, np.load(path, mmap_mode="r"),
    )  # fmt: skip
    torch.manual_seed(0)
    classifier = LabelClassifier(None, n_labels=labels, hidden_size=384, heads=8, pool_size=128)
    finetune(classifier, corpus, Finetuning(epochs=epochs, patience=None), seed=0, checkpoint=folder / "c", digest="d")
    save_weights(classifier, folder / "out", head=True)


def _table(start: float, one: dict[str, float], more: dict[str, float]) -> list[str]:
    """From runs of 1 and of `MEASURED` epochs: what an epoch adds, and the rest."""
    found = {"starting Python, imports": start}
    for name in more:
        each = max(0.0, (more[name] - one.get(name, 0.0)) / (MEASURED - 1))
        once = 0.0 if name == "all else" else one.get(name, 0.0) - each  # in it: drawing the corpus
        if name not in found:
            found[name] = max(0.0, once) + each * EPOCHS
    total = sum(found.values())
    lines = [f"| part ({EPOCHS} epochs) | CPU-s | share |", "|---|---:|---:|"]
    for name, seconds in sorted(found.items(), key=lambda item: -item[1]):
        lines.append(f"| {name} | {seconds:,.1f} | {seconds / total:.1%} |")
    arithmetic = sum(seconds for name, seconds in found.items() if name.startswith(ARITHMETIC))
    lines.append(f"| **all** | {total:,.1f} | of it {ARITHMETIC}: {arithmetic / total:.0%} |")
    return lines


if __name__ == "__main__":
    main()
