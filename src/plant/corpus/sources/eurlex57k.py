"""EURLEX57K (Chalkidis et al., ACL 2019): the folder or archive with JSON files in train/, dev/ and test/."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from plant.corpus.descriptions import SEPARATOR
from plant.corpus.documents import SourceDocuments, canonical
from plant.corpus.sources._archive import read_files
from plant.ground.errors import InputError
from plant.ground.settings import Eurlex57k

FOLDERS = {"train": "train", "dev": "val", "test": "test"}
LABELS = "EURLEX57K.json"
SECTIONS = ("title", "header", "recitals", "main_body", "attachments")


def read(_: Eurlex57k, path: Path) -> SourceDocuments:
    """EU laws with their EUROVOC concepts.

    The text is the title, header, recitals, main body and attachments, joined by newlines. The loader of the authors
    leaves out the title, which is in the header too, and writes the attachments with one character per line by mistake.
    Labels are concept ids. If `EURLEX57K.json` exists, it describes them: the label, then its synonyms.

    Raises:
        InputError: nothing is there, the archive is damaged, a split has no documents, or a file has another form.
    """
    rows: list[dict[str, Any]] = []
    descriptions: dict[str, str] = {}
    fix = "Check the path, or download the archive again."
    files = read_files(path, _is_read, expected="the EURLEX57K folder or its .tar, .tar.gz, .tar.xz", fix=fix)
    for inside, content in sorted(files, key=lambda file: str(file[0])):
        if inside.name == LABELS:
            descriptions = _descriptions(str(inside), content)
        else:
            rows.append(_row(str(inside), content, FOLDERS[inside.parent.name]))
    missing = [folder for folder, split in FOLDERS.items() if not any(row["split"] == split for row in rows)]
    if missing:
        raise InputError(
            str(path), expected="JSON files in train/, dev/ and test/", got=f"none in {', '.join(missing)}",
            fix="Unpack the authors' archive as it is, or name the archive itself.",
        )  # fmt: skip
    return SourceDocuments(canonical(rows), descriptions)


def _is_read(inside: PurePosixPath) -> bool:
    return inside.suffix == ".json" and (inside.name == LABELS or inside.parent.name in FOLDERS)


def _descriptions(name: str, content: bytes) -> dict[str, str]:
    """Concept id -> its label, then its synonyms."""
    try:
        entries = json.loads(content).items()
        return {
            one: SEPARATOR.join([entry["label"], *_strings(entry.get("alt_labels") or [])]) for one, entry in entries
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            name, expected="JSON with label and alt_labels of every concept",
            got=f"another form ({type(error).__name__})", fix="Take the file as published, or leave it out.",
        ) from None  # fmt: skip


def _row(name: str, content: bytes, split: str) -> dict[str, Any]:
    try:
        law = json.loads(content)
        parts = [law[section] or "" for section in SECTIONS]
        text = "\n".join(part if isinstance(part, str) else "\n".join(_strings(part)) for part in parts)
        [identity], labels = _strings([law["celex_id"]]), _strings(law["concepts"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            name, fix="Take the archive as published.", got=f"another form ({type(error).__name__})",
            expected=f"JSON with celex_id (text), concepts (a list of texts), {', '.join(SECTIONS)} (texts or lists)",
        ) from None  # fmt: skip
    return {"document_id": identity, "group_id": identity, "text": text, "labels": labels, "split": split}


def _strings(values: Any) -> list[str]:
    """A list of strings, unchanged. A single string is refused, because Python treats it as a list of characters."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("expected a list of strings")
    return values
