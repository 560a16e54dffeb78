"""`plant trace` says where a number comes from, and `plant verify` whether results have changed.

`plant trace` follows the provenance sidecars from a result back to the raw files. For each step it prints the files
that were read, whether they are unchanged (SHA-256), and the seed, code, versions, time and memory.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plant.ground.cells import Cut, find_rows, print_row
from plant.ground.errors import InputError
from plant.ground.files import read_json
from plant.ground.provenance import SIDECAR, public_path, sha256

WIDTH = 120
UNCHANGED, GONE = "unchanged", "no longer there"


@dataclass(frozen=True)
class Step:
    """One job: the path and the content of its sidecar."""

    sidecar: str
    facts: Mapping[str, Any]

    def inputs(self, cut: Cut) -> dict[str, str]:
        """Path -> SHA-256 of the inputs, without those of systems that are left out."""
        return {path: sha for path, sha in self.facts["inputs"].items() if cut.keeps(self.facts["settings"], path)}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the installed packages."""
        return {name: version for name, version in self.facts["versions"].items() if version}


class Index:
    """Which job made which file, from all sidecars below a folder."""

    def __init__(self, root: Path) -> None:
        self.makers: dict[str, Step] = {}
        self.folders: dict[str, Step] = {}
        # the sidecars of folders first, then those of single files
        files = sorted(root.rglob(f"*{SIDECAR}"), key=lambda file: (file.name != SIDECAR, file))
        steps = [Step(public_path(file), read_json(file)) for file in files]
        for step in sorted(steps, key=lambda step: str(step.facts["written"])):  # the newest that names a file counts
            self.makers |= dict.fromkeys([step.sidecar, *step.facts["outputs"]], step)
        for step in steps:
            for output in (step.sidecar, *step.facts["outputs"]):
                for folder in Path(output).parents:
                    self.folders.setdefault(str(folder), step)

    def maker(self, path: str) -> Step | None:
        """The job that made a file, a folder around it, or a file in it. None: no job made it."""
        names = (path, *map(str, Path(path).parents))
        return next((self.makers[name] for name in names if name in self.makers), self.folders.get(path))


class Chain:
    """The steps behind a file. Each is described once, below the step that reads it and is farthest from the file.

    Attributes:
        unchanged: file that `lines` has printed -> whether it is still what every step read.
    """

    def __init__(self, first: Step, index: Index, cut: Cut) -> None:
        self.first, self.index, self.cut = first, index, cut
        self.unchanged: dict[str, bool] = {}
        self._depth: dict[str, int] = {}  # number of steps on the longest way from the first step
        self._measure(first, 0)
        self._described = {first.sidecar}

    def _measure(self, step: Step, depth: int) -> None:
        if self._depth.get(step.sidecar, -1) < depth:
            self._depth[step.sidecar] = depth
            for maker in map(self.index.maker, step.inputs(self.cut)):
                if maker is not None and maker.sidecar != step.sidecar:
                    self._measure(maker, depth + 1)

    def _shown(self, path: str, digest: str) -> str:
        state = _state(path, digest)
        self.unchanged[path] = self.unchanged.get(path, True) and state == UNCHANGED
        return f"{path}  {digest[:12]}  {state}"

    def lines(self, step: Step | None, files: Mapping[str, str], level: int) -> Iterator[str]:
        """The files that were read from a step, what the step did, and below it the steps that it read from."""
        pad = "  " * level
        yield from (pad + self._shown(path, digest) for path, digest in files.items())
        if step is None:  # no job made these files
            return
        for text in _described(step, self.first):
            yield from _wrapped(text, f"{pad}  ")
        below: dict[str, tuple[Step | None, dict[str, str]]] = {}
        elsewhere: dict[str, str] = {}
        for path, digest in step.inputs(self.cut).items():
            maker = self.index.maker(path)
            key = maker.sidecar if maker else path
            if maker and (key in self._described or self._depth[key] != self._depth[step.sidecar] + 1):
                elsewhere[path] = digest
            else:
                below.setdefault(key, (maker, {}))[1][path] = digest
        self._described.update(below)
        if elsewhere:
            yield f"{pad}  also read, described elsewhere:"
            yield from (f"{pad}  - {self._shown(path, digest)}" for path, digest in elsewhere.items())
        for maker, read in below.values():
            yield from self.lines(maker, read, level + 1)


