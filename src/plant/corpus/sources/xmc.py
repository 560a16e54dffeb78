"""The formats of extreme multi-label classification: PECOS, AttentionXML, XMC-repository JSON, LibMultiLabel.

None publishes a validation split: val is held out of train by the split section's fractions and seed.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plant.corpus.documents import Documents, canonical
from plant.corpus.sources.lines import json_objects, lines
from plant.ground.errors import InputError
from plant.ground.settings import Xmc

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)
"""What numpy and scipy raise on a damaged file."""
Rows = list[tuple[str, str, list[str]]]  # id, text, labels


def read(dataset: Xmc, folder: Path) -> Documents:
    """Read the folder in the format that `dataset.format` names.

    Documents without an id of their own are named by split and line, from 0: train-0, train-1, ...

    Raises:
        InputError: a file is missing or damaged, or texts and labels differ in number.
    """
    reader: Callable[[Path], tuple[dict[str, Rows], dict[str, str]]] = {
        "pecos": _pecos,
        "attentionxml": _attentionxml,
        "xmc_json": _xmc_json,
        "libmultilabel": _libmultilabel,
    }[dataset.format]
    splits, descriptions = reader(folder)
    frames = [_frame(rows, split) for split, rows in splits.items()]
    return Documents(pl.concat(frames), descriptions)


def _frame(rows: Rows, split: str) -> pl.DataFrame:
    ids, texts, labels = ([row[i] for row in rows] for i in range(3))
    return canonical(
        pl.DataFrame(
            {"document_id": ids, "group_id": ids, "text": texts, "labels": labels, "split": [split] * len(rows)},
            schema_overrides={"labels": pl.List(pl.String), "text": pl.String},
        )
    )


def _find(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    got = "no such file there" if folder.is_dir() else "no such folder"
    raise InputError(str(folder), expected=" or ".join(names), got=got, fix="Check `path` and `format` of the dataset.")


def _lines(path: Path) -> Iterator[str]:
    """Lines without their ends; bytes that are not UTF-8 are replaced."""
    for line in lines(path):
        yield line.decode("utf-8", errors="replace").removeprefix("\ufeff").rstrip("\r\n")


def _pair(split: str, texts: Sequence[str], labels: Sequence[list[str]], *, path: Path) -> Rows:
    if len(texts) != len(labels):
        raise InputError(
            str(path),
            expected=f"one line a document ({len(texts)} texts)",
            got=f"labels of {len(labels)} documents",
            fix="Check that the files belong together.",
        )
    return [(f"{split}-{i}", text, own) for i, (text, own) in enumerate(zip(texts, labels, strict=True))]


def _pecos(folder: Path) -> tuple[dict[str, Rows], dict[str, str]]:
    """X.{trn,tst}.txt, Y.{trn,tst}.npz (scipy CSR) and, optionally, output-items.txt (a label a line)."""
    items = folder / "output-items.txt"
    titles = list(_lines(items)) if items.is_file() else []
    named = len(set(titles)) == len(titles)
    splits = {}
    for split, short in (("train", "trn"), ("test", "tst")):
        texts, path = _find(folder, [f"X.{short}.txt"]), _find(folder, [f"Y.{short}.npz"])
        matrix = _matrix(path)
        if titles and len(titles) != matrix.shape[1]:
            raise InputError(
                str(items),
                expected=f"{matrix.shape[1]} lines, one a label",
                got=str(len(titles)),
                fix="Check that the files belong together.",
            )
        matrix.eliminate_zeros()
        names = titles if titles and named else [str(i) for i in range(matrix.shape[1])]
        labels = [[names[j] for j in matrix.indices[a:b]] for a, b in pairwise(matrix.indptr)]
        splits[split] = _pair(split, list(_lines(texts)), labels, path=path)
    return splits, {str(i): title for i, title in enumerate(titles)} if not named else {}


def _matrix(path: Path) -> csr_matrix:
    """The matrix of a .npz file, every index checked: scipy itself reads beyond the memory of a damaged one."""
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


def _attentionxml(folder: Path) -> tuple[dict[str, Rows], dict[str, str]]:
    """{train,test}_raw_texts.txt or {train,test}_texts.txt, and {train,test}_labels.txt (separated by spaces)."""
    splits = {}
    for split in ("train", "test"):
        texts = list(_lines(_find(folder, [f"{split}_raw_texts.txt", f"{split}_texts.txt"])))
        path = _find(folder, [f"{split}_labels.txt"])
        splits[split] = _pair(split, texts, [line.split() for line in _lines(path)], path=path)
    return splits, {}


def _xmc_json(folder: Path) -> tuple[dict[str, Rows], dict[str, str]]:
    """{trn,tst}.json[.gz] with uid, title, content, target_ind, and lbl.json[.gz] with uid, title."""
    path = _find(folder, ["lbl.json"])
    titles = [str(entry.get("title", "")) for entry in json_objects(enumerate(_lines(path), 1), path, ("uid",))]
    named = len(set(titles)) == len(titles) and all(titles)
    names = titles if named else [str(i) for i in range(len(titles))]
    splits = {}
    for split, short in (("train", "trn"), ("test", "tst")):
        path = _find(folder, [f"{short}.json"])
        rows: Rows = []
        for number, entry in enumerate(json_objects(enumerate(_lines(path), 1), path, ("uid", "target_ind")), 1):
            numbers, parts = entry["target_ind"], [entry[part] for part in ("title", "content") if entry.get(part)]
            if not isinstance(numbers, list) or any(type(i) is not int or not 0 <= i < len(names) for i in numbers):
                raise InputError(
                    f"{path}, line {number}",
                    expected=f"target_ind as a list of label numbers below {len(names)}",
                    got="other values",
                    fix="Check that lbl.json belongs to it.",
                )
            if not isinstance(entry["uid"], str | int) or not all(isinstance(part, str) for part in parts):
                raise InputError(
                    f"{path}, line {number}", expected="uid, title and content as text", got="other values",
                    fix="Check `format` of the dataset.",
                )  # fmt: skip
            rows.append((str(entry["uid"]), "\n".join(parts), [names[i] for i in numbers]))
        splits[split] = rows
    return splits, {} if named else {str(i): title for i, title in enumerate(titles)}


def _libmultilabel(folder: Path) -> tuple[dict[str, Rows], dict[str, str]]:
    """train.txt, test.txt and, optionally, valid.txt: ID<TAB>labels<TAB>text, or labels<TAB>text."""
    files = {"train": _find(folder, ["train.txt"]), "test": _find(folder, ["test.txt"])}
    if (folder / "valid.txt").is_file():
        files["val"] = folder / "valid.txt"
    splits = {}
    for split, path in files.items():
        rows: Rows = []
        for number, line in enumerate(_lines(path)):
            *identity, labels, text = line.split("\t") if "\t" in line else ("", "", "")
            if len(identity) > 1 or not text:
                raise InputError(
                    f"{path}, line {number + 1}",
                    expected="ID<TAB>labels<TAB>text",
                    got=f"{line.count(chr(9)) + 1} column(s) or no text",
                    fix="Check `format`.",
                )
            rows.append((f"{split}-{identity[0] if identity else number}", text, labels.split()))
        splits[split] = rows
    return splits, {}
