"""Log-odds of a label, given the phrases (mentions) that people marked as its reason in training texts (choice C29).

A mention of |m| words matches a document if some stretch of at most |m| + slack words holds all its required words.
Words in more than half of the training documents are not required, unless the mention has no other. Let m match n_m
training documents, n_ml of them with the label; let none of the label's mentions match N_l training documents, z_l of
them with the label. With the smoothing s the score is

    s(d, l) = max over matching mentions m of l of log (n_ml + s) / (n_m - n_ml + s),
              or log (z_l + s) / (N_l - z_l + s) if none matches.

With s = 1/2, a mention in one document gives its label log 3. A mention in fifty documents, five of them without the
label, gives log 8.3. How far to trust the channel as a whole is fitted on validation (choice C25).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, ExplainedDocument, Features, Outcome, Sources, choose
from plant.baselines.words import read_weights, split_words, table_with_constants
from plant.corpus.reader import Labels
from plant.ground.files import read_json

if TYPE_CHECKING:
    import polars as pl

COMMON = 0.5
"""A word in a larger share of the training documents than this is not required."""
Words = tuple[str, ...]


@dataclass(frozen=True)
class Dictionary:
    """Mentions to look for.

    Attributes:
        mentions: the words of each, as marked.
        required: the distinct required words of each, the rarest first.
        by_anchor: rarest required word -> places of mentions.
    """

    mentions: tuple[Words, ...]
    required: tuple[Words, ...]
    by_anchor: Mapping[str, list[int]]

    @classmethod
    def of(cls, mentions: Sequence[Words], texts: Sequence[str]) -> Dictionary:
        """Build it from distinct mentions and the training texts."""
        counts = Counter(word for text in texts for word in set(split_words(text)))
        required, anchors = [], defaultdict(list)
        for place, words in enumerate(mentions):
            rarest_first = sorted(set(words), key=lambda word: (counts[word], word))
            kept = [word for word in rarest_first if counts[word] <= COMMON * len(texts)]
            required.append(tuple(kept or rarest_first))
            anchors[required[-1][0]].append(place)
        return cls(tuple(mentions), tuple(required), anchors)

    def matches(self, text: str) -> dict[int, int]:
        """Place of each mention whose required words are all in a text -> slack that it needs to match."""
        positions: dict[str, list[int]] = defaultdict(list)
        for position, word in enumerate(split_words(text)):
            positions[word].append(position)
        slack: dict[int, int] = {}
        for word in positions.keys() & self.by_anchor.keys():
            for place in self.by_anchor[word]:
                required = self.required[place]
                if all(other in positions for other in required):
                    stretch = least_stretch([positions[other] for other in required])
                    slack[place] = max(0, stretch - len(self.mentions[place]))
        return slack

    def table(self, texts: Sequence[str]) -> scipy.sparse.csr_array:
        """(texts, mentions): slack that a mention needs to match, plus 1; no entry if its words are not all there."""
        matches = [self.matches(text) for text in texts]
        starts = np.cumsum([0, *map(len, matches)])
        places = np.array([place for some in matches for place in some], np.int64)
        slack = np.array([one + 1 for some in matches for one in some.values()], np.float64)
        return scipy.sparse.csr_array((slack, places, starts), shape=(len(texts), len(self.mentions)))


def within(needed: scipy.sparse.csr_array, slack: int) -> scipy.sparse.csr_array:
    """1 if a mention matches with this slack; `needed` is a table of `Dictionary.table`."""
    near = needed.copy()
    near.data = (near.data <= slack + 1).astype(np.float64)
    near.eliminate_zeros()
    return near


def least_stretch(positions: Sequence[Sequence[int]]) -> int:
    """Length of the shortest stretch that holds a position of every list.

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
class MentionOdds:
    """Log-odds of labels at one slack.

    Attributes:
        pairs: (P, 2) mention and label.
        weight: float64[P], log-odds of the label if the mention matches.
        absent: float64[L], log-odds if none of the label's mentions matches.
    """

    pairs: np.ndarray
    weight: np.ndarray
    absent: np.ndarray

    def of(self, matches: scipy.sparse.csr_array) -> np.ndarray:
        """(N, L) float32 scores of documents, given their matching mentions."""
        scores = np.tile(self.absent.astype(np.float32), (matches.shape[0], 1))
        rows, pairs = matches[:, self.pairs[:, 0]].nonzero()
        rising = np.argsort(self.weight[pairs], kind="stable")  # the largest weight of a label is written last
        rows, pairs = rows[rising], pairs[rising]
        scores[rows, self.pairs[pairs, 1]] = self.weight[pairs]
        return scores


