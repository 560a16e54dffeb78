"""Where a number comes from: `plant trace <file>`, or `plant trace <table.csv> <word> ...` for some of its cells.

`plant verify <folder>` compares every file below it with what its job wrote.

Follows the provenance sidecars from a result back to the raw files: what each step read, whether that is still what
lies there (SHA-256), with which settings, seed, code and versions it was made, how long it took and how much memory.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plant.ground.cells import Cut, find_rows, print_row
from plant.ground.errors import InputError, printable
from plant.ground.files import read_json
from plant.ground.provenance import SIDECAR, public_path, sha256

PATTERN = "*provenance.json"
WIDTH = 120
UNCHANGED, GONE = "unchanged", "no longer there"


@dataclass(frozen=True)
class Step:
    """One job, as its sidecar tells it."""

    sidecar: str
    facts: Mapping[str, Any]

    def inputs(self, cut: Cut) -> dict[str, str]:
        """Path -> SHA-256 when it was read, of what belongs to the systems that are asked for."""
        return {
            path: digest for path, digest in self.facts["inputs"].items() if cut.keeps(self.facts["settings"], path)
        }

    @property
    def versions(self) -> dict[str, str]:
        """Packages that were installed."""
        return {name: version for name, version in self.facts["versions"].items() if version}


class Index:
    """Which job made which file, from all sidecars below a folder.

    Args:
        root: folder of all results.
    """

    def __init__(self, root: Path) -> None:
        self.makers: dict[str, Step] = {}
        for file in sorted(root.rglob(PATTERN), key=lambda file: (file.name != SIDECAR, file)):  # of folders the first
            step = Step(public_path(file), read_json(file))
            if "outputs" in step.facts:  # older sidecars name none
                self.makers |= dict.fromkeys([step.sidecar, *step.facts["outputs"]], step)
        self.folders: dict[str, Step] = {}
        for output, step in self.makers.items():
            for folder in Path(output).parents:
                self.folders.setdefault(str(folder), step)

    def maker(self, path: str) -> Step | None:
        """The job that made a file, the folder around it or what lies in it; None for what no job made."""
        around = (str(folder) for folder in Path(path).parents)
        return next((self.makers[name] for name in (path, *around) if name in self.makers), self.folders.get(path))


@dataclass(frozen=True)
class Node:
    """A step in its place: `files` of it were read by the step above, `more` of other steps stands elsewhere."""

    step: Step | None
    files: Mapping[str, str]
    more: Mapping[str, str]
    children: tuple[Node, ...]


def trace(target: Path, *, root: Path, cut: Cut | None = None) -> Iterator[str]:
    """The lines of the chain behind a file: each step once, below the last step that reads from it.

    Args:
        target: a file that the pipeline made, or its sidecar.
        root: folder of all results.
        cut: which systems are followed where a step compares several. None: all.

    Raises:
        InputError: no sidecar knows the file.
    """
    index, name = Index(root), public_path(target)
    first = index.maker(name)
    if first is None:
        raise InputError(
            str(target), expected="a file that a job of this pipeline made", got="none that a sidecar names",
            fix=f"Give its path below {root}, from the folder in which Snakemake was started, or name another --root.",
        )  # fmt: skip
    made = first.facts["outputs"].get(name)
    tree = _tree(first, {} if made is None else {name: made}, index, cut or Cut())
    if made is None:
        yield name
    yield from _lines(tree, 0, first)
    yield ""
    yield from textwrap.wrap(
        "Versions: " + ", ".join(f"{name} {version}" for name, version in first.versions.items()),
        WIDTH, subsequent_indent="  ", break_on_hyphens=False,
    )  # fmt: skip
    states = list(_states(tree))  # a file that several steps read comes several times
    count, changed = len({path for path, _ in states}), {path for path, state in states if state != UNCHANGED}
    yield f"{count} files: " + (f"{len(changed)} are not what they were" if changed else "all are what they were")


def _tree(first: Step, files: Mapping[str, str], index: Index, cut: Cut) -> Node:
    """Every step once: below the reader that is farthest from the target, so that the chain reads downwards."""
    depth: dict[str, int] = {}
    steps: dict[str, Step] = {}

    def dive(step: Step, level: int) -> None:
        if depth.get(step.sidecar, -1) >= level:
            return
        depth[step.sidecar], steps[step.sidecar] = level, step
        for path in step.inputs(cut):
            maker = index.maker(path)
            if maker is not None and maker.sidecar != step.sidecar:
                dive(maker, level + 1)

    dive(first, 0)
    placed = {first.sidecar}

    def node(step: Step, files: Mapping[str, str]) -> Node:
        groups: dict[str, dict[str, str]] = {}
        more: dict[str, str] = {}
        for path, digest in step.inputs(cut).items():
            maker = index.maker(path)
            name = path if maker is None else maker.sidecar
            if maker is not None and (name in placed or depth[name] != depth[step.sidecar] + 1):
                more[path] = digest
            else:
                groups.setdefault(name, {})[path] = digest
        placed.update(groups)
        below = tuple(
            node(steps[name], read) if name in steps else Node(None, read, {}, ()) for name, read in groups.items()
        )
        return Node(step, files, more, below)

    return node(first, files)


def _lines(node: Node, level: int, first: Step) -> Iterator[str]:
    pad = "  " * level
    for path, digest in node.files.items():
        yield f"{pad}{_line(path, digest)}"
    if node.step is not None:
        for text in describe(node.step, first):
            yield from textwrap.wrap(
                text, WIDTH, initial_indent=f"{pad}  ", subsequent_indent=f"{pad}    ", break_on_hyphens=False,
                break_long_words=False,
            )  # fmt: skip
        if node.more:
            yield f"{pad}  also read, described elsewhere:"
            for path, digest in node.more.items():
                yield f"{pad}  - {_line(path, digest)}"
    for child in node.children:
        yield from _lines(child, level + 1, first)


def _line(path: str, digest: str) -> str:
    return f"{path}  {digest[:12]}  {_state(path, digest)}"


def describe(step: Step, first: Step) -> list[str]:
    """What a sidecar says, in lines.

    Args:
        step: the job.
        first: the job of the target, whose versions stand at the end; others are named here.
    """
    facts, used = step.facts, step.facts["resources"]
    code, when = facts["code"], facts["written"][:19].replace("T", " ")
    commit = "unknown code" if code["commit"] is None else f"commit {code['commit'][:12]}"
    seed = "" if facts["seed"] is None else f", seed {facts['seed']}"
    lines = [
        f"made {when} UTC by {commit}{' with changes' if code['modified'] else ''}{seed}",
        f"{_resources(used)} on {facts['device']['name']}; settings in {step.sidecar}",
    ]
    other = {name: version for name, version in step.versions.items() if first.versions.get(name) != version}
    if other:
        lines.append(f"other versions: {', '.join(f'{name} {version}' for name, version in other.items())}")
    return lines


def _resources(used: Mapping[str, Any]) -> str:
    parts = [f"{used['wall_seconds']:,.1f} s"]
    if used.get("attempts", 1) > 1:
        parts[0] += f" in {used['attempts']} attempts"
    if used.get("processes", 1) > 1:
        parts.append(f"{used['processes']} processes")
    parts.append(f"{used['peak_host_mb']:,.0f} MB")
    if used.get("peak_device_mb"):
        parts.append(f"{used['peak_device_mb']:,.0f} MB on the device")
    joules = [value for value in (used.get("energy_joules") or {}).values() if value is not None]
    return ", ".join([*parts, *([f"{sum(joules):,.0f} J"] if joules else [])])


@cache
def _state(path: str, digest: str) -> str:
    where = Path(path).expanduser()
    if not where.exists():
        return GONE
    return UNCHANGED if sha256(where) == digest else "CHANGED since then"


def _states(node: Node) -> Iterator[tuple[str, str]]:
    found = {path: _state(path, digest) for path, digest in (*node.files.items(), *node.more.items())}
    yield from found.items()
    for child in node.children:
        yield from _states(child)


def verify(root: Path) -> tuple[list[str], str]:
    """Compare the files that sidecars name as outputs with their SHA-256, as it was when they were written.

    Args:
        root: folder of all results.

    Returns:
        A line a changed file, with the command that makes it anew; and how many files were compared. Files that are
        gone are counted only: Snakemake makes them again where they are needed.
    """
    outputs = ((path, step.facts["outputs"].get(path)) for path, step in sorted(Index(root).makers.items()))
    states = {path: _state(path, digest) for path, digest in outputs if digest is not None}
    changed = [path for path, state in states.items() if state not in (UNCHANGED, GONE)]
    gone = sum(state == GONE for state in states.values())
    lines = [f"{path} is not what its job wrote; anew: snakemake --cores 1 --force {path}" for path in changed]
    return lines, f"{len(states) - gone} files compared, {len(changed)} changed; {gone} are no longer there"


def main(arguments: Sequence[str] | None = None) -> None:
    """`plant trace FILE [WORD ...]` and `plant verify FOLDER`."""
    args = _parser().parse_args(arguments)
    changed = False
    try:
        if args.command == "verify":
            found, summary = verify(args.folder)
            lines, changed = [*found, summary], bool(found)
        else:
            lines = _traced(args)
    except InputError as error:
        sys.exit(f"plant: {error}")
    for line in lines:
        print(printable(line))  # noqa: T201 - what the command is for
    if changed:
        sys.exit(1)


def _traced(args: argparse.Namespace) -> list[str]:
    rows = find_rows(args.file, args.words) if args.words else []
    cut = Cut.of(rows)
    if args.system:
        cut = Cut(frozenset([args.system]), cut.experiments)
    return [*map(print_row, rows), *([""] if rows else []), *trace(args.file, root=args.root, cut=cut)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="plant", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("trace", help="where a result comes from")
    command.add_argument("file", type=Path, help="a file below results/")
    command.add_argument("words", nargs="*", help="names of a cell of a table in CSV, such as: plant p@5")
    command.add_argument("--system", help="follow this system only where several are compared")
    command.add_argument("--root", type=Path, default=Path("results"), help="folder of all results (results)")
    command = commands.add_parser("verify", help="whether results are what their jobs wrote")
    command.add_argument("folder", type=Path, nargs="?", default=Path("results"), help="all results (results)")
    return parser


if __name__ == "__main__":
    main()
