"""One variant against the reference of its experiments, as a table for the screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plant.paper.inputs import read_table
from plant.paper.studies.study import COLUMNS
from plant.paper.wording import interval, metric_title, p_value, percent


def show_contrasts(files: Sequence[Path]) -> str:
    """Markdown table of contrasts: a row an experiment and metric, in percent.

    With one seed there is neither interval nor p: it says nothing of other seeds.

    Args:
        files: `<experiment>/ablation/<variant>.parquet`, of `statistics.compare.write_contrasts`.
    """
    if not files:
        return "The variant is the reference of its experiments: there is nothing to compare."
    lines = ["| experiment | metric | variant | reference | difference [interval] | p |", "|---|---|--:|--:|--:|--:|"]
    for file in files:
        for row in read_table(Path(file), COLUMNS).iter_rows(named=True):
            cells = (
                Path(file).parents[1].name, metric_title(row["metric"]),
                f"{row['system']} {percent(row['value'])}", f"{row['against']} {percent(row['value_against'])}",
                f"{percent(row['difference'], signed=True)} {interval(row['low'], row['high'])}".rstrip(),
                p_value(row["p"]),
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
