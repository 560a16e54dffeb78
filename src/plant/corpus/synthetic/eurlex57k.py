"""Writes a simulation as the files of EURLEX57K (Chalkidis et al. 2019), with its own split and label texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plant.corpus.simulation import simulate
from plant.ground.files import atomic_path
from plant.ground.settings import Generate

SPLITS = ("train",) * 8 + ("dev", "test")
"""Dealt in turn: about the shares of the published corpus (45, 6 and 6 of 57)."""
LABELS = "EURLEX57K.json"


def write(generate: Generate, out: Path) -> None:
    """Write dataset/{train,dev,test}/<celex id>.json and EURLEX57K.json, the label texts, in `out`.

    A law's title is the first line of the text, its header the second (null where there is none), its recitals the
    third; the lines after it are the articles of the main body.
    """
    simulation = simulate(generate)
    concepts = {code: str(100 + 13 * place) for place, code in enumerate(sorted(simulation.terms))}
    for place, (admission, text) in enumerate(simulation.texts().items()):
        split, celex = SPLITS[place % len(SPLITS)], f"3{1958 + place % 60}D{admission}"
        law = _law(celex, text, [concepts[code] for code in simulation.codes[admission]])
        _write(out / "dataset" / split / f"{celex}.json", law)
    labels = {
        concepts[code]: {
            "concept_id": concepts[code],
            "label": f"invented concept {terms[0]}",
            "alt_labels": list(terms[1:]),
            "parents": [],
        }
        for code, terms in simulation.terms.items()
    }
    _write(out / LABELS, labels)


def _law(celex: str, text: str, concepts: list[str]) -> dict[str, Any]:
    title, header, recitals, *articles = [*text.splitlines(), "", ""]
    return {
        "celex_id": celex,
        "uri": f"http://publications.europa.eu/resource/cellar/{celex}",
        "type": "Decision",
        "concepts": concepts,
        "title": title,
        "header": header or None,
        "recitals": recitals,
        "main_body": [article for article in articles if article],
        "attachments": "Done at Nowhere.",
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(content), encoding="utf-8")
