"""The formats of extreme multi-label classification: PECOS, AttentionXML, XMC-repository JSON, LibMultiLabel.

Only LibMultiLabel may have a validation split. For the others, val is held out of train (section `split`).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plant.corpus.documents import SourceDocuments, canonical
from plant.corpus.tables import json_objects, text_lines
from plant.ground.errors import InputError
from plant.ground.settings import Xmc

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)
"""What numpy and scipy raise on a damaged file."""
SHORT = {"train": "trn", "test": "tst"}
TOGETHER = "Check that the files belong together."
Rows = list[tuple[str, str, list[str]]]
"""Id, text and labels of each document."""
Parsed = tuple[dict[str, Rows], dict[str, str]]
"""The rows of each split, and the descriptions of labels."""


def read(dataset: Xmc, folder: Path) -> SourceDocuments:
    """Read the folder in the format that `dataset.format` names.

    A document without an id gets the split and its line number from 0 as id: train-0, train-1, ...

    Raises:
        InputError: a file is missing, damaged or not in UTF-8, texts and labels differ in number, or a split has no
            document.
    """
    readers = {
        "pecos": _pecos, "attentionxml": _attentionxml, "xmc_json": _xmc_json, "libmultilabel": _libmultilabel
    }  # fmt: skip
    splits, descriptions = readers[dataset.format](folder)
    if empty := [split for split, rows in splits.items() if not rows]:  # else a part of train would take its place
        fix = "Check the files of this split; download them again."
        raise InputError(str(folder), expected=f"documents in {', '.join(empty)}", got="none", fix=fix)
    return SourceDocuments(pl.concat([_frame(rows, split) for split, rows in splits.items()]), descriptions)


def _frame(rows: Rows, split: str) -> pl.DataFrame:
    ids, texts, labels = ([row[i] for row in rows] for i in range(3))
    return canonical(
        {"document_id": ids, "group_id": ids, "text": texts, "labels": labels, "split": [split] * len(rows)}
    )


def _find(folder: Path, *names: str) -> Path:
    """The first of the files that exists, plain or as .gz."""
    for name in names:
        if (path := _optional(folder, name)) is not None:
            return path
    got = "no such file there" if folder.is_dir() else "no such folder"
    raise InputError(str(folder), expected=" or ".join(names), got=got, fix="Check `path` and `format` of the dataset.")


def _optional(folder: Path, name: str) -> Path | None:
    """A file that may be missing, plain or as .gz."""
    return next((one for one in (folder / name, folder / f"{name}.gz") if one.is_file()), None)


def _lines(path: Path) -> list[str]:
    """Lines without their ends."""
    return [line.rstrip("\r\n") for line in text_lines(path)]


def _numbered(split: str, texts: list[str], labels: Iterable[list[str]], path: Path) -> Rows:
    """Rows with the line number as id. `path` is the file of the labels."""
    labels = list(labels)
    if len(texts) != len(labels):
        expected, got = f"one line a document ({len(texts)} texts)", f"labels of {len(labels)} documents"
        raise InputError(str(path), expected=expected, got=got, fix=TOGETHER)
    return [(f"{split}-{i}", text, own) for i, (text, own) in enumerate(zip(texts, labels, strict=True))]


def _names(titles: list[str], labels: int) -> tuple[list[str], dict[str, str]]:
    """Names and descriptions of the labels. Titles are names if all differ; else they describe numbered labels.

    They are compared without white space around them, because the corpus removes it from names.
    """
    titles = [title.strip() for title in titles]
    if len(set(titles)) == len(titles) == labels and all(titles):
        return titles, {}
    return [str(i) for i in range(labels)], {str(i): title for i, title in enumerate(titles)}


def _pecos(folder: Path) -> Parsed:
    """X.{trn,tst}.txt, Y.{trn,tst}.npz (scipy CSR) and, optionally, output-items.txt with one label per line."""
    items = _optional(folder, "output-items.txt")
    titles = _lines(items) if items else []
    splits: dict[str, Rows] = {}
    descriptions: dict[str, str] = {}
    for split, short in SHORT.items():
        texts, path = _find(folder, f"X.{short}.txt"), _find(folder, f"Y.{short}.npz")
        matrix = _matrix(path)
        width = matrix.shape[1]
        if titles and len(titles) != width:
            raise InputError(str(items), expected=f"{width} lines, one a label", got=str(len(titles)), fix=TOGETHER)
        matrix.eliminate_zeros()
        names, descriptions = _names(titles, width)
        labels = ([names[j] for j in matrix.indices[a:b]] for a, b in pairwise(matrix.indptr))
        splits[split] = _numbered(split, _lines(texts), labels, path)
    return splits, descriptions


def _matrix(path: Path) -> csr_matrix:
    """The matrix of a .npz file. Every index is checked: scipy itself reads outside its memory in a damaged matrix."""
    from scipy.sparse import csr_matrix, load_npz

    try:
        with np.load(path, allow_pickle=False) as arrays:
            kinds = {name: array.dtype.kind for name, array in arrays.items()}
            if kinds["data"] not in "biuf" or not {kinds["indices"], kinds["indptr"], kinds["shape"]} <= {"i", "u"}:
                raise ValueError("data must be numbers, indices and shape whole ones")
        matrix = load_npz(path)
        matrix.check_format(full_check=True)
        return csr_matrix(matrix)
    except UNREADABLE as error:
        raise InputError(
            str(path), expected="a scipy sparse matrix in CSR format, documents by labels",
            got=f"another or a damaged file ({error})"[:200], fix="Download it again.",
        ) from error  # fmt: skip


def _attentionxml(folder: Path) -> Parsed:
    """{train,test}_raw_texts.txt or {train,test}_texts.txt, and {train,test}_labels.txt (separated by spaces)."""
    splits = {}
    for split in SHORT:
        texts = _lines(_find(folder, f"{split}_raw_texts.txt", f"{split}_texts.txt"))
        path = _find(folder, f"{split}_labels.txt")
        splits[split] = _numbered(split, texts, map(str.split, _lines(path)), path)
    return splits, {}


def _xmc_json(folder: Path) -> Parsed:
    """{trn,tst}.json[.gz] with uid, title, content, target_ind, and lbl.json[.gz] with uid, title."""
    titles = [
        "" if entry.get("title") is None else str(entry["title"])
        for _, entry in json_objects(_find(folder, "lbl.json"), ("uid",))
    ]
    names, descriptions = _names(titles, len(titles))
    splits: dict[str, Rows] = {split: [] for split in SHORT}
    for split, short in SHORT.items():
        path = _find(folder, f"{short}.json")
        for number, entry in json_objects(path, ("uid", "target_ind")):
            where, own = f"{path}, line {number}", entry["target_ind"]
            parts = [entry[part] for part in ("title", "content") if entry.get(part)]
            if not isinstance(own, list) or any(type(i) is not int or not 0 <= i < len(names) for i in own):
                raise InputError(
                    where, expected=f"target_ind as a list of label numbers below {len(names)}", got="other values",
                    fix="Check that lbl.json belongs to it.",
                )  # fmt: skip
            if not isinstance(entry["uid"], str | int) or not all(isinstance(part, str) for part in parts):
                fix = "Check `format` of the dataset."
                raise InputError(where, expected="uid, title and content as text", got="other values", fix=fix)
            splits[split].append((str(entry["uid"]), "\n".join(parts), [names[i] for i in own]))
    return splits, descriptions


def _libmultilabel(folder: Path) -> Parsed:
    """train.txt, test.txt and, optionally, valid.txt: ID<TAB>labels<TAB>text, or labels<TAB>text."""
    files = {"train": _find(folder, "train.txt"), "test": _find(folder, "test.txt")}
    if (valid := _optional(folder, "valid.txt")) is not None:
        files["val"] = valid
    splits: dict[str, Rows] = {}
    for split, path in files.items():
        splits[split] = []
        for number, line in enumerate(_lines(path)):
            *identity, labels, text = line.split("\t") if "\t" in line else ("", "", "")
            if len(identity) > 1 or not text:
                raise InputError(
                    f"{path}, line {number + 1}", expected="ID<TAB>labels<TAB>text",
                    got=f"{line.count(chr(9)) + 1} column(s) or no text", fix="Check `format`.",
                )  # fmt: skip
            splits[split].append((f"{split}-{identity[0] if identity else number}", text, labels.split()))
    return splits, {}
