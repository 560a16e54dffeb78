"""The share of a label's description that a document holds: evidence that needs no training document (choice C29).

    s(d, l) = max over phrases p of l of   sum over w in p and in d of g_w  /  sum over w in p of g_w,
    g_w = log ((L + 1) / (f_w + 1/2)).

The score is in [0, 1]. f_w of the L described labels have the word w in some phrase, so a common word ("unspecified")
counts little and a rare one ("brucellosis") a lot. A label's title is a phrase, and so is each of its synonyms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, ExplainedDocument, Features, Outcome, Sources, ndcg
from plant.baselines.words import split_words, table_of
from plant.corpus.reader import Labels
from plant.ground.errors import InputError

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

_BLOCK = 500  # documents scored at once


@dataclass(frozen=True)
class Phrases:
    """Phrases of labels, sorted by label: the id of each phrase's label, and its string of at least one word."""

    label: np.ndarray
    phrase: tuple[str, ...]

    @classmethod
    def of(cls, descriptions: Sequence[str | None]) -> Self:
        """Split descriptions, given by label id. Phrases of a label with equal words in equal order count once."""
        from plant.corpus.descriptions import SEPARATOR  # loads polars

        label: list[int] = []
        phrase: list[str] = []
        for one, text in enumerate(descriptions):
            parts = {" ".join(split_words(part)): part for part in reversed((text or "").split(SEPARATOR.strip()))}
            kept = [part.strip() for words, part in reversed(parts.items()) if words]
            label += [one] * len(kept)
            phrase += kept
        return cls(np.array(label, np.int64), tuple(phrase))

    @cached_property
    def words(self) -> CountVectorizer:
        """Texts -> (texts, words) float64: 1 if the text holds the word."""
        from sklearn.feature_extraction.text import CountVectorizer

        known = list(dict.fromkeys(word for phrase in self.phrase for word in split_words(phrase)))
        return CountVectorizer(vocabulary=known, binary=True, dtype=np.float64)

    @cached_property
    def shares(self) -> scipy.sparse.csr_array:
        """(phrases, words) float64: the share of each word in its phrase; rows sum to 1."""
        shares = scipy.sparse.csr_array(self.words.transform(self.phrase))
        sizes, columns = np.diff(shares.indptr), shares.indices
        labels_of_word = np.bincount(np.unique([columns, np.repeat(self.label, sizes)], axis=1)[0])
        weight = np.log((len(np.unique(self.label)) + 1) / (labels_of_word + 0.5))[columns]
        shares.data = weight / np.repeat(np.add.reduceat(weight, shares.indptr[:-1]), sizes)
        return shares

    def present_shares(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, phrases): the share of each phrase that a text holds."""
        return (scipy.sparse.csr_array(self.words.transform(texts)) @ self.shares.T).toarray()

    def coverage(self, texts: Sequence[str], n_labels: int) -> np.ndarray:
        """(N, n_labels) float32 in [0, 1]; 0 for a label without a phrase."""
        starts = np.flatnonzero(np.diff(self.label, prepend=-1))
        scores = np.zeros((len(texts), n_labels), np.float32)
        for start in range(0, len(texts), _BLOCK):
            shares = self.present_shares(texts[start : start + _BLOCK])
            scores[start : start + _BLOCK, self.label[starts]] = np.maximum.reduceat(shares, starts, axis=1)
        return scores

    def best(self, text: str) -> dict[int, tuple[str, float]]:
        """Label -> its phrase with the largest share in a text, and the share; only labels with a share above 0."""
        shares = self.present_shares([text])[0]
        best: dict[int, tuple[str, float]] = {}
        for place in np.flatnonzero(shares):
            label, share = int(self.label[place]), float(shares[place])
            if share > best.get(label, ("", 0.0))[1]:
                best[label] = (self.phrase[place], share)
        return best


def trained_phrases(labels: Labels) -> Phrases:
    """The phrases of the labels with training documents."""
    trained = labels.counts[0] > 0
    return Phrases.of([text if some else None for text, some in zip(labels.descriptions, trained, strict=True)])


def descriptions(sources: Sources) -> Outcome:
    """Score, and write every phrase with weight 1.

    Nothing is chosen, and no training document is read. Yet a label without training documents has no score (-inf), as
    in the other baselines: that the label space holds it is only known from the documents to be scored.

    Raises:
        InputError: no label has a description.
    """
    labels = sources.labels
    phrases = trained_phrases(labels)
    if not phrases.phrase:
        raise InputError(
            f"labels of {labels.folder.name}", expected="descriptions, for the baseline `descriptions`",
            got=f"{labels.n_labels} labels without one", fix="Name a file in datasets.<name>.descriptions.",
        )  # fmt: skip
    scores = {split: phrases.coverage(labels.texts(split), labels.n_labels) for split in SPLITS}
    for values in scores.values():
        values[:, ~sources.trained] = -np.inf
    choices = {
        "phrases": len(phrases.phrase), "described_labels": len(np.unique(phrases.label)),
        "ndcg@5": {"val": ndcg(scores["val"], sources.truth("val"))},
    }  # fmt: skip
    names = np.array(labels.names, dtype=object)[phrases.label]
    return Outcome(scores, None, choices, table_of(names, phrases.phrase, np.ones(len(names))))


def best_phrases(_folder: Path, labels: Labels) -> Features:
    """The phrase of a label with the largest share in a document; its value is the share."""
    ids = {name: place for place, name in enumerate(labels.names)}
    best = lru_cache(1)(trained_phrases(labels).best)

    def values(document: ExplainedDocument, label: str) -> dict[str, float]:
        phrase = best(document.text).get(ids[label])
        return {} if phrase is None else dict([phrase])

    return values


register(
    Baseline(
        "descriptions", "label descriptions", descriptions, inputs=("documents", "labels"),
        channel="descriptions", features=best_phrases,
    )
)  # fmt: skip
