"""One variant against the reference of its experiments, as a table for the screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plant.paper.inputs import read_table
from plant.paper.wording import interval, metric_title, p_value, percent
from plant.statistics.crossed import SCHEMA


def show_contrasts(files: Sequence[Path]) -> str:
    """Markdown table with one row per experiment and metric, in percent.

    With one seed there is no interval and no p, as nothing is known of other seeds.

    Args:
        files: `<experiment>/ablation/<variant>.parquet`, of `statistics.compare.write_contrasts`.
    """
    if not files:
        return "The variant is the reference of its experiments: there is nothing to compare."
    lines = ["| experiment | metric | variant | reference | difference [interval] | p |", "|---|---|--:|--:|--:|--:|"]
    for file in map(Path, files):
        for row in read_table(file, SCHEMA.names).iter_rows(named=True):
            difference = f"{percent(row['difference'], signed=True)} {interval(row['low'], row['high'])}".rstrip()
            lines.append(
                f"| {file.parents[1].name} | {metric_title(row['metric'])} | {row['system']} {percent(row['value'])} | "
                f"{row['against']} {percent(row['value_against'])} | {difference} | {p_value(row['p'])} |"
            )
    return "\n".join(lines)
