"""CodiEsp (CLEF eHealth 2020): the published zip or its folder. Train, dev and test are its own."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import polars as pl

from plant.corpus.documents import Documents, canonical, some
from plant.corpus.sources.archive import is_litter
from plant.ground.errors import InputError
from plant.ground.files import absence
from plant.ground.settings import CodiEsp

FOLDERS = {"train": "train", "dev": "val", "test": "test"}
TEXTS = {"en": "text_files_en", "es": "text_files"}
_KINDS = {"D": "DIAGNOSTICO", "P": "PROCEDIMIENTO"}


def read(dataset: CodiEsp, path: Path) -> Documents:
    """Clinical cases with ICD-10-CM (D) and/or ICD-10-PCS (P) codes.

    `{split}{D,P}.tsv` holds document, code; codes are lower case there and become upper case here. They keep the
    dots of the file (PCS codes have none and may be cut to their first characters).

    Raises:
        InputError: the zip is damaged, a file is missing, or codes name documents without text.
    """
    with _opened(path) as files:
        return _read(dataset, files, path)


def read_mentions(dataset: CodiEsp, path: Path) -> pl.DataFrame:
    """The words that the coders marked in the Spanish training texts as the reason of each code (`trainX.tsv`).

    Returns:
        document_id, label, mention, in the order of the file. The parts of a mention with gaps are joined there.

    Raises:
        InputError: see `read`.
    """
    name = "train/trainX.tsv"
    with _opened(path) as files:
        if name not in files:
            raise InputError(
                str(path), expected=name, got="an archive without it", fix="Take the archive as published."
            )
        rows = [line.split("\t") for line in _decoded(files[name](), name, path).splitlines() if line.strip()]
    if any(len(row) < 4 for row in rows):
        raise InputError(
            str(path), expected=f"document, kind, code, mention in every line of {name}", got="shorter lines",
            fix="Take the archive as published.",
        )  # fmt: skip
    kinds = set(_KINDS.values()) if dataset.code_types == "both" else {_KINDS[dataset.code_types]}
    chosen = [(row[0], row[2].strip().upper(), row[3].strip()) for row in rows if row[1] in kinds]
    return pl.DataFrame(chosen, schema=dict.fromkeys(("document_id", "label", "mention"), pl.String), orient="row")


@contextmanager
def _opened(path: Path) -> Iterator[dict[str, Callable[[], bytes]]]:
    """Readers by path within the archive, from the split's folder on."""
    if path.is_dir():
        files = {one.relative_to(path).as_posix(): one for one in sorted(path.rglob("*")) if one.is_file()}
        yield {_tail(name): one.read_bytes for name, one in files.items() if not is_litter(name)}
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and not is_litter(name)]
            yield {_tail(name): _reader(archive, name) for name in names}
    except (zipfile.BadZipFile, OSError) as error:
        got = absence(path) if not path.exists() else f"a damaged or other file ({error})"
        raise InputError(
            str(path),
            expected="the CodiEsp zip or its folder",
            got=got,
            fix="Download it from Zenodo (record 3837305).",
        ) from error


def _reader(archive: zipfile.ZipFile, name: str) -> Callable[[], bytes]:
    return lambda: archive.read(name)


def _tail(name: str) -> str:
    """The path from its split folder on; the outer folder is named after the version."""
    parts = PurePosixPath(name).parts
    start = next((i for i, part in enumerate(parts) if part in FOLDERS), 0)
    return "/".join(parts[start:])


def _decoded(content: bytes, name: str, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            str(path), expected=f"{name} in UTF-8", got="bytes of another encoding (Latin-1?)",
            fix="Take the archive as published.",
        ) from None  # fmt: skip


def _read(dataset: CodiEsp, files: dict[str, Callable[[], bytes]], path: Path) -> Documents:
    kinds = ["D", "P"] if dataset.code_types == "both" else [dataset.code_types]
    return Documents(pl.concat([_read_split(dataset, files, folder, kinds, path) for folder in FOLDERS]))


def _read_split(
    dataset: CodiEsp, files: dict[str, Callable[[], bytes]], folder: str, kinds: Sequence[str], path: Path
) -> pl.DataFrame:
    prefix = f"{folder}/{TEXTS[dataset.language]}/"
    texts = {
        name[len(prefix) : -4]: name for name in sorted(files) if name.startswith(prefix) and name.endswith(".txt")
    }
    labels: dict[str, list[str]] = {document: [] for document in texts}
    for kind in kinds:
        name = f"{folder}/{folder}{kind}.tsv"
        if name not in files or not texts:
            raise InputError(
                str(path),
                expected=f"{name} and {prefix}*.txt",
                got=f"{len(texts)} texts there",
                fix="Take the archive as published.",
            )
        rows = [line.split("\t") for line in _decoded(files[name](), name, path).splitlines() if line.strip()]
        unknown = sorted({row[0] for row in rows}.difference(texts))
        if unknown or any(len(row) < 2 for row in rows):
            raise InputError(
                str(path),
                expected=f"document, code in every line of {name}",
                got=f"codes of documents without text: {some(unknown)}" if unknown else "shorter lines",
                fix="Take the archive as published.",
            )
        for document, code, *_ in rows:
            labels[document].append(code.strip().upper())
    contents = [_decoded(files[name](), f"{prefix}*.txt", path) for name in texts.values()]
    return canonical(
        pl.DataFrame(
            {
                "document_id": list(texts),
                "group_id": list(texts),
                "text": contents,
                "labels": list(labels.values()),
                "split": FOLDERS[folder],
            },
            schema_overrides={"labels": pl.List(pl.String)},
        )
    )
