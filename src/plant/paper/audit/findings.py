"""The audit of the paper: relations that fail, explained, and what else a reading turns up. Words: audit.yaml."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import polars as pl
import yaml
from pydantic import ValidationError

from plant.ground.errors import InputError
from plant.ground.files import write_text
from plant.ground.settings.base import Frozen
from plant.paper.audit.relations import RELATIONS, Check, check_all
from plant.paper.render import to_csv
from plant.paper.values.transcription import Values, load_values, read_yaml

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
UNEXPLAINED = "A00"


class Explanation(Frozen):
    """An entry of audit.yaml."""

    id: str
    severity: Severity
    title: str
    rests_on: Basis
    checks: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    text: str


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the paper's numbers should know."""

    entry: Explanation
    checks: tuple[Check, ...]
    """The failed checks behind it; none for what was found by reading."""

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells that the entry names, then those of its checks."""
        return tuple(dict.fromkeys([*self.entry.cells, *(key for check in self.checks for key in check.cells)]))


@dataclass(frozen=True)
class Audit:
    """All checks, and the findings in the order of audit.yaml."""

    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    values: Values


def load_explanations(source: Path = EXPLANATIONS) -> tuple[Explanation, ...]:
    """Read audit.yaml.

    Raises:
        InputError: the form is wrong, or two entries have one id.
    """
    try:
        read = read_yaml(source)
        entries = tuple(Explanation.model_validate(entry) for entry in read["findings"])
    except (yaml.YAMLError, ValidationError, KeyError, TypeError) as error:
        raise InputError(
            source.name, expected="the form that its head explains", got=str(error), fix="Correct it."
        ) from None
    repeated = [name for name, times in Counter(entry.id for entry in entries).items() if times > 1]
    if repeated:
        raise InputError(source.name, expected="one entry an id", got=f"twice {repeated[0]}", fix="Number it anew.")
    return entries


def audit(values: Values, explanations: tuple[Explanation, ...]) -> Audit:
    """Check everything and join the failed checks to their explanations.

    An entry whose checks all hold is left out; failed checks without an entry make one finding of their own.

    Raises:
        InputError: a failed check belongs to two entries, or an entry names a cell that does not exist.
    """
    checks = check_all(values)
    failed = [check for check in checks if not check.holds]
    taken: dict[str, str] = {}
    findings: list[Finding] = []
    for entry in explanations:
        behind = tuple(check for check in failed if any(fnmatchcase(check.key, pattern) for pattern in entry.checks))
        for check in behind:
            if check.key in taken:
                raise InputError(
                    EXPLANATIONS.name, expected=f"one entry for {check.key}", got=f"{taken[check.key]} and {entry.id}",
                    fix="Narrow one pattern.",
                )  # fmt: skip
            taken[check.key] = entry.id
        for key in entry.cells:
            values.number(key)
        if behind or not entry.checks:
            findings.append(Finding(entry, behind))
    rest = tuple(check for check in failed if check.key not in taken)
    if rest:
        findings.insert(0, Finding(_UNEXPLAINED, rest))
    return Audit(checks, tuple(findings), values)


_UNEXPLAINED = Explanation(
    id=UNEXPLAINED,
    severity="contradiction",
    title="Failed checks that nobody has explained yet",
    rests_on="paper",
    text="Compare the transcription with the paper first; then explain them in audit.yaml.",
)


def write_audit(page: Path, table: Path, *, values: Path, explanations: Path) -> None:
    """Write the audit as a page (Markdown) and as a table (CSV).

    Raises:
        InputError: `values` (values.yaml) or `explanations` (audit.yaml) is not what it must be.
    """
    result = audit(load_values(values), load_explanations(explanations))
    for target, text in ((page, to_page(result)), (table, to_csv(to_frame(result)))):
        write_text(target, text)


def to_frame(result: Audit) -> pl.DataFrame:
    """One row a failed check, and one a finding without checks."""
    rows = []
    for finding in result.findings:
        head = {name: getattr(finding.entry, name) for name in ("id", "severity", "title", "rests_on")}
        shown = [(check.relation, check.expected, check.printed, check.cells) for check in finding.checks]
        for relation, expected, printed, cells in shown or [("", "", "", finding.cells)]:
            compared = {"relation": relation, "expected": expected, "found": printed}
            keys = " ".join(f"[{key}]" for key in cells)
            rows.append(head | compared | {"cells": keys, "text": finding.entry.text.strip()})
    return pl.DataFrame(rows)


def to_page(result: Audit) -> str:
    """The page docs/audit.md."""
    lines = [_INTRODUCTION.format(**_counts(result)), *_relation_table(result)]
    for severity, meaning in SEVERITIES.items():
        findings = [finding for finding in result.findings if finding.entry.severity == severity]
        if findings:
            lines += ["", f"## {meaning}"]
        for finding in findings:
            lines += ["", *_section(finding, result.values)]
    return "\n".join(lines) + "\n"


_INTRODUCTION = """\
# Audit of the paper's numbers

