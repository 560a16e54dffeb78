"""Reads the files of a corpus as NumPy arrays, for relevance and for the rooms that train."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from plant.ground.files import read_arrays, require_file

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of all documents (train, then val, then test) as a CSR matrix.

    Attributes:
        indptr: int64[N+1].
        indices: int32, label ids, ascending in a row, 0 <= id < L.
        split_sizes: int64[3], number of documents in train, val and test.
        counts: int64[3, L], number of documents with each label in train, val and test.
        folder: folder of the corpus.
    """

    indptr: np.ndarray
    indices: np.ndarray
    split_sizes: np.ndarray
    counts: np.ndarray
    folder: Path = field(repr=False)

    @property
    def n_documents(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_labels(self) -> int:
        return self.counts.shape[1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Label names. The position of a name is its label id."""
        return _column(self.folder / "labels.parquet", "label")

    @cached_property
    def descriptions(self) -> tuple[str | None, ...]:
        """Label descriptions by label id. None: the source has none."""
        return _column(self.folder / "labels.parquet", "description")

    def document_ids(self, split: str) -> tuple[str, ...]:
        return _column(self.folder / f"{split}.parquet", "document_id")

    def texts(self, split: str) -> tuple[str, ...]:
        """They may be clinical: never log or show them."""
        return _column(self.folder / f"{split}.parquet", "text")

    def groups(self, split: str) -> np.ndarray:
        """(N,) group (patient) of each document."""
        return np.array(_column(self.folder / f"{split}.parquet", "group_id"))

    def rows(self, split: str) -> slice:
        """The documents of a split as a slice of all documents."""
        edges = np.concatenate([[0], np.cumsum(self.split_sizes)])
        position = SPLITS.index(split)
        return slice(int(edges[position]), int(edges[position + 1]))

    def row(self, document: int) -> np.ndarray:
        """Label ids of one document."""
        return self.indices[self.indptr[document] : self.indptr[document + 1]]

    def part(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        """`indptr` (starting at 0) and `indices` of the documents of a split."""
        return _part(self.indptr, self.indices, self.rows(split))


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of all documents, in the order of `Labels`.

    Attributes:
        input_ids: int32[sum n_i], without special tokens.
        offsets: int64[N+1]. Document i is input_ids[offsets[i]:offsets[i+1]].
        starts, ends: int32[sum n_i], character span of each token in the text of its document.
        folder: folder of the tokens.
    """

    input_ids: np.ndarray
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    folder: Path = field(repr=False)

    @property
    def n_documents(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Readable token by token id."""
        return _column(self.folder / "vocabulary.parquet", "token")

    @cached_property
    def special(self) -> np.ndarray:
        """bool[V]: which token ids are special."""
        return np.array(_column(self.folder / "vocabulary.parquet", "special"), dtype=bool)

    @property
    def vocabulary_size(self) -> int:
        """V. The tokens themselves are not read."""
        import pyarrow.parquet

        return pyarrow.parquet.read_metadata(self.folder / "vocabulary.parquet").num_rows

    def row(self, document: int) -> np.ndarray:
        """Token ids of one document."""
        return self.input_ids[self.offsets[document] : self.offsets[document + 1]]

    def part(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """`offsets` (starting at 0) and `input_ids` of a slice of documents, such as `labels.rows("train")`."""
        return _part(self.offsets, self.input_ids, rows)


def _column(path: Path, name: str) -> tuple:
    import pyarrow.parquet

    return tuple(pyarrow.parquet.read_table(path, columns=[name])[name].to_pylist())


def _part(indptr: np.ndarray, values: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    edges = indptr[rows.start : rows.stop + 1]
    return edges - edges[0], values[edges[0] : edges[-1]]


def read_clusters(split: Path) -> np.ndarray:
    """(N,) cluster (patient) of each document of a split's parquet, numbered from 0 in the order of the documents.

    Raises:
        InputError: the file is missing.
    """
    import pyarrow.parquet

    groups = pyarrow.parquet.read_table(require_file(split), columns=["group_id"])["group_id"].combine_chunks()
    return groups.dictionary_encode().indices.to_numpy()


def load_labels(corpus: Path) -> Labels:
    """Read labels.safetensors of a corpus. Raises InputError if the file is missing or damaged."""
    return Labels(**read_arrays(Path(corpus) / "labels.safetensors"), folder=Path(corpus))


def load_tokens(folder: Path) -> Tokens:
    """Read tokens.safetensors of a tokenised corpus. Raises InputError if the file is missing or damaged."""
    return Tokens(**read_arrays(Path(folder) / "tokens.safetensors"), folder=Path(folder))
