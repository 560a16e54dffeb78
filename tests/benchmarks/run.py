"""Run the benchmarks: `python tests/benchmarks/run.py [--quick] [--out DIR] [names]`, or `--docs`.

Each `bench_<name>.py` of this folder measures its ways side by side and asserts that they agree. The tables go to
results/benchmarks/tables/, the growth figures to results/benchmarks/figures/; with --quick (small sizes, no time
limits: a correctness run) to results/benchmarks/quick/. The exit status is 1 if any benchmark failed. With --docs
nothing is run: the tables of docs/speed/ are filled from the last full run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import pages  # noqa: E402
import tables  # noqa: E402
from common import find_peers, load, machine  # noqa: E402


def main() -> int:
    """Run what was asked for, all by default; a failure does not stop the others."""
    known = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: that all ways agree")
    parser.add_argument("--docs", action="store_true", help="fill docs/speed/ from the last full run; run nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(known)
    if unknown:
        parser.error(f"expected names of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    if asked.docs:
        print("\n".join(pages.refill(ROOT / "docs" / "speed", asked.out)) or "Nothing changed")
        return 0
    folder = asked.out / "quick" if asked.quick else asked.out
    return run({name: known[name] for name in asked.names or known}, folder, quick=asked.quick)


def run(chosen: dict[str, Path], folder: Path, *, quick: bool) -> int:
    """Run benchmarks one after the other; 1 if any failed."""
    find_peers()
    description, failed = machine(), []
    found: dict[str, list[dict[str, Any]]] = {}
    for name, path in chosen.items():
        start, rows = time.perf_counter(), []
        try:
            for line in load(path).rows(quick):
                rows.append(line)  # noqa: PERF402 (what was measured before a failure is kept)
        except Exception:  # noqa: BLE001 (shown, and the exit status says it)
            traceback.print_exc()
            failed.append(name)
        if not rows:
            continue
        found[name] = tables.with_ratios(rows)
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)\n{tables.text(found[name])}", flush=True)
        tables.write(name, rows, folder, description)
        (folder / "machine.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    _last_words(found, folder, description, failed, quick=quick)
    return 1 if failed else 0


def _last_words(
    found: dict[str, list[dict[str, Any]]], folder: Path, description: dict[str, str], failed: Iterable[str], *,
    quick: bool,
) -> None:  # fmt: skip
    if not quick and found:
        print("\n" + "\n".join(pages.goal_lines(found)))
    print("\n" + "\n".join(f"{key}: {value}" for key, value in description.items()))
    print(f"Tables: {folder / 'tables'}")
    if failed:
        print(f"Failed: {', '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
