"""Padded batches from memory-mapped arrays, in an order that depends on seed and epoch alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from plant.ground.seeds import generator
from plant.model.classifier import NOTHING, Documents, Known

BUCKET = 16  # so many batches are sorted by length together: little padding, still a random order


@dataclass(frozen=True)
class Corpus:
    """The documents and labels that training reads."""

    input_ids: np.ndarray  # i32 (sum of lengths)
    offsets: np.ndarray  # i64 (N + 1)
    indptr: np.ndarray  # i64 (N + 1), with `indices` the labels of each document as CSR
    indices: np.ndarray  # ids in the trained label space
    splits: dict[str, tuple[int, int]]  # first and last + 1 document of train, val, test
    features: np.ndarray | None = None  # fp16 (sum of lengths, h), a memory map
    known: Callable[[np.ndarray, torch.device], Known] | None = None
    """Document ids and the device -> what counts say of them; None where the recipe keeps no evidence."""

    @classmethod
    def of(
        cls,
        documents: Sequence[np.ndarray | Sequence[int]],
        labels: Sequence[np.ndarray | Sequence[int]] = (),
        *,
        splits: dict[str, int],
    ) -> "Corpus":
        """A corpus from the input ids of each document, their label ids (ascending), and the sizes of the splits."""
        ends = np.cumsum([0, *splits.values()]).tolist()
        places = dict(zip(splits, pairwise(ends), strict=True))
        (ids, offsets), (indices, indptr) = joined(documents), joined(labels or [()] * len(documents))
        return cls(ids, offsets, indptr, indices, places)

    def length(self, documents: np.ndarray) -> np.ndarray:
        return self.offsets[documents + 1] - self.offsets[documents]

    def documents(self, split: str) -> np.ndarray:
        """Ids of the split's documents that have at least one token."""
        ids = np.arange(*self.splits[split])
        return ids[self.length(ids) > 0]

    def labels(self, document: int) -> np.ndarray:
        return self.indices[self.indptr[document] : self.indptr[document + 1]]

    def tokens(self, document: int) -> np.ndarray:
        return self.input_ids[self.offsets[document] : self.offsets[document + 1]]


def joined(rows: Sequence[np.ndarray | Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of whole numbers one after the other, i32 (sum of lengths), and where each begins and ends, i64 (N + 1)."""
    flat = [np.zeros(0, np.int32), *(np.asarray(row, np.int32) for row in rows)]
    return np.concatenate(flat), np.cumsum([len(row) for row in flat]).astype(np.int64)


def ordered_batches(corpus: Corpus, documents: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches for evaluation, sorted by length to keep padding small. Every document comes once."""
    ordered = documents[np.argsort(corpus.length(documents), kind="stable")]
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


def batches_by_tokens(corpus: Corpus, documents: np.ndarray, budget: int) -> list[np.ndarray]:
    """Batches sorted by length whose padded size stays within `budget` tokens (one document at least)."""
    ordered = documents[np.argsort(corpus.length(documents), kind="stable")]
    lengths = corpus.length(ordered)
    batches, start = [], 0
    for end in range(1, len(ordered) + 1):
        if end == len(ordered) or (end + 1 - start) * lengths[end] > budget:
            batches.append(ordered[start:end])
            start = end
    return batches


def shuffled_batches(
    corpus: Corpus, documents: np.ndarray, batch_size: int, *, seed: int, epoch: int
) -> list[np.ndarray]:
    """Batches of one training epoch, in random order; documents of similar length are together.

    The order depends on (seed, epoch) alone, so a resumed run sees the batches of an uninterrupted one.
    """
    random = generator(seed, "order", epoch)
    shuffled = random.permutation(documents)
    batches: list[np.ndarray] = []
    for start in range(0, len(shuffled), batch_size * BUCKET):
        batches += ordered_batches(corpus, shuffled[start : start + batch_size * BUCKET], batch_size)
    return [batches[index] for index in random.permutation(len(batches))]


def pad_documents(corpus: Corpus, batch: Sequence[int] | np.ndarray, device: torch.device) -> Documents:
    """One padded batch: ids (or cached features) and the mask."""
    lengths = corpus.length(np.asarray(batch))
    known = NOTHING if corpus.known is None else corpus.known(np.asarray(batch), device)
    width = int(lengths.max())
    mask = torch.from_numpy(np.arange(width)[None, :] < lengths[:, None])
    if corpus.features is not None:
        features = np.zeros((len(batch), width, corpus.features.shape[1]), dtype=corpus.features.dtype)
        for row, document in enumerate(batch):
            start, end = corpus.offsets[document], corpus.offsets[document + 1]
            features[row, : end - start] = corpus.features[start:end]
        return Documents(mask.to(device), features=torch.from_numpy(features).to(device).float(), known=known)
    ids = np.zeros((len(batch), width), dtype=np.int64)
    for row, document in enumerate(batch):
        ids[row, : lengths[row]] = corpus.tokens(document)
    return Documents(mask.to(device), input_ids=torch.from_numpy(ids).to(device), known=known)


def multi_hot(corpus: Corpus, batch: Sequence[int] | np.ndarray, n_labels: int, device: torch.device) -> torch.Tensor:
    """Truth of a batch, bool (B, |L|)."""
    truth = np.zeros((len(batch), n_labels), dtype=bool)
    for row, document in enumerate(batch):
        truth[row, corpus.labels(document)] = True
    return torch.from_numpy(truth).to(device)
