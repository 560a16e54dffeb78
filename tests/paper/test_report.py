"""The report: one file, no request, everything in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from plant.ground.files import read_json, write_json
from plant.ground.settings import load
from plant.paper.contents import report_figures, report_tables
from plant.paper.experiment.report import provenance_summary, write_report
from plant.paper.systems import cut_settings

CHOICES = Path(__file__).parents[2] / "docs" / "explanation" / "choices"
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Tags, attributes and text; raises on tags that do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & {*self._open}:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def figures(tmp_path) -> Path:
    """One pixel under every name."""
    (tmp_path / "figures").mkdir()
    for name in report_figures():
        Image.new("L", (1, 1)).save(tmp_path / "figures" / f"{name}.png")
    return tmp_path / "figures"


def report(toy, figures: Path) -> str:
    target = toy.folder / "paper" / "report.html"
    write_report(toy.data, target, figures=figures, choices=CHOICES)
    return target.read_text(encoding="utf-8")


def test_report_loads_nothing_from_outside_and_is_the_same_twice(toy, figures):
    html = report(toy, figures)
    for tag, attributes in Page(html).tags:
        assert tag not in ("iframe", "object", "embed", "link")
        for name in ("src", "srcset", "poster", "data", "background", "action"):
            assert (attributes.get(name) or "data:").startswith("data:")
        assert tag == "a" or "href" not in attributes
    assert not re.search(r"url\(|@import|fetch|XMLHttp|import\(", html)
    assert report(toy, figures) == html


def test_figures_have_alternative_texts_and_tables_captions_and_scoped_headers_below_the_headline(toy, figures):
    html = report(toy, figures)
    page = Page(html)
    images = page.all("img")
    assert len(images) == len(report_figures())
    assert all(image["src"].startswith("data:image/png;base64,iVBOR") for image in images)
    assert all(len(image["alt"] or "") > 30 for image in images)
    assert all(attributes.get("scope") in ("row", "col") for attributes in page.all("th"))
    assert len(page.all("caption")) == len(report_tables())
    for words in ("Table 6", "Spread over training seeds", "Cost of every stage", "MIG log-odds"):
        assert words in page.text
    answer = "Yes, planting helps the network, but the best baseline without a network is better"
    best = "Best of 7 systems: TF-IDF + MIG combined in macro-F1 (present) (59.0), MIG log-odds in rare AP (50.9)."
    assert html.index(answer) < html.index(best) < html.index("<table")


@pytest.fixture
def shown(toy, figures) -> str:
    """Address of a report."""
    report(toy, figures)
    return (toy.folder / "paper" / "report.html").as_uri()


@pytest.mark.parametrize(("width", "dark", "script"), [(360, False, False), (390, True, True), (1280, False, True)])
def test_the_page_fits_every_width_without_a_sideways_scroll_or_an_error(browser, shown, width, dark, script):
    browser.open(shown, width=width, dark=dark, script=script)
    browser.value("document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= browser.value("innerWidth")
    cards = browser.value("getComputedStyle(document.querySelector('#table-ablation tbody tr')).display")
    assert cards == ("flex" if width < 768 else "table-row")
    too_wide = """[...document.querySelectorAll('#table-ablation td, #table-intervals td, .prose td')]
        .filter((cell) => cell.getBoundingClientRect().right > innerWidth).length"""
    assert browser.value(too_wide) == 0
    assert (browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") != dark
    assert bool(browser.value("document.querySelectorAll('th button').length")) == script
    assert browser.errors == []


def test_a_column_is_sorted_by_keyboard_and_the_third_press_brings_the_first_order_back(browser, shown):
    browser.open(shown, width=1280)
    column = "document.querySelectorAll('#table-ablation thead th')[3]"
    cells = (
        "[...document.querySelectorAll('#table-ablation tbody tr')].map((row) => row.cells[3].firstChild.textContent)"
    )
    first = browser.value(cells)
    while browser.value(f"document.activeElement.parentElement !== {column}"):
        browser.press("Tab")
    orders = []
    for key in ("Enter", " ", "Enter"):
        browser.press(key)
        orders.append((browser.value(f"{column}.getAttribute('aria-sort')"), [float(v) for v in browser.value(cells)]))
    numbers = [float(value) for value in first]
    assert numbers != sorted(numbers)
    assert orders == [
        ("descending", sorted(numbers, reverse=True)), ("ascending", sorted(numbers)), (None, numbers),
    ]  # fmt: skip
    assert browser.errors == []


def test_sorting_reads_units_signs_and_missing_values(browser, shown):
    browser.open(shown, width=1280)
    texts = ["2.5 h", "–", "3.2 s", "−1.0▼ (−3.4)", "1,234", "2.0 min", "< 0.001", "0.001"]
    rows = f"{texts}.map((text) => ({{cells: [{{textContent: text}}]}}))"
    ordered = f"order({rows}, 0, 'DIRECTION').map((row) => row.cells[0].textContent)"
    known = ["−1.0▼ (−3.4)", "< 0.001", "0.001", "3.2 s", "2.0 min", "1,234", "2.5 h"]
    assert browser.value(ordered.replace("DIRECTION", "ascending")) == [*known, "–"]
    assert browser.value(ordered.replace("DIRECTION", "descending")) == [*known[::-1], "–"]


def test_every_choice_is_in_the_file_itself_and_every_link_leads_to_a_place_in_it(toy, figures):
    """The report is sent alone: a path into the repository would be dead."""
    page = Page(report(toy, figures))
    links = [a["href"] or "" for a in page.all("a")]
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert {"#C11", "#C12"} <= set(links)  # the notes of the tables name them
    assert set(links) <= {f"#{name}" for name in ids}
    parts = {
        f"#{kind}-{name}" for kind, some in (("table", report_tables()), ("figure", report_figures())) for name in some
    }
    assert parts - set(links) == {"#table-corpus", "#table-cost"}  # these two are alone in their sections
    cells = {cell.get("data-label") for cell in page.all("td")}
    assert {"macro-AUC", "Gain, interval (paper's)", "Measured effect", "test"} <= cells
    for path in CHOICES.glob("C*.md"):
        number, title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split(": ", 1)
        assert {"class": "rule", "id": number} in page.all("tr")
        assert f"{number}: {title}" in page.text


def test_attention_is_shown_with_weights_in_words(toy, figures):
    page = Page(report(toy, figures))
    assert "productive" in page.text
    assert "most weight: fever" in page.text
    shades = [float(s["style"].removeprefix("--w:")) for s in page.all("span") if "--w:" in (s.get("style") or "")]
    assert len(shades) == 3 * 2 * 140
    assert max(shades) == 1.0
    assert min(shades) >= 0


def test_a_report_marks_a_synthetic_corpus_and_credentialed_text(toy, figures):
    private = {"datasets": {"toy": {"source": "mimic3", "generate": {}, "credentialed": True}}}
    real = {"datasets": {"toy": {"source": "eurlex57k", "path": "somewhere"}}}
    asked = private | {"evaluation": {"show_credentialed": True}}
    text = {name: Page(report(toy.with_config(**config), figures)).text
            for name, config in (("open", {}), ("real", real), ("private", private), ("asked", asked))}  # fmt: skip
    assert ("favours the method" in text["open"], "favours the method" in text["real"]) == (True, False)
    assert "productive" not in text["private"]
    assert "credentialed and is not shown" in text["private"]
    assert "productive" in text["asked"]
    assert {name: shown.count("do not share this") for name, shown in text.items()} == {
        "open": 0, "real": 0, "private": 0, "asked": 2,  # on top, and over the text
    }  # fmt: skip


def test_marks_of_html_and_formulas_in_titles_labels_and_words_are_shown_as_they_stand(toy, figures):
    title, label, word = "<img src=x onerror=1>", r"$\frac{1}$ <b>&amp;", "$$<i>"
    for path in toy.inputs.attention.values():
        table = pl.read_parquet(path)
        pieces = pl.when(pl.col("position") % 3 == 0).then(pl.lit(f" {word}")).otherwise("token")
        table.with_columns(label=pl.lit(label), token=pieces).write_parquet(path)
    page = Page(report(toy.with_config(variants={"focal": {"finetuning": "focal_long", "title": title}}), figures))
    assert title in page.text
    assert f"label {label}" in page.text
    assert page.text.count(word) >= 3 * 2 * 140 // 3
    assert not page.all("i")
    assert not page.all("b")
    assert all(image["src"].startswith("data:") for image in page.all("img"))


def test_runs_of_two_commits_are_both_named(toy):
    path = toy.inputs.finetunings["plant"][0] / "provenance.json"
    record = read_json(path)
    write_json(path, record | {"code": {"commit": "def456", "modified": True}})
    summary = dict(provenance_summary(toy.data.costs))
    assert set(summary["commit"].split(", ")) == {"abc123", "def456 with uncommitted changes"}
    assert summary["torch"] == "2.13.0"
    assert "peft" not in summary


def test_settings_of_other_experiments_do_not_reach_the_report(toy):
    config = toy.settings.model_dump(mode="json")
    config["datasets"]["other"] = {"source": "eurlex57k", "path": "elsewhere"}
    config["finetunings"]["other"] = {}
    config["experiments"]["other"] = config["experiments"]["toy"] | {"dataset": "other"}
    cut = cut_settings(load(config), "toy")
    assert cut == cut_settings(toy.settings, "toy")
    assert set(cut.datasets) == {"toy"}
    assert "other" not in cut.finetunings
