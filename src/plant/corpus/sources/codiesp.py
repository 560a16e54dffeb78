"""CodiEsp (CLEF eHealth 2020): the published archive or its folder, with its own train, dev and test splits."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import polars as pl

from plant.corpus.documents import SourceDocuments, canonical, some
from plant.corpus.sources._archive import read_files
from plant.ground.errors import InputError
from plant.ground.settings import CodiEsp

FOLDERS = {"train": "train", "dev": "val", "test": "test"}
TEXTS = {"en": "text_files_en", "es": "text_files"}
KINDS = {"D": "DIAGNOSTICO", "P": "PROCEDIMIENTO"}
FIX = "Take the archive as published."


def read(dataset: CodiEsp, path: Path) -> SourceDocuments:
    """Clinical cases with ICD-10-CM (D) and/or ICD-10-PCS (P) codes.

    The tables `{split}{D,P}.tsv` have the columns document and code. Codes are lower case there and become upper case.
    Their dots are kept (PCS codes have none and may be cut to their first characters).

    Raises:
        InputError: the archive is damaged, a file is missing, or codes name documents without text.
    """
    texts = TEXTS[dataset.language]
    files = _files(path, texts)
    kinds = [kind for kind in KINDS if dataset.code_types in (kind, "both")]
    return SourceDocuments(pl.concat([_read_split(files, folder, texts, kinds, path) for folder in FOLDERS]))


def read_mentions(dataset: CodiEsp, path: Path) -> pl.DataFrame:
    """The words that the coders marked in the Spanish training texts as the reason for each code (`trainX.tsv`).

    Columns document_id, label and mention, in the order of the file. It joins the parts of a mention with gaps.
    """
    rows = _marked_rows(dataset, path, "train", "document, kind, code, mention")
    chosen = [(row[0], row[2].strip().upper(), row[3].strip()) for row in rows]
    return pl.DataFrame(chosen, schema=dict.fromkeys(("document_id", "label", "mention"), pl.String), orient="row")


def read_marks(dataset: CodiEsp, path: Path) -> pl.DataFrame:
    """Where the coders marked the words of each code in the Spanish TEST texts (`testX.tsv`).

    Columns document_id, label, start and end, in the order of the file: characters of the text as published. A mention
    with gaps has one row for each part. Empty parts are left out.
    """
    rows = []
    for row in _marked_rows(dataset, path, "test", "document, kind, code, mention, position"):
        for part in row[4].split(";"):
            try:
                start, end = map(int, part.split())
            except ValueError:
                got = "other text"
                raise InputError(str(path), expected="positions `start end` in testX.tsv", got=got, fix=FIX) from None
            if start < end:
                rows.append((row[0], row[2].strip().upper(), start, end))
    schema = {"document_id": pl.String, "label": pl.String, "start": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _marked_rows(dataset: CodiEsp, path: Path, folder: str, columns: str) -> list[list[str]]:
    """The rows of `{folder}X.tsv` with a code of the dataset's kinds."""
    name = f"{folder}/{folder}X.tsv"
    files = _files(path, "")
    if name not in files:
        raise InputError(str(path), expected=name, got="an archive without it", fix=FIX)
    kinds = set(KINDS.values()) if dataset.code_types == "both" else {KINDS[dataset.code_types]}
    return [row for row in _rows(files[name], name, path, columns) if row[1] in kinds]


def _files(path: Path, texts: str) -> dict[str, bytes]:
    """Contents of the tables and of the texts in the folders called `texts`. Paths start at the folder of the split."""

    def wanted(inside: PurePosixPath) -> bool:
        return inside.suffix == ".tsv" or (inside.suffix == ".txt" and inside.parent.name == texts)

    def from_split(inside: PurePosixPath) -> str:  # the outer folder has the name of the version
        start = next((i for i, part in enumerate(inside.parts) if part in FOLDERS), 0)
        return "/".join(inside.parts[start:])

    expected, fix = "the CodiEsp zip or its folder", "Download it from Zenodo (record 3837305)."
    return {from_split(inside): content for inside, content in read_files(path, wanted, expected=expected, fix=fix)}


def _decoded(content: bytes, name: str, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        got = "bytes of another encoding (Latin-1?)"
        raise InputError(str(path), expected=f"{name} in UTF-8", got=got, fix=FIX) from None


def _rows(content: bytes, name: str, path: Path, columns: str) -> list[list[str]]:
    """The rows of a table without a header. Each has at least the cells that `columns` lists."""
    rows = [line.split("\t") for line in _decoded(content, name, path).splitlines() if line.strip()]
    if any(len(row) <= columns.count(",") for row in rows):
        raise InputError(str(path), expected=f"{columns} in every line of {name}", got="shorter lines", fix=FIX)
    return rows


def _read_split(files: dict[str, bytes], folder: str, language: str, kinds: list[str], path: Path) -> pl.DataFrame:
    prefix = f"{folder}/{language}/"
    names = sorted(name for name in files if name.startswith(prefix))
    texts = {PurePosixPath(name).stem: _decoded(files[name], f"{prefix}*.txt", path) for name in names}
    labels: dict[str, list[str]] = {document: [] for document in texts}
    for name in (f"{folder}/{folder}{kind}.tsv" for kind in kinds):
        if name not in files or not texts:
            expected, got = f"{name} and {prefix}*.txt", f"{len(texts)} texts there"
            raise InputError(str(path), expected=expected, got=got, fix=FIX)
        rows = _rows(files[name], name, path, "document, code")
        if unknown := sorted({row[0] for row in rows}.difference(texts)):
            got = f"codes of documents without text: {some(unknown)}"
            raise InputError(str(path), expected=f"a text for every document of {name}", got=got, fix=FIX)
        for document, code, *_ in rows:
            labels[document].append(code.strip().upper())
    return canonical(
        [
            {"document_id": one, "group_id": one, "text": text, "labels": labels[one], "split": FOLDERS[folder]}
            for one, text in texts.items()
        ]
    )