<!-- Generated by `make audit` from src/plant/paper/values/values.yaml and audit.yaml; do not edit. -->

The paper is arXiv 2410.23066 in its LLM version; its earlier AWD-LSTM version is compared where the two meet. This
page says which of its printed numbers agree with one another. It does not say whether they can be measured again, and
calling two numbers a contradiction says nothing about how it came about.

{cells} numbers are transcribed ({llm} of the LLM version, {awd} of the earlier one). **{checked} relations were
checked, {held} hold.** The {failed} that fail, and what reading alone turns up, make {findings} findings:
{by_severity}.
A relation holds if unrounded numbers exist that satisfy it and are printed as in the paper; that of last digits holds
if chance explains their count. A cell is written item/dataset/row/column: T9 is Table 9, F2 Figure 2, S4 section 4,
AC appendix C, awd-T2 Table 2 of the earlier version.

## What was checked
"""


def _counts(result: Audit) -> dict[str, object]:
    versions = Counter(cell.version for cell in result.values.cells.values())
    severities = Counter(finding.entry.severity for finding in result.findings)
    held = sum(check.holds for check in result.checks)
    return {
        "cells": len(result.values.cells),
        "llm": versions["llm"],
        "awd": versions["awd"],
        "checked": f"{len(result.checks):,}",
        "held": f"{held:,}",
        "failed": len(result.checks) - held,
        "findings": len(result.findings),
        "by_severity": ", ".join(f"{name} {severities[name]}" for name in SEVERITIES),
    }


def _relation_table(result: Audit) -> list[str]:
    lines = ["| Relation | Kind | Checked | Hold |", "| --- | --- | ---: | ---: |"]
    for name, function in RELATIONS.items():
        of_kind = [check.holds for check in result.checks if check.relation == name]
        sentence = (function.__doc__ or "").strip().splitlines()[0]
        lines.append(f"| {sentence} | {name} | {len(of_kind)} | {sum(of_kind)} |")
    return lines


def _section(finding: Finding, values: Values) -> list[str]:
    entry = finding.entry
    lines = [f"### {entry.id}: {entry.title}", "", entry.text.strip(), "", f"Rests on {BASES[entry.rests_on]}."]
    if finding.checks:
        lines += ["", "| Where | From the other cells | Printed |", "| --- | --- | --- |"]
        lines += [f"| {_place(check)} | {check.expected} | {check.printed} |" for check in finding.checks]
    else:
        shown = (f"`{key}` = {values.number(key)}" for key in finding.cells)
        lines += ["", f"Cells: {'; '.join(shown)}."]
    return lines


def _place(check: Check) -> str:
    """The two ends of a comparison, the claim and its cells, or the cell that the check is about."""
    if check.relation == "claim":
        return f"{check.place}: " + ", ".join(f"`{key}`" for key in check.cells)
    return " and ".join(f"`{part}`" for part in check.place.replace(">", "=").split("="))


def main(page: Path) -> None:
    """Write the page that is committed."""
    write_text(page, to_page(audit(load_values(), load_explanations())))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/audit.md"))
