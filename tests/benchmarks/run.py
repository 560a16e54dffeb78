"""Run the benchmarks: `python tests/benchmarks/run.py [--quick] [--out DIR] [names]`.

Each `bench_<name>.py` of this folder measures its ways side by side and asserts that they agree. The tables go to
results/benchmarks/tables/, the growth figures to results/benchmarks/figures/; with --quick (small sizes, no time
limits: a correctness run) to results/benchmarks/quick/. The exit status is 1 if any benchmark failed.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import tables  # noqa: E402
from common import load, machine  # noqa: E402


def main() -> int:
    """Run what was asked for, all by default; a failure does not stop the others."""
    known = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: that all ways agree")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "results" / "benchmarks")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(known)
    if unknown:
        parser.error(f"expected names of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    folder = asked.out / "quick" if asked.quick else asked.out
    description, failed = machine(), []
    for name in asked.names or known:
        start = time.perf_counter()
        try:
            rows = load(known[name]).rows(asked.quick)
        except Exception:  # noqa: BLE001 (shown, and the exit status says it)
            traceback.print_exc()
            failed.append(name)
            continue
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)\n{tables.text(tables.with_ratios(rows))}", flush=True)
        tables.write(name, rows, folder, description)
    print("\n" + "\n".join(f"{key}: {value}" for key, value in description.items()))
    print(f"Tables: {folder / 'tables'}" + (f"\nFailed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
