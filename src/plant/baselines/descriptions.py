"""How much of a label's description a document holds: evidence that no training document is needed for (choice C29).

    s(d, l) = max over phrases p of l of   sum over w in p and in d of g_w  /  sum over w in p of g_w,
    g_w = log ((L + 1) / (f_w + 1/2)),

in [0, 1], with f_w of the L described labels having the word w in some phrase: "unspecified" says little, "brucellosis"
a lot. A label's title and each of its synonyms is a phrase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.target import SPLITS, ndcg, truth_of, write
from plant.baselines.words import split_words, write_weights
from plant.corpus.descriptions import SEPARATOR
from plant.corpus.reader import Labels, load_labels
from plant.ground.errors import InputError
from plant.ground.files import is_private
from plant.ground.identity import read_names
from plant.ground.settings import Evaluation
from plant.ground.staging import owner_only
from plant.metrics.scores import require_memory

_BLOCK = 500  # documents that are scored at once


@dataclass(frozen=True)
class Phrases:
    """Phrases of labels, rows sorted by label.

    Attributes:
        label: ids.
        phrase: strings with one word at least.
    """

    label: np.ndarray
    phrase: tuple[str, ...]

    @classmethod
    def of(cls, descriptions: Sequence[str | None]) -> Self:
        """Of the descriptions by label id; phrases of the same words in the same order count once a label."""
        label: list[int] = []
        phrase: list[str] = []
        for one, text in enumerate(descriptions):
            parts = {" ".join(split_words(part)): part for part in reversed((text or "").split(SEPARATOR.strip()))}
            kept = [part.strip() for words, part in reversed(parts.items()) if words]
            label += [one] * len(kept)
            phrase += kept
        return cls(np.array(label, np.int64), tuple(phrase))

    @cached_property
    def words(self) -> dict[str, int]:
        """Word -> column of `shares`."""
        found = dict.fromkeys(word for phrase in self.phrase for word in split_words(phrase))
        return {word: place for place, word in enumerate(found)}

    @cached_property
    def shares(self) -> sp.csr_array:
        """(phrases, words) float64: the share of each word in its phrase; rows sum to 1."""
        rows = [np.unique([self.words[word] for word in split_words(phrase)]) for phrase in self.phrase]
        sizes = np.array([len(row) for row in rows])
        columns = np.concatenate(rows)
        of_label = np.repeat(self.label, sizes)
        labels_of_word = np.bincount(np.unique(np.stack([columns, of_label]), axis=1)[0], minlength=len(self.words))
        weight = np.log((len(np.unique(self.label)) + 1) / (labels_of_word + 0.5))[columns]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        weight /= np.repeat(np.add.reduceat(weight, starts[:-1]), sizes)
        return sp.csr_array((weight, columns, starts), shape=(len(rows), len(self.words)))

    def coverage(self, texts: Sequence[str], n_labels: int) -> np.ndarray:
        """(N, n_labels) float32 in [0, 1]; 0 for a label without a phrase."""
        starts = np.flatnonzero(np.diff(self.label, prepend=-1))
        scores = np.zeros((len(texts), n_labels), np.float32)
        for start in range(0, len(texts), _BLOCK):
            found = (self._present(texts[start : start + _BLOCK]) @ self.shares.T).toarray()
            scores[start : start + _BLOCK, self.label[starts]] = np.maximum.reduceat(found, starts, axis=1)
        return scores

    def best(self, text: str) -> dict[int, tuple[str, float]]:
        """Label -> its phrase of largest share in a text, and the share; only labels of which a word is there."""
        found = (self._present([text]) @ self.shares.T).toarray()[0]
        best: dict[int, tuple[str, float]] = {}
        for place in np.flatnonzero(found):
            label, share = int(self.label[place]), float(found[place])
            if share > best.get(label, ("", 0.0))[1]:
                best[label] = (self.phrase[place], share)
        return best

    def _present(self, texts: Sequence[str]) -> sp.csr_array:
        rows = [sorted({self.words[word] for word in split_words(text) if word in self.words}) for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        columns = np.array([column for row in rows for column in row], np.int64)
        return sp.csr_array((np.ones(len(columns)), columns, starts), shape=(len(rows), len(self.words)))


def trained_phrases(labels: Labels) -> Phrases:
    """Those of the labels that have training documents."""
    trained = labels.counts[0] > 0
    return Phrases.of([text if some else None for text, some in zip(labels.descriptions, trained, strict=True)])


def descriptions(corpus: Path, *, evaluation: Evaluation, out: Path) -> None:
    """Write the scores of val and test, choices.json and weights.parquet (every phrase, of weight 1).

    Nothing is chosen and no training document is read; yet a label without training documents has no score (-inf), as
    in the other baselines: which unseen labels the label space holds is known from the documents to be scored.

    Args:
        corpus: folder of the corpus.
        evaluation: limits of the score files.
        out: the system's evaluation folder.

    Raises:
        InputError: no label has a description, or the scores need more memory than `evaluation.memory_gb`.
    """
    labels = load_labels(corpus)
    require_memory((labels.n_documents, labels.n_labels), settings=evaluation, where="scores of descriptions")
    phrases = trained_phrases(labels)
    if not phrases.phrase:
        raise InputError(
            f"labels of {labels.folder.name}", expected="descriptions, for the baseline `descriptions`",
            got=f"{labels.n_labels} labels without one", fix="Name a file in datasets.<name>.descriptions.",
        )  # fmt: skip
    scores = {split: phrases.coverage(labels.texts(split), labels.n_labels) for split in SPLITS}
    for values in scores.values():
        values[:, labels.counts[0] == 0] = -np.inf
    truth = {split: truth_of(labels, split) for split in SPLITS}
    beside = Path(corpus) / "train.parquet"
    choices: Mapping[str, object] = {
        "phrases": len(phrases.phrase), "described_labels": len(np.unique(phrases.label)),
        "ndcg@5": {"val": ndcg(scores["val"], truth["val"])},
    }  # fmt: skip
    write(
        out, document_ids={split: labels.document_ids(split) for split in SPLITS}, label_names=labels.names,
        truth=truth, scores=scores, natural_threshold=None, evaluation=evaluation, beside=beside,
        names=read_names(corpus), choices=choices,
    )  # fmt: skip
    names = np.array(labels.names, dtype=object)[phrases.label]
    with owner_only(is_private(beside)):
        write_weights(out, names, pl.Series(phrases.phrase, dtype=pl.String), np.ones(len(names)))
