"""Log-odds of a label given what people marked as its reason in training texts: a counted dictionary (choice C29).

A mention is found in a document where a stretch of at most |m| + slack words holds all of its words, |m| of them as
marked; words in more than half of the training documents are not asked for, unless nothing else is left. With n_m
training documents in which m is found, n_ml of them with the label, and N_l, z_l those in which none of the label's
mentions is found, s the smoothing,

    s(d, l) = max over found mentions m of l of log (n_ml + s) / (n_m - n_ml + s);   none found:
              log (z_l + s) / (N_l - z_l + s).

At s = 1/2 a mention of one document speaks for its label by log 3, one of fifty documents of which five do not have the
label by log 8.3. How far to trust the channel as a whole is weighed on validation (choice C25).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Document, Features, Outcome, Sources, best_of, ndcg
from plant.baselines.words import read_weights, split_words, table_with_constants
from plant.corpus.mentions import read_mentions
from plant.corpus.reader import Labels
from plant.ground.files import read_json

COMMON = 0.5
"""Share of the training documents above which a word is not asked for."""
Words = tuple[str, ...]


@dataclass(frozen=True)
class Dictionary:
    """Mentions to be looked for.

    Attributes:
        mentions: words of each, as marked.
        asked: the distinct words of each that have to be there, the rarest first.
        by_anchor: rarest word -> places of mentions.
    """

    mentions: tuple[Words, ...]
    asked: tuple[Words, ...]
    by_anchor: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, mentions: Sequence[Words], document_frequency: Mapping[str, int], n_documents: int) -> Dictionary:
        """Of distinct mentions and the counts of words over training documents."""
        asked, anchors = [], defaultdict(list)
        for place, words in enumerate(mentions):
            rarest_first = sorted(set(words), key=lambda word: (document_frequency.get(word, 0), word))
            kept = [word for word in rarest_first if document_frequency.get(word, 0) <= COMMON * n_documents]
            asked.append(tuple(kept or rarest_first))
            anchors[asked[-1][0]].append(place)
        return cls(tuple(mentions), tuple(asked), {word: tuple(places) for word, places in anchors.items()})

    def found(self, text: str) -> dict[int, int]:
        """Place of each mention of which all asked words are in a text -> words of the least stretch beyond |m|."""
        positions: dict[str, list[int]] = defaultdict(list)
        for position, word in enumerate(split_words(text)):
            positions[word].append(position)
        slack: dict[int, int] = {}
        for word in positions.keys() & self.by_anchor.keys():
            for place in self.by_anchor[word]:
                asked = self.asked[place]
                if all(other in positions for other in asked):
                    stretch = least_stretch([positions[other] for other in asked])
                    slack[place] = max(0, stretch - len(self.mentions[place]))
        return slack

    def table(self, texts: Sequence[str]) -> sp.csr_array:
        """(texts, mentions): words of the least stretch beyond |m|, and 1; nothing where a mention is not found."""
        found = [self.found(text) for text in texts]
        starts = np.cumsum([0, *map(len, found)])
        places = np.array([place for some in found for place in some], np.int64)
        beyond = np.array([one + 1 for some in found for one in some.values()], np.float64)
        return sp.csr_array((beyond, places, starts), shape=(len(texts), len(self.mentions)))


def within(beyond: sp.csr_array, slack: int) -> sp.csr_array:
    """1 where a mention is found within the slack."""
    near = sp.csr_array(((beyond.data <= slack + 1).astype(np.float64), beyond.indices, beyond.indptr), beyond.shape)
    near.eliminate_zeros()
    return near


def least_stretch(positions: Sequence[Sequence[int]]) -> int:
    """Length of the shortest run of positions that holds one of every list.

    >>> least_stretch([[3, 10], [5], [1, 6]])
    4
    """
    last: dict[int, int] = {}  # list -> its last position so far
    stretches = []
    for position, which in sorted((position, which) for which, some in enumerate(positions) for position in some):
        last[which] = position
        if len(last) == len(positions):
            stretches.append(position - min(last.values()) + 1)
    return min(stretches)


@dataclass(frozen=True)
class Weights:
    """What mentions say at one slack.

    Attributes:
        pairs: (P, 2) mention and label.
        weight: float64[P], log-odds of the label where the mention is found.
        absent: float64[L], log-odds where none of the label's mentions is found.
    """

    pairs: np.ndarray
    weight: np.ndarray
    absent: np.ndarray

    def of(self, found: sp.csr_array) -> np.ndarray:
        """(N, L) float32 scores of documents, given their mentions."""
        scores = np.tile(self.absent.astype(np.float32), (found.shape[0], 1))
        rows, pairs = found[:, self.pairs[:, 0]].nonzero()
        rising = np.argsort(self.weight[pairs], kind="stable")  # the largest of a label is written last
        rows, pairs = rows[rising], pairs[rising]
        scores[rows, self.pairs[pairs, 1]] = self.weight[pairs]
        return scores


def count(pairs: np.ndarray, found: sp.csr_array, truth: sp.csr_array, *, smoothing: float) -> Weights:
    """Count mentions over N training documents.

    Args:
        pairs: (P, 2) mention and label, each pair once.
        found: (N, M) 1 where a document holds a mention.
        truth: (N, L) true labels.
        smoothing: s > 0.
    """
    mention, label = pairs.T
    carried = truth.astype(np.float64)
    marks = sp.csr_array((np.ones(len(pairs)), (mention, label)), shape=(found.shape[1], truth.shape[1]))
    shown = (found @ marks > 0).astype(np.float64)  # (N, L) a mention of the label is found
    joint = np.asarray((found.T @ carried)[mention, label]).ravel()
    whole = found.sum(axis=0)[mention]
    bare = found.shape[0] - shown.sum(axis=0)
    bare_with = carried.sum(axis=0) - shown.multiply(carried).sum(axis=0)
    return Weights(
        pairs, np.log((joint + smoothing) / (whole - joint + smoothing)),
        np.log((bare_with + smoothing) / (bare - bare_with + smoothing)),
    )  # fmt: skip


def mentions(sources: Sources) -> Outcome:
    """Choose the slack on validation, and score.

    weights.parquet holds a constant a label, for none of its mentions found, and what each mention adds to it; only the
    mention of largest weight counts. A label without training documents has no score (-inf).
    """
    labels, settings = sources.labels, sources.settings
    dictionary, pairs = _dictionary(read_mentions(sources.files["mentions"]), labels)
    beyond = {split: dictionary.table(labels.texts(split)) for split in ("train", *SPLITS)}
    truth = {split: sources.truth(split) for split in ("train", "val")}
    weights = {
        slack: count(pairs, within(beyond["train"], slack), truth["train"], smoothing=settings.smoothing)
        for slack in settings.mention_slack
    }

    def score(split: str, slack: int) -> np.ndarray:
        scores = weights[slack].of(within(beyond[split], slack))
        scores[:, labels.counts[0] == 0] = -np.inf
        return scores

    values = {slack: ndcg(score("val", slack), truth["val"]) for slack in settings.mention_slack}
    slack, choices = best_of("slack", values)
    chosen, (mention, label) = weights[slack], pairs.T
    named = [" ".join(dictionary.mentions[place]) for place in mention.tolist()]
    return Outcome(
        {split: score(split, slack) for split in SPLITS}, 0.0, {**choices, "mentions": len(dictionary.mentions)},
        table_with_constants(labels, chosen.absent, label, named, chosen.weight - chosen.absent[label]),
    )  # fmt: skip


def best_mention(folder: Path, labels: Labels) -> Features:
    """The mention of a label that counts in a document, of value 1."""
    table = read_weights(folder).drop_nulls("feature")
    adds: dict[str, dict[str, float]] = defaultdict(dict)
    for label, mention, weight in table.select("label", "feature", "weight").iter_rows():
        adds[label][mention] = weight
    listed = [tuple(mention.split(" ")) for mention in table["feature"].unique(maintain_order=True)]
    dictionary, slack = _look_for(listed, labels), read_json(folder / "choices.json")["slack"]

    def values(document: Document, label: str) -> dict[str, float]:
        near = (place for place, beyond in dictionary.found(document.text).items() if beyond <= slack)
        found = {" ".join(dictionary.mentions[place]) for place in near} & adds.get(label, {}).keys()
        best = max(found, key=lambda one: (adds[label][one], one), default=None)
        return {} if best is None else {best: 1.0}

    return values


def _dictionary(marked: pl.DataFrame, labels: Labels) -> tuple[Dictionary, np.ndarray]:
    """All mentions, and the (P, 2) mentions and labels that were marked, sorted."""
    ids = {name: place for place, name in enumerate(labels.names)}
    places: dict[Words, int] = {}
    pairs = set()
    for label, mention in marked.select("label", "mention").iter_rows():
        words = tuple(split_words(mention))
        if words:
            pairs.add((places.setdefault(words, len(places)), ids[label]))
    return _look_for(list(places), labels), np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _look_for(listed: Sequence[Words], labels: Labels) -> Dictionary:
    texts = labels.texts("train")
    counts = Counter(word for text in texts for word in set(split_words(text)))
    return Dictionary.of(listed, counts, len(texts))


register(
    Baseline(
        "mentions", "marked mentions", mentions, inputs=("documents", "labels", "mentions"), needs="mentions",
        channel="mentions", features=best_mention,
    )
)  # fmt: skip
