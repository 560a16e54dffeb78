"""Candidate labels of each document, where the label set is too large to score whole (choice C13).

The candidates of a document are its shortlist: the labels with the largest sums of relevance over its tokens
(`plant.relevance.shortlist`). Its own labels have no part in that. In training its positives are added. In validation
and prediction they are not: a label outside the shortlist has no score, true or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.ground.settings import Finetuning
from plant.model.assemble import TrainingData
from plant.model.batches import Corpus


class Lists(NamedTuple):
    """Label lists of some documents, of unequal length, padded to one width c."""

    labels: np.ndarray  # i64 (B, c), ids in the trained label space, 0 where `inside` is False
    inside: np.ndarray  # bool (B, c), True where a column holds a label


@dataclass(frozen=True)
class Shortlist:
    """The candidates of every document of a corpus."""

    labels: np.ndarray  # i32 (N, width), ids of the full label list by falling sum of relevance, -1 where a row ends
    trained_id: np.ndarray  # i64 (|L| of the full list), id in the trained label space; -1: not trained
    size: int  # number of candidates of a document, at most `width`

    def of(self, batch: np.ndarray) -> Lists:
        """The shortlists of the documents `batch` (B): the labels that may be predicted."""
        return padded([self._row(document) for document in batch])

    def with_positives(self, corpus: Corpus, batch: np.ndarray) -> tuple[Lists, np.ndarray]:
        """For training: the positives of each document, then the rest of its shortlist; and truth, bool (B, c)."""
        positives = [corpus.labels(document) for document in batch]
        rows = []
        for document, true in zip(batch, positives, strict=True):
            row = self._row(document)
            rows.append(np.concatenate([true, row[~np.isin(row, true)]]))
        lists = padded(rows)
        truth = np.arange(lists.labels.shape[1])[None, :] < np.array([len(true) for true in positives])[:, None]
        return lists, truth

    def _row(self, document: int) -> np.ndarray:
        """Candidates of one document, ids in the trained label space."""
        row = self.labels[document, : self.size]
        ids = self.trained_id[row[row >= 0]]
        return ids[ids >= 0]


def padded(rows: Sequence[np.ndarray]) -> Lists:
    """Rows of label ids as arrays of one width (at least 1)."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    inside = np.arange(max(1, lengths.max(initial=0)))[None, :] < lengths[:, None]
    labels = np.zeros(inside.shape, dtype=np.int64)
    labels[inside] = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    return Lists(labels, inside)


def load_shortlist(source: Path | None, data: TrainingData, settings: Finetuning) -> Shortlist | None:
    """The shortlist that a recipe asks for, from a file of the relevance room; None where all labels are scored.

    Raises:
        InputError: the file is of another corpus or too narrow.
    """
    if settings.shortlist is None or len(data.names) <= settings.shortlist_above:
        return None
    assert source is not None
    labels = read_arrays(source)["labels"]
    documents = len(data.corpus.offsets) - 1
    if len(labels) != documents or labels.shape[1] < settings.shortlist or labels.max(initial=-1) >= len(data.names):
        expected = f"{documents} rows of at least {settings.shortlist} of {len(data.names)} labels"
        got = f"{labels.shape[0]} rows of {labels.shape[1]}, label ids up to {labels.max(initial=-1)}"
        raise InputError(str(source), expected=expected, got=got, fix="Delete it and run again.")
    trained_id = np.full(len(data.names), -1, dtype=np.int64)
    trained_id[data.trained] = np.arange(len(data.trained))
    return Shortlist(labels, trained_id, settings.shortlist)
