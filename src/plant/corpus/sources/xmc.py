"""The formats of extreme multi-label classification: PECOS, AttentionXML, XMC-repository JSON, LibMultiLabel.

None publishes a validation split: val is held out of train by the split section's fractions and seed.
"""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

from plant.corpus.documents import Documents, canonical, some
from plant.errors import InputError
from plant.settings import Xmc

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
    """Lines of a text file, plain or gzipped, cut at newlines only (texts may hold other line separators)."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                yield line.decode("utf-8", errors="replace").rstrip("\r\n")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            str(path),
            expected="a complete text file",
            got=f"a damaged one ({type(error).__name__})",
            fix="Download it again.",
        ) from error


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
    from scipy.sparse import csr_matrix, load_npz

    items = folder / "output-items.txt"
    titles = list(_lines(items)) if items.is_file() else []
    named = len(set(titles)) == len(titles)
    splits = {}
    for split, short in (("train", "trn"), ("test", "tst")):
        texts, path = _find(folder, [f"X.{short}.txt"]), _find(folder, [f"Y.{short}.npz"])
        try:
            matrix = csr_matrix(load_npz(path))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(
                str(path), expected="a scipy sparse matrix", got=f"{type(error).__name__}", fix="Download it again."
            ) from error
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
    titles = [str(entry.get("title", "")) for entry in _json_lines(_find(folder, ["lbl.json"]), ("uid",))]
    named = len(set(titles)) == len(titles) and all(titles)
    names = titles if named else [str(i) for i in range(len(titles))]
    splits = {}
    for split, short in (("train", "trn"), ("test", "tst")):
        path = _find(folder, [f"{short}.json"])
        rows: Rows = []
        for entry in _json_lines(path, ("uid", "target_ind")):
            if any(not 0 <= i < len(names) for i in entry["target_ind"]):
                raise InputError(
                    str(path),
                    expected=f"label numbers below {len(names)}",
                    got=f"a larger one; uid: {some([entry['uid']])}",
                    fix="Check that lbl.json belongs to it.",
                )
            text = "\n".join(str(entry[part]) for part in ("title", "content") if entry.get(part))
            rows.append((str(entry["uid"]), text, [names[i] for i in entry["target_ind"]]))
        splits[split] = rows
    return splits, {} if named else {str(i): title for i, title in enumerate(titles)}


def _json_lines(path: Path, keys: Sequence[str]) -> Iterator[dict]:
    for number, line in enumerate(_lines(path), start=1):
        try:
            entry = json.loads(line)
            missing = [key for key in keys if key not in entry]
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{path}, line {number}",
                expected="one JSON object a line",
                got=type(error).__name__,
                fix="Download it again.",
            ) from error
        if missing:
            raise InputError(
                f"{path}, line {number}",
                expected=f"the keys {', '.join(keys)}",
                got=f"none called {', '.join(missing)}",
                fix="Check `format` of the dataset.",
            )
        yield entry


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