def count(
    pairs: np.ndarray, matches: scipy.sparse.csr_array, truth: scipy.sparse.csr_array, *, smoothing: float
) -> MentionOdds:
    """Count over N training documents: `pairs` (P, 2) of mention and label, `matches` (N, M) and `truth` (N, L)."""
    mention, label = pairs.T
    carried = truth.astype(np.float64)
    marks = scipy.sparse.csr_array((np.ones(len(pairs)), (mention, label)), shape=(matches.shape[1], truth.shape[1]))
    shown = (matches @ marks > 0).astype(np.float64)  # (N, L) a mention of the label matches
    joint = np.asarray((matches.T @ carried)[mention, label]).ravel()
    whole = matches.sum(axis=0)[mention]
    bare = matches.shape[0] - shown.sum(axis=0)
    bare_with = carried.sum(axis=0) - shown.multiply(carried).sum(axis=0)
    return MentionOdds(
        pairs, np.log((joint + smoothing) / (whole - joint + smoothing)),
        np.log((bare_with + smoothing) / (bare - bare_with + smoothing)),
    )  # fmt: skip


def mentions(sources: Sources) -> Outcome:
    """Choose the slack on validation, and score.

    weights.parquet holds a constant for each label (none of its mentions matches) and what each mention adds to it.
    Only the matching mention of largest weight counts.
    """
    import polars as pl

    labels, settings = sources.labels, sources.settings
    listed, pairs = _listed(pl.read_parquet(sources.files["mentions"]), labels)
    dictionary = Dictionary.of(listed, labels.texts("train"))
    needed = {split: dictionary.table(labels.texts(split)) for split in ("train", *SPLITS)}
    truth = sources.truth("train")
    odds = {
        slack: count(pairs, within(needed["train"], slack), truth, smoothing=settings.smoothing)
        for slack in settings.mention_slack
    }
    slack, choices, scores = choose(
        sources, "slack", odds, lambda split, slack: odds[slack].of(within(needed[split], slack))
    )
    chosen, (mention, label) = odds[slack], pairs.T
    named = [" ".join(dictionary.mentions[place]) for place in mention.tolist()]
    return Outcome(
        scores, 0.0, {**choices, "mentions": len(dictionary.mentions)},
        table_with_constants(labels, chosen.absent, label, named, chosen.weight - chosen.absent[label]),
    )  # fmt: skip


def best_mention(folder: Path, labels: Labels) -> Features:
    """The mention of a label that counts in a document, with value 1."""
    table = read_weights(folder).drop_nulls("feature")
    adds: dict[str, dict[str, float]] = defaultdict(dict)
    for label, mention, weight in table.select("label", "feature", "weight").iter_rows():
        adds[label][mention] = weight
    listed = [tuple(mention.split(" ")) for mention in table["feature"].unique(maintain_order=True)]
    dictionary = Dictionary.of(listed, labels.texts("train"))
    slack = read_json(folder / "choices.json")["slack"]

    def values(document: ExplainedDocument, label: str) -> dict[str, float]:
        near = (place for place, needed in dictionary.matches(document.text).items() if needed <= slack)
        own = {" ".join(dictionary.mentions[place]) for place in near} & adds.get(label, {}).keys()
        best = max(own, key=lambda one: (adds[label][one], one), default=None)
        return {} if best is None else {best: 1.0}

    return values


def _listed(marked: pl.DataFrame, labels: Labels) -> tuple[list[Words], np.ndarray]:
    """All distinct mentions, and the (P, 2) pairs of a mention and a label that were marked, sorted."""
    ids = {name: place for place, name in enumerate(labels.names)}
    places: dict[Words, int] = {}
    pairs = set()
    for label, mention in marked.select("label", "mention").iter_rows():
        words = tuple(split_words(mention))
        if words:
            pairs.add((places.setdefault(words, len(places)), ids[label]))
    return list(places), np.array(sorted(pairs), np.int64).reshape(-1, 2)


register(
    Baseline(
        "mentions", "marked mentions", mentions, inputs=("documents", "labels", "mentions"), needs="mentions",
        channel="mentions", features=best_mention,
    )
)  # fmt: skip
