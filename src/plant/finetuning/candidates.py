"""Candidate labels of each document, where the label set is too large to score whole (choice C13).

A document's candidates are its shortlist: the labels of largest relevance summed over its tokens
(`plant.relevance.shortlist`), found without looking at its labels. In training its positives join them; in
validation and prediction they do not, so that a label outside the shortlist has no score, true or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.ground.settings import Finetuning
from plant.model.assemble import TrainingData
from plant.model.batches import Corpus


@dataclass(frozen=True)
class Lists:
    """Labels of a batch's documents, rows of unequal length padded to one width c.

    Attributes:
        labels: i64 (B, c), ids in the trained label space, 0 where `inside` is False.
        inside: bool (B, c), True where a column holds a label.
    """

    labels: np.ndarray
    inside: np.ndarray

    def tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Labels and inside on a device."""
        return torch.from_numpy(self.labels).to(device), torch.from_numpy(self.inside).to(device)


@dataclass(frozen=True)
class Shortlist:
    """The candidates of every document of a corpus.

    Attributes:
        labels: i32 (N, width), ids of the full label list in falling summed relevance, -1 where a row has ended.
        trained_id: i64 (|L| of the full list), id in the trained label space; -1 for labels that are not trained.
        size: candidates a document, at most `width`.
    """

    labels: np.ndarray
    trained_id: np.ndarray
    size: int

    def of(self, batch: np.ndarray) -> Lists:
        """The shortlists alone: what may be predicted.

        Args:
            batch: document ids (B).
        """
        return padded([self._row(document) for document in batch])

    def with_positives(self, corpus: Corpus, batch: np.ndarray) -> tuple[Lists, np.ndarray]:
        """What is trained on: each document's positives, then the rest of its shortlist.

        Returns:
            Lists, and truth bool (B, c).
        """
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
    lengths = np.array([len(row) for row in rows])
    inside = np.arange(max(1, lengths.max(initial=0)))[None, :] < lengths[:, None]
    labels = np.zeros(inside.shape, dtype=np.int64)
    labels[inside] = np.concatenate(rows)
    return Lists(labels, inside)


def load_shortlist(source: Path | None, data: TrainingData, settings: Finetuning) -> Shortlist | None:
    """The shortlist that a recipe asks for, or None where the label set is scored whole.

    Args:
        source: `{measure}.shortlist{size}.safetensors` of the relevance room; may be None where none is needed.
        data: documents and label space.
        settings: `shortlist` and `shortlist_above`.

    Raises:
        InputError: the recipe needs a file that was not given, or the file is of another corpus or too narrow.
    """
    if settings.shortlist is None or len(data.names) <= settings.shortlist_above:
        return None
    if source is None:
        raise InputError(
            "finetunings: shortlist",
            expected=f"a file of shortlists: {len(data.names)} labels are more than shortlist_above",
            got="none",
            fix="Pass --shortlist, or raise shortlist_above.",
        )
    labels = read_arrays(source)["labels"]
    documents = len(data.corpus.offsets) - 1
    if len(labels) != documents or labels.shape[1] < settings.shortlist or labels.max(initial=-1) >= len(data.names):
        raise InputError(
            str(source),
            expected=f"{documents} rows of at least {settings.shortlist} of {len(data.names)} labels",
            got=f"{labels.shape[0]} rows of {labels.shape[1]}, label ids up to {labels.max(initial=-1)}",
            fix="Delete it and run again.",
        )
    trained_id = np.full(len(data.names), -1, dtype=np.int64)
    trained_id[data.trained] = np.arange(len(data.trained))
    return Shortlist(labels, trained_id, settings.shortlist)
