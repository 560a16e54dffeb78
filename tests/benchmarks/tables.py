"""What the benchmarks found, as tables (CSV, Markdown) and log-log growth figures (PDF, PNG)."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import Growth, Row, growth

FIRST = ("kernel", "way", "size", "cpu_seconds", "wall_seconds", "peak_mb", "ratio_to", "ratio", "extrapolated")
INKS = ("#1B6E53", "#B5541C", "#3D5A98", "#8A3B75", "#6B6B6B", "#A08A1E", "#2F8FA8", "#000000")
MARKERS = "osD^vPX*"


def with_ratios(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows with `ratio`: CPU-seconds of the row over those of `ratio_to`, the same kernel at the same size."""
    seconds = {(row["kernel"], row["way"], row["size"]): row.get("cpu_seconds") for row in rows}
    found = []
    for row in rows:
        other = seconds.get((row["kernel"], row.get("ratio_to", ""), row["size"]))
        own = row.get("cpu_seconds")
        ratio = own / other if own is not None and other else None
        found.append({**row, "ratio": row.get("ratio", ratio)})
    return found


def growths(rows: Sequence[Row]) -> dict[tuple[str, str], Growth]:
    """(kernel, way) -> growth of its CPU-seconds with a size that is a number, from at least three sizes."""
    found = {}
    for key in dict.fromkeys((row["kernel"], row["way"]) for row in rows):
        points = _points(rows, *key)
        if len({size for size, _ in points}) >= 3:
            found[key] = growth(*zip(*points, strict=True))
    return found


def write(name: str, rows: Sequence[Row], folder: Path, machine: Mapping[str, str]) -> None:
    """tables/{name}.{csv,md}, and for each kernel that was measured at three sizes figures/{name}[...].{pdf,png}."""
    found = with_ratios(rows)
    more = dict.fromkeys(key for row in found for key in row if key not in FIRST and key != "note")
    columns = [*FIRST, *more, "note"]
    tables = folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    with (tables / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    (tables / f"{name}.md").write_text(_markdown(name, found, growths(rows), machine), encoding="utf-8")
    kernels = list(dict.fromkeys(kernel for kernel, _ in growths(rows)))
    for kernel in kernels:
        words = re.sub(r"[^a-z0-9]+", "-", kernel.lower()).strip("-")
        _draw([row for row in rows if row["kernel"] == kernel], folder / "figures" / f"{name}.{words}")


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Plain columns for the screen."""
    cells = [_cells(row) for row in rows]
    widths = [max(len(line[place]) for line in [_HEAD, *cells]) for place in range(len(_HEAD))]
    lines = [[entry.ljust(width) for entry, width in zip(line, widths, strict=True)] for line in [_HEAD, *cells]]
    return "\n".join("  ".join(line).rstrip() for line in lines)


_HEAD = ["kernel", "way", "size", "CPU-s", "wall s", "peak MB", "ratio", "note"]


def _cells(row: Mapping[str, Any]) -> list[str]:
    ratio, to = row.get("ratio"), row.get("ratio_to", "")
    size = row["size"]
    notes = ["extrapolated"] * bool(row.get("extrapolated")) + [row.get("note", "")] * bool(row.get("note"))
    return [
        row["kernel"], row["way"], size if isinstance(size, str) else f"{size:,}",
        *(_number(row.get(key)) for key in ("cpu_seconds", "wall_seconds", "peak_mb")),
        "" if ratio is None else f"{_number(ratio)} x {to}".rstrip(" x"), "; ".join(notes),
    ]  # fmt: skip


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _markdown(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    exponents: Mapping[tuple[str, str], Growth],
    machine: Mapping[str, str],
) -> str:
    lines = [f"**{name}**", "", _pipe(_HEAD), _pipe(["---"] * 3 + ["---:"] * 4 + ["---"])]
    lines += [_pipe(_cells(row)) for row in rows]
    lines += ["", "CPU-seconds of one call on one thread unless a note says otherwise. Ratio: CPU-seconds of the row"]
    lines += ["over those of the way that it names."]
    if exponents:
        lines += ["", _pipe(["kernel", "way", "CPU-seconds grow as size to the"]), _pipe(["---", "---", "---:"])]
        lines += [_pipe([*key, f"{fit.exponent:.2f} ± {fit.error:.2f}"]) for key, fit in exponents.items()]
    return "\n".join([*lines, "", *(f"- {key}: {value}" for key, value in machine.items())]) + "\n"


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _points(rows: Sequence[Row], kernel: str, way: str) -> list[tuple[float, float]]:
    found = []
    for row in rows:
        size, seconds = row["size"], row.get("cpu_seconds")
        if (row["kernel"], row["way"]) == (kernel, way) and not isinstance(size, str) and seconds:
            found.append((float(size), seconds))
    return sorted(found)


def _draw(rows: Sequence[Row], target: Path) -> None:
    """CPU-seconds over size, both logarithmic; each way's name and exponent stand at the end of its line.

    Open markers: extrapolated.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    from plant.paper.figures import style

    with style.look():
        figure = style.new_figure(style.PAGE * 0.7, 2.8)
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log", xlabel="size (in brackets: exponent)", ylabel="CPU-seconds")
        axes.set_title(rows[0]["kernel"])
        ends = []
        for place, way in enumerate(dict.fromkeys(row["way"] for row in rows)):
            points = _points(rows, rows[0]["kernel"], way)
            if not points:
                continue
            sizes, seconds = zip(*points, strict=True)
            ink = INKS[place % len(INKS)]
            guessed = any(row["way"] == way and row.get("extrapolated") for row in rows)
            axes.plot(sizes, seconds, color=ink, marker=MARKERS[place % len(MARKERS)], mfc="white" if guessed else ink)
            exponent = f" ({growth(sizes, seconds).exponent:.2f})" if len(set(sizes)) > 1 else ""
            ends.append((sizes[-1], seconds[-1], way + exponent, ink))
        ticks = sorted({x for line in axes.get_lines() for x in line.get_xdata()})
        axes.set_xticks(ticks, [f"{size:,.0f}" if size >= 1 else f"{size:g}" for size in ticks])
        axes.set_xticks([], minor=True)
        if math.log10(axes.get_ylim()[1] / axes.get_ylim()[0]) < 3:
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_locator(LogLocator(subs="all"))
            axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _place: ""))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,g}"))
        low, high = (math.log10(limit) for limit in axes.get_ylim())
        heights = style.spread([math.log10(y) for _, y, _, _ in ends], (high - low) * 8.5 / (72 * 2.2))
        right = max(x for x, _, _, _ in ends)
        for (_, _, words, ink), height in zip(ends, heights, strict=True):
            axes.annotate(
                words, xy=(right, 10**height), xytext=(5, 0), textcoords="offset points", va="center", fontsize=6.5,
                color=ink, annotation_clip=False,
            )  # fmt: skip
        style.save(figure, target)
