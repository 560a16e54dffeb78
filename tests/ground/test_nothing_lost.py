"""docs/explanation/nothing-lost.md names a test for each of its claims: those tests exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "nothing-lost.md").read_text(encoding="utf-8")
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_every_claim_names_a_test_that_exists(name: str) -> None:
    assert f"def {name}(" in TESTS


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\b[\w/]*test_\w+\.py", PAGE))))
def test_every_file_of_tests_that_is_named_exists(path: str) -> None:
    assert (ROOT / "tests" / path).is_file()