def trace(file: Path, words: Sequence[str] = (), *, system: str | None = None, root: Path) -> Iterator[str]:
    """The lines of `plant trace`: the rows of a table that words name, and the chain behind them.

    Args:
        file: a file that the pipeline made, or its sidecar. With words, a table in CSV.
        words: names of a cell; none: the whole file.
        system: follow this one only where several are compared.
        root: folder of all results.

    Raises:
        InputError: no sidecar names the file, or the words name no row.
    """
    rows = find_rows(file, words) if words else []
    cut = Cut.of(rows)
    cut = Cut(frozenset([system]), cut.experiments) if system else cut
    index, name = Index(root), public_path(file)
    first = index.maker(name)
    if first is None:
        raise InputError(
            str(file), expected="a file that a job of this pipeline made", got="none that a sidecar names",
            fix=f"Give its path below {root}, from the folder in which Snakemake was started, or name another --root.",
        )  # fmt: skip
    if rows:
        yield from (*map(print_row, rows), "")
    chain, made = Chain(first, index, cut), first.facts["outputs"].get(name)
    if made is None:
        yield name
    yield from chain.lines(first, {} if made is None else {name: made}, 0)
    yield ""
    yield from _wrapped("Versions: " + ", ".join(f"{name} {version}" for name, version in first.versions.items()), "")
    changed = list(chain.unchanged.values()).count(False)
    state = f"{changed} are not what they were" if changed else "all are what they were"
    yield f"{len(chain.unchanged)} files: {state}"


def _wrapped(text: str, pad: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=pad, subsequent_indent=f"{pad}  ", break_on_hyphens=False, break_long_words=False
    )


def _described(step: Step, first: Step) -> list[str]:
    """What a sidecar says about its job. Versions are named if they differ from those of the first step."""
    facts, code = step.facts, step.facts["code"]
    commit = "unknown code" if code["commit"] is None else f"commit {code['commit'][:12]}"
    commit += " with changes" if code["modified"] else ""
    seed = "" if facts["seed"] is None else f", seed {facts['seed']}"
    lines = [
        f"made {facts['written'][:19].replace('T', ' ')} UTC by {commit}{seed}",
        f"{_resources(facts['resources'])} on {facts['device']['name']}; settings in {step.sidecar}",
    ]
    other = [f"{name} {version}" for name, version in step.versions.items() if first.versions.get(name) != version]
    return [*lines, f"other versions: {', '.join(other)}"] if other else lines


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


def verify(root: Path) -> tuple[list[str], str]:
    """Compare the outputs that sidecars name with their SHA-256 when they were written.

    Args:
        root: folder of all results.

    Returns:
        A line for each changed file, with the command that makes it again; and a summary. Missing files are only
        counted, because Snakemake makes them again when they are needed.

    Raises:
        InputError: none of them is there.
    """
    outputs = ((path, step.facts["outputs"].get(path)) for path, step in sorted(Index(root).makers.items()))
    states = {path: _state(path, digest) for path, digest in outputs if digest is not None}
    changed = [path for path, state in states.items() if state not in (UNCHANGED, GONE)]
    gone = list(states.values()).count(GONE)
    if states and gone == len(states):
        raise InputError(
            str(root), expected="files that sidecars name", got=f"none of {gone}",
            fix="Their paths begin in the folder in which Snakemake was started: go there.",
        )  # fmt: skip
    anew = "is not what its job wrote; anew: snakemake --cores 1 --force"
    lines = [f"{path} {anew} {path} (and your --configfile)" for path in changed]
    return lines, f"{len(states) - gone} files compared, {len(changed)} changed; {gone} are no longer there"
