"""One HTML file with everything: headline, tables, figures, corpus, costs, choices, provenance. It works offline.

The page is report.html.j2, a table in it table.html.j2; this module gathers what they print.
"""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from markupsafe import Markup, escape

from plant.ground.errors import InputError
from plant.ground.files import require_file, write_text
from plant.paper import contents
from plant.paper.experiment.attention import readings
from plant.paper.experiment.data import ExperimentData
from plant.paper.experiment.headline import write_headline
from plant.paper.experiment.tables import build_tables
from plant.paper.render import Table, template
from plant.paper.systems import KIND_COLOURS, KIND_TITLES, cut_settings
from plant.paper.wording import ARROWS

SECTIONS = (
    "Paper says", "Gap", "Options", "Chosen", "Evidence", "Measured effect", "Config key", "Test", "Status",
)  # fmt: skip


class Choice(NamedTuple):
    """A page of docs/explanation/choices."""

    number: str
    title: str
    sections: dict[str, str]
    """Heading -> the Markdown below it."""


def write_report(data: ExperimentData, target: Path, *, figures: Path, choices: Path) -> None:
    """Write the report of one experiment. `figures` and `choices` are the folders of its pictures and of the pages."""
    config = cut_settings(data.settings, data.name).model_dump(mode="json")
    page = template(__package__, "report.html.j2", first_paragraph=first_paragraph, top_words=_top_words, zip=zip)
    html = page.render(
        data=data,
        headline=write_headline(data),
        sections=contents.SECTIONS,
        contents=contents.contents(),
        tables={name: to_html(table) for name, table in build_tables(data).items()},
        pictures={name: _data_uri(Path(figures) / f"{name}.png") for name in contents.report_figures()},
        legend=[(KIND_COLOURS[kind], KIND_TITLES[kind]) for kind in dict.fromkeys(each.kind for each in data.systems)],
        readings=readings(data),
        choices=read_choices(choices),
        provenance=provenance_summary(data.costs),
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
    )
    write_text(target, html)


def to_html(table: Table) -> Markup:
    """A table with a caption, scoped headers, and a spoken text for each arrow."""
    page = template(__package__, "table.html.j2", arrows=ARROWS, with_links=_with_links)
    return Markup(page.render(table=table))


def provenance_summary(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Commits, devices and package versions of all runs. More than one value shows that runs differ."""
    values_of: dict[str, dict[str, None]] = {}
    for record in records:
        edited = " with uncommitted changes" if record["modified"] else ""
        values = {"commit": f"{record['commit'] or 'unknown'}{edited}"}
        values |= {key: record[key] for key in ("platform", "device")} | dict(sorted(record["versions"].items()))
        for key, value in values.items():
            if value is not None:
                values_of.setdefault(key, {})[str(value)] = None
    return [(key, ", ".join(values)) for key, values in values_of.items()]


def _with_links(note: str) -> Markup:
    """The note with "choice C11" as a link to that row of the report."""
    return Markup(re.sub(r"(?<=choice )C\d\d", r'<a href="#\g<0>">\g<0></a>', str(escape(note))))


def _data_uri(png: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(require_file(png).read_bytes()).decode("ascii")


def _top_words(pieces: Sequence[str], weights: np.ndarray) -> str:
    """The tokens with the largest weights as text, for readers who cannot see the shades."""
    totals: dict[str, float] = defaultdict(float)
    for piece, weight in zip(pieces, weights, strict=True):
        totals[piece.strip()] += float(weight)
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:5]
    return ", ".join(f"{word} {100 * weight:.0f}%" for word, weight in ranked)


def read_choices(folder: Path) -> tuple[Choice, ...]:
    """All pages `C*.md` of a folder, by number.

    Raises:
        InputError: a page has another form than "# C01: title" and the headings of `SECTIONS`.
    """
    choices = []
    for path in sorted(Path(folder).glob("C[0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.match(r"# (C\d\d): (.+)\n", text)
        parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
        sections = {heading: body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}
        if title is None or tuple(sections) != SECTIONS:
            raise InputError(
                str(path), expected=f"'# C01: title' and the headings {', '.join(SECTIONS)}",
                got=f"the headings {', '.join(sections) or 'none'}", fix="Give the page the form of its neighbours.",
            )  # fmt: skip
        choices.append(Choice(title[1], title[2], sections))
    return tuple(choices)


def first_paragraph(markdown: str) -> Markup:
    """The first paragraph as HTML. Of Markdown it knows `code` and **bold**."""
    text = str(escape(" ".join(markdown.strip().split("\n\n")[0].split())))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text))
