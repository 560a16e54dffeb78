"""The tables of the pages in docs/speed/, refilled from the last full run.

A page holds blocks

    <!-- bench:NAME -->            every kernel of the benchmark NAME; or, after the name, those that begin with
    <!-- /bench -->                one of some words with "; " between them

and NAME may be `goals` (which were met; after it, of which benchmark) or `machine`. What stands between the two lines
is replaced.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tables
from goals import verdicts

BLOCK = re.compile(r"(<!-- bench:(\w+)(?: ([^\n]*?))? -->\n).*?(<!-- /bench -->)", re.DOTALL)
NUMBERS = ("cpu_seconds", "wall_seconds", "peak_mb", "ratio", "extra_mb", "memory_ratio", "million_pairs_a_cpu_second")


def refill(pages: Path, results: Path) -> list[str]:
    """Rewrite the blocks of every page for which there are results; the names of the pages that changed."""
    changed = []
    for page in sorted(pages.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = BLOCK.sub(lambda found: _filled(found, results), before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            changed.append(page.name)
    return changed


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table as `tables.write` wrote them."""
    rows: list[dict[str, Any]] = []
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            numbers = {key: float(line[key]) for key in NUMBERS if line.get(key)}
            size = line["size"]
            number = size.replace(".", "", 1).isdigit()
            rows.append({**line, **dict.fromkeys(NUMBERS), **numbers, "size": float(size) if number else size,
                         "extrapolated": line.get("extrapolated") == "True"})  # fmt: skip
    return rows


def goal_lines(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """A Markdown table of all goals that something was measured for."""
    lines = ["| goal | asked | found | |", "|---|---:|---:|---|"]
    return [*lines, *(f"| {v.goal.text} | {v.asked} | {v.found} | {v.words} |" for v in verdicts(rows))]


def pivot(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One kernel as a Markdown table: ways by sizes, the longer of the two downwards."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    if all(isinstance(size, float) for size in sizes):
        sizes.sort()
    cells = {(row["way"], row["size"]): _cell(row) for row in rows}
    heads = {size: size if isinstance(size, str) else f"{size:,.0f}" for size in sizes}
    if len(ways) >= len(sizes):
        body = [[way, *(cells.get((way, size), "") for size in sizes)] for way in ways]
        first = ["", *heads.values()]
    else:
        body = [[heads[size], *(cells.get((way, size), "") for way in ways)] for size in sizes]
        first = ["size", *ways]
    return [_pipe(first), _pipe(["---", *["---:"] * (len(first) - 1)]), *map(_pipe, body)]


def _filled(found: re.Match[str], results: Path) -> str:
    begin, name, words, end = found.groups()
    if name == "goals":
        lines = _all_goals(results, words or "*")
    elif name == "machine":
        path = results / "machine.json"
        lines = []
        if path.is_file():
            lines = [f"- {key}: {value}" for key, value in json.loads(path.read_text(encoding="utf-8")).items()]
    else:
        lines = _kernels(results / "tables" / f"{name}.csv", words)
    return begin + "\n".join([*lines, ""]) + end if lines else found.group(0)


def _all_goals(results: Path, name: str) -> list[str]:
    rows = {path.stem: read_rows(path) for path in sorted((results / "tables").glob(f"{name}.csv"))}
    return goal_lines(rows) if rows else []


def _kernels(path: Path, words: str | None) -> list[str]:
    if not path.is_file():
        return []
    rows, lines = read_rows(path), []
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        if words and not kernel.startswith(tuple(words.split("; "))):
            continue
        chosen = [row for row in rows if row["kernel"] == kernel]
        lines += ["", f"**{kernel}** ({_legend(chosen)})", "", *pivot(chosen)]
        fits = {way: fit for (_, way), fit in tables.growths(chosen).items()}
        if fits:
            each = ", ".join(f"{way} {fit.exponent:.2f} ± {fit.error:.2f}" for way, fit in fits.items())
            lines += ["", f"CPU-seconds grow as size to the: {each}."]
    return [*lines, ""]


def _legend(rows: Sequence[Mapping[str, Any]]) -> str:
    beyond = any(row["extra_mb"] is not None for row in rows)
    to = next((row["ratio_to"] for row in rows if row.get("ratio_to")), "")
    parts = [
        "speed" if any(row.get("shown") for row in rows) else "CPU-seconds",
        "memory beyond the inputs" if beyond else "peak memory of the process",
        *[f"times the CPU-seconds of *{to}*"] * bool(to),
        *["~: extrapolated"] * any(row["extrapolated"] for row in rows),
    ]
    return "; ".join(parts)


def _cell(row: Mapping[str, Any]) -> str:
    if row["cpu_seconds"] is None and not row.get("shown"):
        return "not measured"
    text = "~" * row["extrapolated"] + (row.get("shown") or f"{_number(row['cpu_seconds'])} s")
    memory = row["peak_mb"] if row["extra_mb"] is None else row["extra_mb"]
    if memory is not None:
        text += f", {memory:,.0f} MB"
    own = row["ratio"] is None or row.get("ratio_to") in ("", row["way"])
    return text if own else f"{text}, {_number(row['ratio'])}x"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
