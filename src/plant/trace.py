"""Where a number comes from: `plant trace <file>`, or `plant trace <table.csv> <system> <metric>` for one cell.

Follows the provenance sidecars from a result back to the raw files: what each step read, whether that is still what
lies there (SHA-256), with which settings, seed, code and versions it was made, how long it took and how much memory.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plant.errors import InputError, nearest
from plant.files import read_json, require_file
from plant.provenance import sha256

PATTERN = "*provenance.json"


@dataclass(frozen=True)
class Step:
    """One job, as its sidecar tells it."""

    sidecar: Path
    facts: Mapping[str, Any]

    @property
    def inputs(self) -> Mapping[str, str]:
        """Path -> SHA-256 when it was read."""
        return self.facts["inputs"]


class Index:
    """Which job made which file, from all sidecars below a folder.

    Args:
        root: folder of all results.
    """

    def __init__(self, root: Path) -> None:
        self.steps: dict[str, Step] = {}
        for sidecar in sorted(root.rglob(PATTERN)):
            step = Step(sidecar, read_json(sidecar))
            for output in step.facts.get("outputs", {}):
                self.steps[output] = step

    def maker(self, path: str) -> Step | None:
        """The job that made a file (or the first file below a folder); None for what this pipeline did not make."""
        if path in self.steps:
            return self.steps[path]
        return next((step for output, step in self.steps.items() if output.startswith(f"{path}/")), None)


def trace(target: Path, *, root: Path, system: str | None = None) -> Iterator[str]:
    """The lines of the chain behind a file, each step once.

    Args:
        target: a file that the pipeline made, relative to the working directory.
        root: folder of all results.
        system: follow only this system where a step compares several.

    Raises:
        InputError: no sidecar knows the file.
    """
    index, seen = Index(root), set[Path]()
    first = index.maker(target.as_posix())
    if first is None:
        raise InputError(
            str(target), expected="a file that a job of this pipeline made", got="none that a sidecar names",
            fix=f"Give its path as it lies below {root}, from the folder in which Snakemake was started.",
        )  # fmt: skip
    skipped = _others(first, system)

    def walk(path: str, then: str | None, depth: int) -> Iterator[str]:
        pad, step = "  " * depth, index.maker(path)
        yield f"{pad}{path}{_state(path, then)}"
        if step is None:
            return
        if step.sidecar in seen:
            yield f"{pad}  (see above: {step.sidecar})"
            return
        seen.add(step.sidecar)
        yield from (f"{pad}  {line}" for line in describe(step))
        for source, digest in step.inputs.items():
            if not any(f"{source}/".startswith(f"{folder}/") for folder in skipped):
                yield from walk(source, digest, depth + 1)

    yield from walk(target.as_posix(), None, 0)
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in first.facts['versions'].items() if version)}"


def describe(step: Step) -> list[str]:
    """What a sidecar says, in lines."""
    facts, used = step.facts, step.facts["resources"]
    code, device = facts["code"], facts["device"]
    commit = "unknown code" if code["commit"] is None else f"commit {code['commit'][:12]}"
    memory = f"{used['peak_host_mb']:,.0f} MB"
    if used.get("peak_device_mb"):
        memory += f" and {used['peak_device_mb']:,.0f} MB on the device"
    return [
        f"made {facts['written']} by {commit}{' with changes' if code['modified'] else ''}"
        + ("" if facts["seed"] is None else f", seed {facts['seed']}"),
        f"in {used['wall_seconds']:,.1f} s on {device['name']}, {memory}; settings in {step.sidecar}",
    ]


def _state(path: str, then: str | None) -> str:
    if then is None:
        return ""
    where = Path(path).expanduser()
    if not where.exists():
        return "  [no longer there]"
    return "  [unchanged]" if sha256(where) == then else "  [CHANGED since it was read]"


def _others(step: Step, system: str | None) -> list[str]:
    """Folders of the systems that are not asked for."""
    if system is None:
        return []
    paths = step.facts["settings"].get("paths", {})
    found = {kind: paths.get(kind, {}) for kind in ("evaluations", "finetunings", "pretrainings", "attention")}
    if system not in found["evaluations"]:
        raise InputError(
            "system", expected="a system of the table", got=repr(system), fix=nearest(system, found["evaluations"])
        )
    kept = set(found["evaluations"][system]) | set(found["finetunings"].get(system, ()))
    kept |= {folder.replace("/finetuning/", "/evaluation/") for folder in kept}
    every = {
        folder for kind in ("evaluations", "finetunings") for folders in found[kind].values() for folder in folders
    }
    every |= set(found["attention"].values())
    stage1 = {folder for folders in found["pretrainings"].values() for folder in folders}
    own = {folder for folder in stage1 if any(_recipe(folder) == _recipe(run) for run in kept)}
    return sorted(every - kept | stage1 - own)


def _folders(runs: Mapping[str, Sequence[str]]) -> list[str]:
    return [folder for folders in runs.values() for folder in folders]


def _recipe(folder: str) -> str:
    """The Stage 1 recipe in a run's path.

    >>> _recipe("results/finetuning/demo/tiny/plant@3+focal/seed0"), _recipe("results/pretraining/demo/tiny/mse/seed0")
    ('plant', 'mse')
    """
    return Path(folder).parent.name.partition("+")[0].partition("@")[0]


def read_cell(table: Path, system: str, metric: str) -> str:
    """The value of one system and metric in a table that was written as CSV.

    Raises:
        InputError: the table has no such row.
    """
    with require_file(table).open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    for column, wanted in (("system", system), ("metric", metric)):
        known = [row.get(column, "") for row in rows]
        if wanted not in known:
            raise InputError(
                str(table), expected=f"a {column} of the table", got=repr(wanted), fix=nearest(wanted, known)
            )
        rows = [row for row in rows if row[column] == wanted]
    return ", ".join(row["value"] for row in rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """`plant trace FILE [SYSTEM METRIC]`."""
    parser = argparse.ArgumentParser(prog="plant", description=__doc__.splitlines()[0] if __doc__ else None)
    command = parser.add_subparsers(dest="command", required=True).add_parser("trace", help="where a result comes from")
    command.add_argument("file", type=Path, help="a file below results/")
    command.add_argument("system", nargs="?", help="of a table in CSV: name of the row")
    command.add_argument("metric", nargs="?", help="of a table in CSV: name of the column")
    command.add_argument("--root", type=Path, default=Path("results"), help="folder of all results (results)")
    args = parser.parse_args(arguments)
    try:
        if args.system and args.metric:
            value = read_cell(args.file, args.system, args.metric)
            print(f"{args.system}, {args.metric}: {value}")  # noqa: T201 - what the command is for
        for line in trace(args.file, root=args.root, system=args.system):
            print(line)  # noqa: T201
    except InputError as error:
        sys.exit(f"plant: {error}")


if __name__ == "__main__":
    main()
