"""docs/reference/scope.md: every item of the paper has a row, and every row and target leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
import yaml

from plant.ground.settings import Item
from plant.paper.values.transcription import load_values

ROOT = Path(__file__).parents[3]
VALUES = load_values()
PAGE = (ROOT / "docs" / "reference" / "scope.md").read_text(encoding="utf-8")
NAMES = {"T": "Table", "F": "Figure", "S": "Section", "A": "Appendix"}


class Row(NamedTuple):
    """A row of a table of the page."""

    name: str
    says: str
    scope: str
    why: str
    target: str


def rows() -> list[Row]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:2] == "| "]
    return [Row(*row) for row in cells if row[0] not in {"Item", "Claim", "---"}]


ROWS = rows()


def targets(row: Row) -> list[str]:
    return re.findall(r"`([^`]+)`", row.target)


def rules_of_the_workflow() -> set[str]:
    """Rules, and the targets that the rule files make from names of the configs and of the paper's items."""
    files = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").rglob("*.smk")]
    found = {name for file in files for name in re.findall(r"^rule (\w+):", file.read_text("utf-8"), re.MULTILINE)}
    found |= {*get_args(Item), "cost"}
    for file in (ROOT / "config").rglob("*.yaml"):
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        found |= {f"ablation_{name}" for name in config.get("variants", {})}
        found |= {f"experiment_{name}" for name in config.get("experiments", {})}
    return found


def test_no_item_stands_twice_and_every_row_says_in_or_out():
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert {row.scope for row in ROWS} == {"in", "out"}
    assert all(row.says for row in ROWS)
    assert [row.name for row in ROWS if row.scope == "out" and not row.why] == []


def row_of(item: str) -> str:
    """Name of the row: awd-T7 is Earlier Table 7, awd-S5b Earlier section 5, awd-A11 Earlier A.11."""
    version, _, item = item.rpartition("-")
    if not version:
        return f"{NAMES[item[0]]} {item[1:]}"
    number = item[1:].rstrip("b")
    return "Earlier " + {"A": f"A.{number}", "S": f"section {number}"}.get(item[0], f"{NAMES[item[0]]} {number}")


@pytest.mark.parametrize("item", [item.item for item in VALUES.items])
def test_every_transcribed_item_has_a_row(item):
    name = row_of(item)
    assert [row for row in ROWS if row.name == name or row.name.startswith(f"{name},")]


@pytest.mark.parametrize("item", get_args(Item))
def test_every_item_of_the_settings_is_the_target_of_its_own_row(item):
    name = re.sub("^Awd ", "Earlier ", item.replace("_", " ").title()).replace("Appendix ", "A.")
    (row,) = [row for row in ROWS if row.name == name]
    assert targets(row)[0] == item


@pytest.mark.parametrize("where", sorted({claim.where for claim in VALUES.claims}))
def test_every_claim_that_is_transcribed_has_a_row(where):
    pattern, version = r"RQ\d|\(\d\)|key takeaways|Table \d+|appendix [A-Z]|section [15]", ""
    if where.startswith("earlier version"):
        pattern, version = r"section [\d.]*\d|A\.[\d.]*\d|Tables? \d+|(?<=and )\d+", "earlier "
    places = [re.sub(r"^Tables |^(?=\d)", "Table ", place) for place in re.findall(pattern, where)]
    assert places
    heads = "\n".join(row.name for row in ROWS if row.name.startswith("Earlier") == bool(version)).lower()
    assert [place for place in places if f"{version}{place}".lower() not in heads] == []


def test_every_table_and_figure_of_the_paper_has_a_row():
    tables = [f"Table {number}" for number in range(1, 13)] + [f"Earlier Table {number}" for number in range(1, 12)]
    figures = [f"{version}Figure {number}" for version in ("", "Earlier ") for number in range(1, 6)]
    assert {row.name for row in ROWS if re.match(r"(Earlier )?(Table|Figure) ", row.name)} == {*tables, *figures}


def test_what_is_in_has_targets_and_every_target_item_and_rule_that_the_page_names_exists():
    known = rules_of_the_workflow()
    assert {row.name: targets(row) for row in ROWS if (row.scope == "in") != bool(targets(row))} == {}
    in_passing = {word for word in re.findall(r"`(?:snakemake )?(\w+)`", PAGE) if not word.startswith(("mig", "paper"))}
    assert ({target for row in ROWS for target in targets(row)} | in_passing) - known == set()


def test_findings_and_choices_that_the_page_cites_exist():
    audit = (ROOT / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    assert [number for number in set(re.findall(r"\bA\d\d\b", PAGE)) if f"### {number}:" not in audit] == []
