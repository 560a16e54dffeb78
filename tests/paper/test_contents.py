"""A table or figure of the report is one file, with its function and its entry. Everything else follows."""

from __future__ import annotations

import subprocess
import sys

import pytest
from drawn import texts
from PIL import Image

from plant.paper import contents
from plant.paper.experiment.report import write_report
from plant.paper.experiment.tables import write_tables
from plant.paper.paths import Paths

TABLE = """
import polars as pl

from plant.paper.contents import ReportTable
from plant.paper.render import Table, row_of


def count_systems(data) -> Table:
    count = len(data.systems)
    return Table(
        columns=("What", "Number"), rows=(row_of("systems", str(count)),), values={"count": count},
        data=pl.DataFrame({"systems": [count]}),
    )


COUNT = ReportTable(
    name="count", function="count_systems", section="corpus", place=2, heading="How many", caption="all that are there",
    title="Systems at {{ level }}", notes="There are {{ count }} of {{ data.name }}.",
)
"""
FIGURE = """
from plant.paper.contents import ReportFigure
from plant.paper.figures.style import sentence


def name_reference(data):
    return sentence(data.reference.title)


NAME = ReportFigure(
    name="name", function="name_reference", section="rare", place=3, heading="Who", caption="The reference.",
    alt="A picture of one sentence with the title of the reference.",
)
"""


@pytest.fixture
def with_new_parts(monkeypatch, tmp_path):
    """The contents with a table and a figure more, each in a file of its own."""
    folder = tmp_path / "more" / "newparts"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "count.py").write_text(TABLE, encoding="utf-8")
    (folder / "name.py").write_text(FIGURE, encoding="utf-8")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(contents, "PACKAGES", (*contents.PACKAGES, "newparts"))
    contents.contents.cache_clear()
    yield
    contents.contents.cache_clear()


def test_a_new_entry_is_declared_written_and_shown_in_its_section(toy, with_new_parts, tmp_path):
    paths, out = Paths(toy.settings), tmp_path / "paper"
    assert {path.rpartition("/tables/")[2] for path in paths.tables("toy")} >= {"count.csv", "count.md", "count.tex"}
    assert {path.rpartition("/figures/")[2] for path in paths.figures("toy")} >= {"name.pdf", "name.png"}
    write_tables(toy.data, out)
    assert (out / "count.md").read_text(encoding="utf-8") == (
        "**Systems at 95%**\n\n| What | Number |\n| --- | ---: |\n| systems | 7 |\n\n- There are 7 of toy.\n"
    )
    assert "PLANT" in texts(contents.report_figures()["name"].load()(toy.data))
    (out / "figures").mkdir()
    for name in contents.report_figures():
        Image.new("L", (1, 1)).save(out / "figures" / f"{name}.png")
    write_report(toy.data, out / "report.html", figures=out / "figures", choices=tmp_path)
    page = (out / "report.html").read_text(encoding="utf-8")
    corpus, rare = (
        page.partition(f'<section id="{name}">')[2].partition("</section>")[0] for name in ("corpus", "rare")
    )
    assert '<table id="table-count">' in corpus and "There are 7 of toy." in corpus
    assert '<figure id="figure-name">' in rare and "<strong>Who.</strong> The reference." in rare
    assert '<li><a href="#figure-name">Who</a></li>' in page
    assert '<li><a href="#table-count">How many</a></li>' in page


def test_the_contents_load_no_package_of_numbers_or_pictures():
    """The Snakefile reads them at every start."""
    heavy = "{'polars', 'matplotlib', 'numpy', 'torch'} & set(sys.modules)"
    code = f"import sys; from plant.paper.contents import contents; print(len(contents()), {heavy} or 'none')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(len(contents.contents())), "none"]


def test_every_part_has_a_place_of_its_own_and_a_function():
    parts = contents.contents()
    assert len({part.name for part in parts}) == len({(part.section, part.place) for part in parts}) == len(parts) >= 13
    assert all(callable(part.load()) for part in parts)
