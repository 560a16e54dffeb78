"""The audit of the paper: the relations that fail, with explanations, and what else a reading shows.

The explanations are in audit.yaml, the words of the page in audit.md.j2. `python -m plant.paper.audit.findings` writes
docs/reference/audit.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import polars as pl

from plant.ground.files import write_text
from plant.ground.settings.base import Frozen
from plant.paper.audit.relations import RELATIONS, Check, check_all
from plant.paper.inputs import read_yaml
from plant.paper.render import template, to_csv
from plant.paper.values.transcription import PaperValues, load_values

EXPLANATIONS = Path(__file__).with_name("audit.yaml")

Severity = Literal["contradiction", "unsupported", "convention", "pattern", "rounding"]
Basis = Literal["paper", "versions", "published", "code"]

SEVERITIES: dict[Severity, str] = {
    "contradiction": "Printed numbers or statements that exclude one another",
    "unsupported": "Claims that nothing printed bears out",
    "convention": "Numbers of different definitions side by side",
    "pattern": "Digits that chance alone seldom gives",
    "rounding": "Differences of the last digit",
}
BASES: dict[Basis, str] = {
    "paper": "the paper alone",
    "versions": "both versions of the paper",
    "published": "the paper and files that others publish",
    "code": "the paper and its authors' public code",
}


class Explanation(Frozen):
    """An entry of audit.yaml."""

    id: str
    severity: Severity
    title: str
    rests_on: Basis
    checks: tuple[str, ...] = ()
    """Patterns of the keys of the failed checks that it explains."""
    cells: tuple[str, ...] = ()
    """Addresses of the numbers that it is about."""
    text: str


class Explanations(Frozen):
    """The content of audit.yaml."""

    findings: tuple[Explanation, ...]


UNEXPLAINED = Explanation(
    id="A00",
    severity="contradiction",
    title="Failed checks that nobody has explained yet",
    rests_on="paper",
    text="Compare the transcription with the paper first; then explain them in audit.yaml.",
)


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the paper's numbers should know."""

    entry: Explanation
    checks: tuple[Check, ...]
    """The failed checks behind it; empty if a reader noticed it."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells that the entry names, then those of its checks."""
        return tuple(dict.fromkeys([*self.entry.cells, *(key for check in self.checks for key in check.cells)]))


@dataclass(frozen=True)
class Audit:
    """All checks, and the findings in the order of audit.yaml."""

    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    values: PaperValues


def load_explanations(source: Path = EXPLANATIONS) -> tuple[Explanation, ...]:
    """Read audit.yaml."""
    return Explanations.model_validate(read_yaml(source)).findings


def audit(values: PaperValues, explanations: tuple[Explanation, ...]) -> Audit:
    """Check all relations, and give each failed check to its explanation.

    An entry with checks is left out if all of them hold. Failed checks without an entry become the first finding.
    """
    checks = check_all(values)
    rest = [check for check in checks if not check.holds]
    findings = []
    for entry in explanations:
        own = [check for check in rest if any(fnmatchcase(check.key, pattern) for pattern in entry.checks)]
        rest = [check for check in rest if check not in own]
        if own or not entry.checks:
            findings.append(Finding(entry, tuple(own)))
    if rest:
        findings.insert(0, Finding(UNEXPLAINED, tuple(rest)))
    return Audit(checks, tuple(findings), values)


def write_audit(page: Path, table: Path, *, values: Path, explanations: Path) -> None:
    """Write the audit as a page (Markdown) and as a table (CSV)."""
    result = audit(load_values(values), load_explanations(explanations))
    for target, text in ((page, to_page(result)), (table, to_csv(to_frame(result)))):
        write_text(target, text)


def to_frame(result: Audit) -> pl.DataFrame:
    """One row per failed check, and one per finding without checks."""
    rows = []
    for finding in result.findings:
        entry = finding.entry
        shown = [(check.relation, check.expected, check.printed, check.cells) for check in finding.checks]
        for relation, expected, printed, cells in shown or [("", "", "", finding.cells)]:
            keys = " ".join(f"[{key}]" for key in cells)
            rows.append({
                "id": entry.id, "severity": entry.severity, "title": entry.title, "rests_on": entry.rests_on,
                "relation": relation, "expected": expected, "found": printed, "cells": keys, "text": entry.text.strip(),
            })  # fmt: skip
    return pl.DataFrame(rows)


def to_page(result: Audit) -> str:
    """The page docs/reference/audit.md. Of a relation it shows the first line of the docstring."""
    return template(__package__, "audit.md.j2").render(
        checks=result.checks,
        held=sum(check.holds for check in result.checks),
        findings=result.findings,
        versions=Counter(cell.version for cell in result.values.cells.values()),
        relations={name: (relation.__doc__ or "").strip().splitlines()[0] for name, relation in RELATIONS.items()},
        severities=SEVERITIES,
        bases=BASES,
        number=result.values.number,
    )


if __name__ == "__main__":
    write_text(Path("docs/reference/audit.md"), to_page(audit(load_values(), load_explanations())))
