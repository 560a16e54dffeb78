"""The pages of docs/explanation/choices: their form, and that what they name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from plant.ground.errors import InputError
from plant.ground.reference import tables
from plant.paper.experiment.report import Choice, first_paragraph, read_choices

ROOT = Path(__file__).parents[2]
PAGES = read_choices(ROOT / "docs" / "explanation" / "choices")


def test_every_page_has_a_number_of_its_own_and_nothing_empty():
    numbers = [page.number for page in PAGES]
    assert len(numbers) >= 18
    assert len(set(numbers)) == len(numbers)
    assert all(text for page in PAGES for text in page.sections.values())


def test_the_index_has_every_page_by_its_title():
    folder = ROOT / "docs" / "explanation" / "choices"
    rows = re.findall(r"^\| \[(C\d+)\]\((.+)\) \| (.+) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    files = sorted(path.name for path in folder.glob("C*.md"))
    assert rows == [(page.number, file, page.title) for page, file in zip(PAGES, files, strict=True)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.number)
def test_config_keys_of_the_page_exist(page: Choice):
    known = {f"{path.replace('.<name>', '')}.{key}" for path, _, _, keys in tables() for key in keys}
    for key in re.findall(r"`([a-z_]+\.[^`]+)`", page.sections["Config key"]):
        assert key.replace(".<name>", "") in known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.number)
def test_tests_of_the_page_exist(page: Choice):
    named = re.findall(r"`(tests/[^`:]+\.py)::(\w+)`", page.sections["Test"])
    assert named, "a page names the tests that hold it"
    for file, function in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.number)
def test_page_says_where_the_paper_says_it(page: Choice):
    assert re.search(r"section \d|appendix [A-G]|Eq\. \d|Table \d", page.sections["Paper says"], re.IGNORECASE)


def test_page_of_another_form_is_one_clear_error(tmp_path):
    (tmp_path / "C01-x.md").write_text("# C01: X\n\n## Chosen\n\nthis\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"C01-x\.md: expected .*Paper says.* got the headings Chosen"):
        read_choices(tmp_path)


def test_markdown_of_a_page_is_escaped_before_it_is_set():
    assert str(first_paragraph("`a` is **b** <i>\n\nnext")) == "<code>a</code> is <strong>b</strong> &lt;i&gt;"
