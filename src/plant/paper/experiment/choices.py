"""The pages of docs/choices: what the paper leaves open, and what was chosen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from plant.ground.errors import InputError

SECTIONS = (
    "Paper says", "Gap", "Options", "Chosen", "Evidence", "Measured effect", "Config key", "Test", "Status",
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """One page. `sections` holds the Markdown below each heading of `SECTIONS`."""

    number: str
    title: str
    sections: dict[str, str]


def read_choices(folder: Path) -> tuple[Choice, ...]:
    """All pages `C*.md` of a folder, by number.

    Raises:
        InputError: a page has another form than "# C01: title" and the headings of `SECTIONS`.
    """
    return tuple(_read(path) for path in sorted(Path(folder).glob("C[0-9][0-9]-*.md")))


def first_paragraph(markdown: str) -> Markup:
    """The first paragraph as HTML. Of Markdown it knows `code` and **bold**."""
    text = str(escape(" ".join(markdown.strip().split("\n\n")[0].split())))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text))


def _read(path: Path) -> Choice:
    text = path.read_text(encoding="utf-8")
    title = re.match(r"# (C\d\d): (.+)\n", text)
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    sections = {heading: body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}
    if title is None or tuple(sections) != SECTIONS:
        raise InputError(
            str(path), expected=f"'# C01: title' and the headings {', '.join(SECTIONS)}",
            got=f"the headings {', '.join(sections) or 'none'}", fix="Give the page the form of its neighbours.",
        )  # fmt: skip
    return Choice(title[1], title[2], sections)
