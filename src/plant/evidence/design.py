"""The scores of all channels as rows of a regression, a block of documents at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from plant.corpus.reader import Labels
from plant.ground.settings import Evidence
from plant.metrics.aligned import AlignedScores

BLOCK = 2**16
"""Pairs that are in memory as float64 at once: 5 MB with 8 features, which a processor's cache holds."""
FREE = ("prior",)
"""Channels whose weight may be negative. The log-odds contain a prior of their own, and this one may take it back."""


@dataclass(frozen=True)
class LabelSide:
    """The part of the regression that depends on the label alone.

    Attributes:
        channels: names, in the order of the config.
        prior: (L,) log (n + .5) / (N - n + .5), for n of N training documents with the label.
        ends: (E, L) shares. A channel has E scalars; its weight at a label is their sum, weighted by these shares.
            Without slopes E = 1 and all shares are 1. With slopes E = 2 and the shares are 1 - u and u, where
            u = log(1 + n), scaled to [0, 1] over the labels with training documents.
        trained: (L,) whether the label has a training document.
    """

    channels: tuple[str, ...]
    prior: np.ndarray
    ends: np.ndarray
    trained: np.ndarray

    @classmethod
    def of(cls, labels: Labels, settings: Evidence) -> LabelSide:
        """The label side of a corpus and a recipe."""
        n, total = labels.counts[0].astype(np.float64), float(labels.split_sizes[0])
        prior = np.log((n + 0.5) / (total - n + 0.5))
        if not settings.slopes:
            return cls(settings.channels, prior, np.ones((1, n.size)), n > 0)
        size = np.log1p(n)
        low, high = (size[n > 0].min(), size[n > 0].max()) if (n > 0).any() else (0.0, 0.0)
        u = np.clip((size - low) / (high - low), 0, 1) if high > low else np.zeros(n.size)
        return cls(settings.channels, prior, np.stack([1 - u, u]), n > 0)

    @property
    def lower(self) -> np.ndarray:
        """(F + 1,) lower bounds of the F scalars and, last, of the constant."""
        bounds = [-np.inf if channel in FREE else 0.0 for channel in self.channels for _ in self.ends]
        return np.array([*bounds, -np.inf])

    def weights(self, scalars: np.ndarray) -> np.ndarray:
        """(channels, L) the weight of each channel at each label, from the first F scalars."""
        return scalars[: len(self.channels) * len(self.ends)].reshape(len(self.channels), -1) @ self.ends


class PairBlock(NamedTuple):
    """The pairs of some documents that have a score in every channel."""

    rows: np.ndarray  # (m, F + 1) features and a 1 for the constant
    truth: np.ndarray  # (m,) boolean
    places: np.ndarray  # (m,) places in the flattened scores of `AlignedScores`


@dataclass(frozen=True)
class Design:
    """All pairs of one split.

    Attributes:
        pairs: scores of all channels but the prior, in the order of `side.channels`.
        side: of the labels.
        truth: (N, L) boolean.
    """

    pairs: AlignedScores
    side: LabelSide
    truth: sp.csr_array

    def blocks(self, documents: np.ndarray | None = None) -> Iterator[PairBlock]:
        """The pairs of some documents (ascending; None: all) that have a score in every channel."""
        documents = np.arange(self.pairs.shape[0]) if documents is None else documents
        for part, rows, columns, places in self._parts(documents):
            scores = [values.reshape(-1)[places] for values in self.pairs.scores]
            truth = self.truth[part].toarray()[rows, columns]
            known = np.logical_and.reduce([self.side.trained[columns], *(np.isfinite(values) for values in scores)])
            if not known.all():
                columns, places, truth = columns[known], places[known], truth[known]
                scores = [values[known] for values in scores]
            yield PairBlock(self._features(scores, columns), truth, places)

    def _parts(self, documents: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Some documents (at least one), and of each of their pairs: row among them, column, and place."""
        n_labels = self.pairs.shape[1]
        if self.pairs.where is None:
            size = max(1, BLOCK // max(1, n_labels))
            for start in range(0, len(documents), size):
                part = documents[start : start + size]
                columns, rows = np.tile(np.arange(n_labels), len(part)), np.repeat(np.arange(len(part)), n_labels)
                yield part, rows, columns, np.repeat(part * n_labels, n_labels) + columns
            return
        starts = np.searchsorted(self.pairs.where[0], np.arange(self.pairs.shape[0] + 1))
        cuts = np.flatnonzero(np.diff(np.cumsum(np.diff(starts)[documents]) // BLOCK)) + 1
        for part in np.split(documents, cuts):
            places = np.concatenate([np.arange(starts[d], starts[d + 1]) for d in part] or [np.zeros(0, np.int64)])
            rows = np.repeat(np.arange(len(part)), np.diff(starts)[part])
            yield part, rows, self.pairs.where[1][places], places

    def _features(self, scores: Sequence[np.ndarray], columns: np.ndarray) -> np.ndarray:
        """(m, F + 1): each channel's score times each of the label's shares, then a 1."""
        ends = self.side.ends
        rows = np.ones((len(columns), len(self.side.channels) * len(ends) + 1))
        given = iter(scores)
        for place, channel in enumerate(self.side.channels):
            values = self.side.prior[columns] if channel == "prior" else next(given)
            for end, share in enumerate(ends):
                np.multiply(values, share[columns], out=rows[:, place * len(ends) + end])
        return rows

    def logits(self, scalars: Mapping[int, np.ndarray], folds: np.ndarray) -> np.ndarray:
        """Logits of all pairs, in the shape of the scores of `pairs`; -inf if a channel has no score.

        `scalars` has (F + 1,) numbers for the documents of each fold, and `folds` (N,) the fold of each document.
        """
        out = np.full(self.pairs.scores[0].size, -np.inf)
        for fold, weights in scalars.items():
            for block in self.blocks(np.flatnonzero(folds == fold)):
                out[block.places] = block.rows @ weights
        return out.reshape(self.pairs.scores[0].shape)
