"""What a config file says twice, or in a way that YAML reads as something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from plant.ground.errors import InputError

OTHER_BASE = re.compile(r"[-+]?(0[0-7_]+|[1-9][0-9_]*(:[0-5]?[0-9])+)")
"""Numbers that YAML 1.1 takes to the base 8 (010 is 8) or 60 (1:30 is 90)."""


def check_written(files: Iterable[Path]) -> None:
    """Refuse keys that stand twice, of which YAML takes the last in silence, and numbers to the base 8 or 60.

    Args:
        files: config files in YAML. What is no YAML is left to Snakemake's own message.

    Raises:
        InputError: one error that lists every fault of a file with its line.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one, where PyYAML has it
    for file in files:
        try:
            node = yaml.compose(file.read_text(encoding="utf-8-sig"), Loader=loader)
        except (OSError, UnicodeError, yaml.YAMLError):
            continue
        if faults := list(dict.fromkeys(_faults(node, "", set()))):
            raise InputError(
                str(file), expected="every key once, and numbers to the base 10", got=f"{len(faults)} fault(s)",
                fix="Correct:\n  " + "\n  ".join(faults),
            )  # fmt: skip


def _faults(node: yaml.Node | None, path: str, seen: set[int]) -> Iterator[str]:
    """Faults of a node and of all below it; what an alias repeats is looked at once."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in first:
                yield f"line {line}: {path}{name} is already set in line {first[name]}"
            first.setdefault(name, line)
            yield from _faults(value, f"{path}{name}.", seen)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _faults(value, path, seen)
    elif node.tag == "tag:yaml.org,2002:int" and OTHER_BASE.fullmatch(node.value):
        read = yaml.safe_load(node.value)
        yield f"line {node.start_mark.line + 1}: {path.rstrip('.')}: YAML reads {node.value} as {read}"
