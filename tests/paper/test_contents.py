"""A table or figure of the report is one function and one entry: files, place, notes and captions follow."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from plant.paper import contents
from plant.paper.experiment.report import write_report
from plant.paper.experiment.tables import write_tables
from plant.paper.figures import write_figures
from plant.paper.figures.style import sentence
from plant.paper.paths import Paths
from plant.paper.render import Table, row_of


def count_systems(data) -> Table:
    count = len(data.systems)
    return Table(
        columns=("What", "Number"), rows=(row_of("systems", str(count)),), values={"count": count},
        data=pl.DataFrame({"systems": [count]}),
    )  # fmt: skip


def name_reference(data):
    return sentence(data.reference.title)


@pytest.fixture
def with_new_parts(monkeypatch):
    """The contents with a table and a figure of this file."""

    class Here(contents.ReportTable):
        module = __name__

    class HereToo(contents.ReportFigure):
        module = __name__

    new = (
        Here(
            name="count", function=":count_systems", section="corpus", heading="How many", caption="all that are there",
            title="Systems at {{ level }}", notes="There are {{ count }} of {{ data.name }}.",
        ),
        HereToo(
            name="name", function=":name_reference", section="rare", heading="Who", caption="The reference.",
            alt="A picture of one sentence with the title of the reference.",
        ),
    )  # fmt: skip
    monkeypatch.setattr(contents, "CONTENTS", (*contents.CONTENTS, *new))


def test_a_new_entry_is_declared_written_and_shown_in_its_section(toy, with_new_parts, tmp_path):
    paths, out = Paths(toy.settings), tmp_path / "paper"
    assert {path.rpartition("/tables/")[2] for path in paths.tables("toy")} >= {"count.csv", "count.md", "count.tex"}
    assert {path.rpartition("/figures/")[2] for path in paths.figures("toy")} >= {"name.pdf", "name.png"}
    write_tables(toy.data, out)
    assert (out / "count.md").read_text(encoding="utf-8") == (
        "**Systems at 95%**\n\n| What | Number |\n| --- | ---: |\n| systems | 7 |\n\n- There are 7 of toy.\n"
    )
    for name in contents.report_figures():  # a figure is not drawn anew for the page
        (out / "figures").mkdir(exist_ok=True)
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


def test_a_new_figure_is_drawn(toy, with_new_parts, monkeypatch, tmp_path):
    monkeypatch.setattr(contents, "CONTENTS", contents.CONTENTS[-1:])
    write_figures(toy.data, tmp_path)
    assert {path.name for path in tmp_path.glob("name.*")} == {"name.pdf", "name.png"}


def test_the_contents_load_no_package_of_numbers_or_pictures():
    """The Snakefile reads them at every start."""
    source = Path(str(contents.__file__)).read_text(encoding="utf-8")
    imported = {
        line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import", "from"))
    }
    assert imported <= {"__future__", *sys.stdlib_module_names}
