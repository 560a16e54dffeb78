"""The audit: every failed check is explained once, every explanation is needed, and the committed page is current."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from math import comb
from pathlib import Path

import polars as pl

from plant.paper.audit.findings import (
    EXPLANATIONS,
    UNEXPLAINED,
    audit,
    load_explanations,
    to_frame,
    to_page,
    write_audit,
)
from plant.paper.values.transcription import TRANSCRIPTION, load_values

ROOT = Path(__file__).parents[2]
ENTRIES = load_explanations()
VALUES = load_values()
RESULT = audit(VALUES, ENTRIES)
FAILED = {check.key for check in RESULT.checks if not check.holds}


def test_the_committed_page_is_the_one_that_the_numbers_give() -> None:
    committed = (ROOT / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    assert committed == to_page(RESULT), "write it again: python -m plant.paper.audit.findings"


def test_every_failed_check_is_explained_by_one_entry_and_has_one_finding() -> None:
    explained = [check.key for finding in RESULT.findings for check in finding.checks]
    assert sorted(explained) == sorted(FAILED)
    assert UNEXPLAINED not in [finding.entry for finding in RESULT.findings]
    for key in FAILED:
        entries = [entry.id for entry in ENTRIES if any(fnmatchcase(key, pattern) for pattern in entry.checks)]
        assert len(entries) == 1, f"{key} is explained by {entries}: narrow one pattern"


def test_every_explanation_has_a_number_of_its_own_and_something_to_explain() -> None:
    assert [finding.entry.id for finding in RESULT.findings] == sorted({entry.id for entry in ENTRIES})
    for entry in ENTRIES:
        assert entry.text and (entry.checks or entry.cells), entry.id
        for pattern in entry.checks:
            assert any(fnmatchcase(key, pattern) for key in FAILED), f"{entry.id}: {pattern} explains nothing"
        for address in entry.cells:
            VALUES.number(address)


def test_the_finding_on_few_documents_cites_the_choice_with_the_key_for_both_readings() -> None:
    (text,) = (entry.text for entry in ENTRIES if entry.id == "A25")
    (number,) = re.findall(r"choice (C\d\d)", text)
    (page,) = (ROOT / "docs" / "explanation" / "choices").glob(f"{number}-*.md")
    assert "`datasets.<name>.unlabelled`" in page.read_text(encoding="utf-8")


def test_last_digits_are_counted_and_judged_as_a_plain_sum_over_the_printed_text_says() -> None:
    """Groups by place instead of by property, digits from the text, tails of the binomial added up term by term."""
    few = [f"T11/{part}/{row}" for part in ("mimic3_few", "mimic3_rare50")
           for row in ("Tr-EHR", "CoRelation", "PLM-CA", "GKI-ICD")]  # fmt: skip
    groups = {
        "ablations of Table 12": [f"T12/{part}" for part in ("mimic3_full", "mimic4_full")],
        "four rows added to Table 11": few,
        "quoted rows of Table 10": [f"T10/{part}" for part in ("mimic3_full", "mimic3_top50")],
        "Table 2 of the earlier version": ["awd-T2/mimic3_full"],
    }
    checks = {check.place: check for check in RESULT.checks if check.relation == "last-digit"}
    for name, places in groups.items():
        cells = [cell for place in places for cell in VALUES.within(place).values()]
        left_out = {"T12": "PLANT (full setup)", "T10": "PLANT (Ours)"}
        printed = [str(cell.value) for cell in cells if cell.row != left_out.get(cell.item)]
        many, n = sum(number[-1] in "05" for number in printed), len(printed)
        tail = sum(comb(n, k) * 4 ** (n - k) for k in range(many, n + 1)) / 5**n
        assert checks[name].printed == f"{many} of {n} (p = {tail:.2g})"
        assert checks[name].holds == (tail >= 0.001)
    (words,) = (" ".join(entry.text.split()) for entry in ENTRIES if entry.id == "A38")
    printed = [check.printed.rstrip(")").split(" (") for check in checks.values()]
    assert sorted(re.findall(r"\d+ of \d+", words)) == sorted(count for count, _ in printed)
    assert all(p in words for check, (_, p) in zip(checks.values(), printed, strict=True) if check.holds)


def test_one_pair_of_a_quoted_row_and_a_backbone_shares_both_aucs() -> None:
    def aucs(place: str) -> set[tuple[str, str, str]]:
        cells = VALUES.within(place).values()
        rows = {cell.row for cell in cells if "PLANT" not in cell.row and cell.system != "average_gain"}
        return {(row, *(str(VALUES.number(f"{place}/{row}/{m}")) for m in ("macro_auc", "micro_auc"))) for row in rows}

    pairs = [(first, second) for first in aucs("T3/mimic4_full") for second in aucs("T2/mimic4_full")]
    assert len(pairs) == 16
    equal = [(first[0], second[0]) for first, second in pairs if first[1:] == second[1:]]
    assert equal == [("GPT-4 Zero-Shot", "LLaMA3-8B")]


def test_a_corrupted_value_becomes_a_finding_of_its_own(tmp_path: Path) -> None:
    text = TRANSCRIPTION.read_text(encoding="utf-8")
    source = tmp_path / "values.yaml"
    source.write_text(text.replace("[88.12, 75.00, 62.22]", "[88.12, 79.00, 62.22]", 1), encoding="utf-8")
    result = audit(load_values(source), ENTRIES)
    first = result.findings[0]
    assert first.entry == UNEXPLAINED
    assert "gain:T5/eurlex4k/PLANT (Ours)/p@3" in {check.key for check in first.checks}


def test_page_and_table_are_written_for_the_workflow(tmp_path: Path) -> None:
    page, table = tmp_path / "audit.md", tmp_path / "audit.csv"
    write_audit(page, table, values=TRANSCRIPTION, explanations=EXPLANATIONS)
    assert page.read_text(encoding="utf-8") == to_page(RESULT)
    frame = pl.read_csv(table)
    assert frame.columns == to_frame(RESULT).columns
    assert frame.height == len(FAILED) + sum(not finding.checks for finding in RESULT.findings)
