"""Predictions for people and programs: a table, JSON lines, or a page with highlighted reasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path

from plant.ground.errors import printable
from plant.serving.predict import LabelScore, Prediction, Reason

PAGE = Path(__file__).with_name("page.html")
"""The page of `plant serve`; a page of labels has its style."""
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Labels</title><style>{style}</style></head><body>
"""
TAIL = "</body></html>\n"
WIDEST = 60
"""Letters of a label that the table keeps room for."""
COLUMNS = "<thead><tr><th>label</th><th>score</th><th>threshold</th><th>reasons</th></tr></thead>"


def as_table(found: Iterable[Prediction]) -> Iterator[str]:
    """Lines of a table: document, label, score, threshold and reasons. The first document sets the width of labels."""
    width = 0
    for one in found:
        if not width:
            width = max([16, *(min(len(label.label), WIDEST) for label in one.labels)])
            yield f"{'document':<16} {'label':<{width}} {'score':>8} {'threshold':>9}  {'description':<32} reasons\n"
        for label in one.labels or (None,):
            yield printable(_row(one.id, label, width)).replace("\n", "\\n") + "\n"  # a name may hold a line end


def _row(name: str, label: LabelScore | None, width: int) -> str:
    if label is None:
        return f"{name:<16} (none above the threshold)"
    words = ", ".join(f"{reason.word} {reason.weight:+.2f}" for reason in label.reasons)
    description = (label.description or "")[:32]
    numbers = f"{label.score:>8.3f} {label.threshold:>9.3f}"
    return f"{name:<16} {label.label:<{width}} {numbers}  {description:<32} {words}".rstrip()


def as_json_lines(found: Iterable[Prediction]) -> Iterator[str]:
    """One JSON object a document."""
    for one in found:
        yield json.dumps(one.as_dict(), ensure_ascii=False) + "\n"


def as_html(found: Iterable[Prediction]) -> Iterator[str]:
    """One page that needs no other file. The texts are in it."""
    yield HEAD.format(style=PAGE.read_text(encoding="utf-8").partition("<style>")[2].partition("</style>")[0])
    for one in found:
        rows = "".join(_html_row(label) for label in one.labels)
        table = f"<table>{COLUMNS}<tbody>{rows}</tbody></table>" if rows else "<p>No label is above the threshold.</p>"
        text = highlighted(one.text, [reason for label in one.labels for reason in label.reasons])
        yield f'<section><h2>{escape(one.id)}</h2>{table}<p class="read" dir="auto">{text}</p></section>\n'
    yield TAIL


def _html_row(label: LabelScore) -> str:
    words = ", ".join(f"<bdi>{escape(reason.word)}</bdi> {reason.weight:+.2f}" for reason in label.reasons)
    name = escape(label.label if label.description is None else f"{label.label}: {label.description}")
    numbers = (("score", label.score), ("threshold", label.threshold))
    cells = "".join(f'<td class="number" data-name="{which}">{value:.3f}</td>' for which, value in numbers)
    below = "" if label.predicted else ' class="below"'
    return f'<tr{below}><td>{name}</td>{cells}<td class="reasons">{words}</td></tr>'


def highlighted(text: str, reasons: Iterable[Reason]) -> str:
    """The text as HTML with its reasons marked; where two overlap, the stronger one is.

    >>> highlighted("a < b", [Reason("b", 1.0, ((4, 5),))])
    'a &lt; <mark title="b +1.00">b</mark>'
    """
    taken, marked = bytearray(len(text)), []
    for reason in sorted(reasons, key=lambda each: -abs(each.weight)):
        for start, end in reason.spans:
            if not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                marked.append((start, end, reason))
    parts, place = [], 0
    for start, end, reason in sorted(marked, key=lambda each: each[0]):
        against = "" if reason.weight >= 0 else ' class="against"'
        title = escape(f"{reason.word} {reason.weight:+.2f}")
        parts.append(f'{escape(text[place:start])}<mark{against} title="{title}">{escape(text[start:end])}</mark>')
        place = end
    return "".join([*parts, escape(text[place:])])


FORMATS: dict[str, Callable[[Iterable[Prediction]], Iterator[str]]] = {
    "table": as_table, "jsonl": as_json_lines, "html": as_html,
}  # fmt: skip
