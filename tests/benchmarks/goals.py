"""The project's goals for its hot spots, held against the rows of the last full run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    """A bound on one column of some rows."""

    text: str
    bench: str
    kernel: str  # a regular expression for the whole name
    way: str
    column: str
    bound: float
    least: bool  # the bound is a least value, else a largest
    size: str = ""  # of one row only


GOALS = (
    Goal("MIG: CPU-seconds of scipy SpGEMM + numpy over ours", "mig", "MIG table", "scipy SpGEMM + numpy", "ratio", 3,
         least=True),
    Goal("MIG: CPU-seconds of duckdb over ours", "mig", "MIG table", "duckdb", "ratio", 10, least=True),
    Goal("MIG: MB of memory at MIMIC-III's size", "mig", "MIG table", "ours", "peak_mb", 1000, least=False,
         size="MIMIC-III"),
    Goal("Stage 1 loss: million pairs a CPU-second", "pairwise", "Stage 1 loss.*", "ours", "million_pairs_a_cpu_second",
         200, least=True),
    Goal("Stage 1 loss: CPU-seconds of allRank's lambdaLoss over ours", "pairwise", "Stage 1 loss.*",
         "allRank lambdaLoss", "ratio", 50, least=True),
    Goal("Label attention, training: CPU-seconds of nn.MultiheadAttention over ours", "label_attention", "training.*",
         "nn.MultiheadAttention", "ratio", 3, least=True),
    Goal("Label attention, training: its memory over ours", "label_attention", "training.*", "nn.MultiheadAttention",
         "memory_ratio", 2, least=True),
    Goal("Label attention, inference: CPU-seconds of nn.MultiheadAttention over ours", "label_attention", "inference.*",
         "nn.MultiheadAttention", "ratio", 3, least=True),
    Goal("Label attention, inference: its memory over ours", "label_attention", "inference.*", "nn.MultiheadAttention",
         "memory_ratio", 2, least=True),
    Goal("Bootstrap of all metrics: CPU-seconds a system", "bootstrap", "bootstrap of all metrics.*", "plant",
         "cpu_seconds", 600, least=False),
    Goal("Bootstrap of all metrics: MB of memory", "bootstrap", "bootstrap of all metrics.*", "plant", "peak_mb", 4000,
         least=False),
    Goal("Bootstrap: CPU-seconds of scikit-learn's loop over ours", "bootstrap", "bootstrap of all metrics.*",
         "scikit-learn, one label and resample at a time", "ratio", 500, least=True),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A goal and the values that were measured, with the sizes that miss it."""

    goal: Goal
    values: list[float]
    missed: list[str]

    @property
    def words(self) -> str:
        """Met, missed, or where."""
        if not self.values:
            return "not measured"
        if not self.missed:
            return "met"
        if len(self.missed) == len(self.values):
            return "missed"
        return f"met at {len(self.values) - len(self.missed)} of {len(self.values)} sizes; missed at " + "; ".join(
            self.missed
        )

    @property
    def found(self) -> str:
        """The range of values."""
        if not self.values:
            return ""
        ends = (min(self.values), max(self.values))
        low, high = (f"{value:,.0f}" if value >= 20 else f"{value:.3g}" for value in ends)
        return low if low == high else f"{low} to {high}"

    @property
    def asked(self) -> str:
        """The bound in words."""
        return f"at {'least' if self.goal.least else 'most'} {self.goal.bound:,g}"


def verdicts(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Verdict]:
    """Of every goal whose benchmark is in `rows` (benchmark -> its rows, with ratios)."""
    found = []
    for goal in GOALS:
        if goal.bench not in rows:
            continue
        values, missed = [], []
        for row in rows[goal.bench]:
            value = row.get(goal.column)
            named = re.fullmatch(goal.kernel, row["kernel"]) and row["way"] == goal.way
            if not named or value is None or (goal.size and str(row["size"]) != goal.size):
                continue
            values.append(float(value))
            if (value < goal.bound) == goal.least and value != goal.bound:
                size = row["size"] if isinstance(row["size"], str) else f"{row['size']:,g}"
                missed.append(f"{row['kernel']}, {size} ({value:.3g})")
        found.append(Verdict(goal, values, missed))
    return found
