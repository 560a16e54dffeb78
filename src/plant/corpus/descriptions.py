"""Descriptions of labels from a separate file: a table, or the tabular list of ICD-10-CM.

A description may hold several phrases, separated by "; ": a title and its synonyms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from plant.corpus.documents import SourceDocuments
from plant.corpus.tables import text_columns
from plant.ground.errors import InputError
from plant.ground.files import require_file

SEPARATOR = "; "


def read_descriptions(path: Path) -> dict[str, str]:
    """Label -> description.

    Args:
        path: a .parquet, .csv, .tsv or .jsonl file with the columns label and description (a label may have several
            rows), or the .xml file of the tabular list of ICD-10-CM (title and inclusion terms of each code).

    Raises:
        InputError: the file is missing, is damaged, has another form, or has no descriptions.
    """
    rows = _tabular(path) if path.suffix == ".xml" else text_columns(path, ("label", "description")).iter_rows()
    phrases: dict[str, dict[str, None]] = {}
    for label, phrase in rows:
        if label and phrase:
            phrases.setdefault(label, {})[phrase] = None
    if not phrases:
        raise InputError(str(path), expected="labels and descriptions", got="none", fix="Check the file.")
    return {label: SEPARATOR.join(several) for label, several in phrases.items()}


def describe(documents: SourceDocuments, path: Path) -> SourceDocuments:
    """The documents with the descriptions of the file, which replace those of the source.

    The tabular list of ICD-10-CM has codes without their seventh character, while data have codes with it. So a label
    without an entry takes the entry of its longest beginning, which is at most three characters shorter.

    Raises:
        InputError: see `read_descriptions`; or no label of the documents has a description.
    """
    given = read_descriptions(path)
    names = documents.frame["labels"].explode().drop_nulls().str.strip_chars()  # as the corpus writes them
    labels = names.unique(maintain_order=True).to_list()
    cut = 3 if path.suffix == ".xml" else 0
    described = {label: given[known] for label in labels if (known := _listed(label, given, cut)) is not None}
    if not described:
        raise InputError(
            str(path), expected="descriptions of the dataset's labels", got=f"{len(given)} of other labels",
            fix="Write the labels as the documents do.",
        )  # fmt: skip
    return replace(documents, descriptions={**documents.descriptions, **described})


def _listed(label: str, given: Mapping[str, str], cut: int) -> str | None:
    """The longest beginning of a label that has a description and is at most `cut` characters shorter."""
    beginnings = (label[: len(label) - less].rstrip(".") if less else label for less in range(min(cut + 1, len(label))))
    return next((one for one in beginnings if one in given), None)


def _tabular(path: Path) -> Iterator[tuple[str, str]]:
    """(code, phrase) in the order of the list: the title of a code, then its inclusion terms."""
    try:
        root = ElementTree.parse(require_file(path)).getroot()
    except ElementTree.ParseError as error:
        raise InputError(
            str(path), expected="the tabular list of ICD-10-CM as XML", got=f"no XML ({error})",
            fix="Take the file as its publisher (CDC, CMS) gives it.",
        ) from None  # fmt: skip
    for code in root.iter("diag"):
        name = (code.findtext("name") or "").strip()
        yield name, (code.findtext("desc") or "").strip()
        for note in code.iterfind("inclusionTerm/note"):
            yield name, (note.text or "").strip()
