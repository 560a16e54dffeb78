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

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plant.baselines.target import SPLITS, best_of, ndcg, truth_of, write
from plant.baselines.words import read_weights, split_words, write_label_weights
from plant.corpus.mentions import read_mentions
from plant.corpus.reader import Labels, load_labels
from plant.ground.files import is_private, require_file
from plant.ground.identity import read_names
from plant.ground.settings import BaselineSettings, Evaluation
from plant.ground.staging import owner_only
from plant.metrics.scores import require_memory

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


def least_stretch(positions: Sequence[Sequence[int]]) -> int:
    """Length of the shortest run of positions that holds one of every list.

    >>> least_stretch([[3, 10], [5], [1, 6]])
    4
    """
    if len(positions) == 1:
        return 1
    merged = sorted((position, which) for which, some in enumerate(positions) for position in some)
    counts, missing, start, least = [0] * len(positions), len(positions), 0, merged[-1][0] - merged[0][0] + 1
    for position, which in merged:
        missing -= counts[which] == 0
        counts[which] += 1
        while not missing:
            least = min(least, position - merged[start][0] + 1)
            counts[merged[start][1]] -= 1
            missing += counts[merged[start][1]] == 0
            start += 1
    return least


@dataclass(frozen=True)
class Weights:
    """What mentions say at one slack.

    Attributes:
        label, mention: ids and places, one a pair; pairs of a mention are together, by label.
        weight: float64, log-odds of the label where the mention is found.
        starts: of each mention's pairs.
        absent: float64[L], log-odds where none of the label's mentions is found.
    """

    label: np.ndarray
    mention: np.ndarray
    weight: np.ndarray
    starts: np.ndarray
    absent: np.ndarray

    def of(self, found: Sequence[Mapping[int, int]], slack: int) -> np.ndarray:
        """(N, L) float32 scores of documents, given their mentions."""
        scores = np.tile(self.absent.astype(np.float32), (len(found), 1))
        for row, some in zip(scores, found, strict=True):
            places = [place for place, beyond in some.items() if beyond <= slack]
            pairs = [np.arange(self.starts[place], self.starts[place + 1]) for place in places]
            if pairs:
                chosen = np.concatenate(pairs)
                best = np.full(len(row), -np.inf)
                np.maximum.at(best, self.label[chosen], self.weight[chosen])
                row[:] = np.where(np.isfinite(best), best, row)
        return scores


def count(
    pairs: np.ndarray, found: Sequence[Mapping[int, int]], carried: Sequence[np.ndarray], n_labels: int,
    *, slack: int, smoothing: float,
) -> Weights:  # fmt: skip
    """Count mentions over training documents.

    Args:
        pairs: (P, 2) mention and label, each pair once, sorted.
        found: mentions of each training document.
        carried: label ids of each training document.
        n_labels: L.
        slack: words of a stretch beyond those of a mention.
        smoothing: s > 0.
    """
    labels_of: dict[int, list[int]] = defaultdict(list)
    for mention, label in pairs.tolist():
        labels_of[mention].append(label)
    n_mention: Counter[int] = Counter()
    n_joint: Counter[tuple[int, int]] = Counter()
    shown, shown_with = np.zeros(n_labels), np.zeros(n_labels)  # documents in which a mention of the label is found
    for some, labels in zip(found, carried, strict=True):
        own, here = set(labels.tolist()), set()
        for mention in (place for place, beyond in some.items() if beyond <= slack):
            n_mention[mention] += 1
            here.update(labels_of[mention])
            n_joint.update((mention, label) for label in labels_of[mention] if label in own)
        shown[list(here)] += 1
        shown_with[list(here & own)] += 1
    n_label = np.bincount(np.concatenate([np.zeros(0, np.int64), *carried]), minlength=n_labels)
    joint = np.array([n_joint[mention, label] for mention, label in pairs.tolist()], np.float64)
    whole = np.array([n_mention[mention] for mention in pairs[:, 0].tolist()], np.float64)
    bare, bare_with = len(found) - shown, n_label - shown_with
    starts = np.searchsorted(pairs[:, 0], np.arange(int(pairs[:, 0].max(initial=-1)) + 2))
    return Weights(
        pairs[:, 1], pairs[:, 0], np.log((joint + smoothing) / (whole - joint + smoothing)), starts,
        np.log((bare_with + smoothing) / (bare - bare_with + smoothing)),
    )  # fmt: skip


def mentions(corpus: Path, marked: Path, *, settings: BaselineSettings, evaluation: Evaluation, out: Path) -> None:
    """Choose the slack on validation and write the scores of val and test, choices.json and weights.parquet.

    weights.parquet holds a constant a label, for none of its mentions found, and what each mention adds to it; only the
    mention of largest weight counts. A label without training documents has no score (-inf).

    Args:
        corpus: folder of the corpus.
        marked: its mentions.parquet.
        settings: the slacks that are tried, and the smoothing.
        evaluation: limits of the score files.
        out: the system's evaluation folder.

    Raises:
        InputError: the scores need more memory than `evaluation.memory_gb`.
    """
    labels = load_labels(corpus)
    require_memory((labels.n_documents, labels.n_labels), settings=evaluation, where="scores of mentions")
    dictionary, pairs = _dictionary(read_mentions(marked), labels)
    indptr, indices = labels.part("train")
    carried = [indices[indptr[row] : indptr[row + 1]].astype(np.int64) for row in range(len(indptr) - 1)]
    found = {split: [dictionary.found(text) for text in labels.texts(split)] for split in ("train", *SPLITS)}
    truth = {split: truth_of(labels, split) for split in SPLITS}

    weights = {
        slack: count(pairs, found["train"], carried, labels.n_labels, slack=slack, smoothing=settings.smoothing)
        for slack in settings.mention_slack
    }

    def score(split: str, slack: int) -> np.ndarray:
        scores = weights[slack].of(found[split], slack)
        scores[:, labels.counts[0] == 0] = -np.inf
        return scores

    slack, choices = best_of(
        "slack", {slack: ndcg(score("val", slack), truth["val"]) for slack in settings.mention_slack}
    )
    beside = Path(corpus) / "train.parquet"
    write(
        out, document_ids={split: labels.document_ids(split) for split in SPLITS}, label_names=labels.names,
        truth=truth, scores={split: score(split, slack) for split in SPLITS}, natural_threshold=0.0,
        evaluation=evaluation, beside=beside, names=read_names(corpus),
        choices={**choices, "mentions": len(dictionary.mentions)},
    )  # fmt: skip
    with owner_only(is_private(beside)):
        chosen = weights[slack]
        named = [" ".join(dictionary.mentions[place]) for place in chosen.mention.tolist()]
        adds = chosen.weight - chosen.absent[chosen.label]
        write_label_weights(out, labels, chosen.absent, chosen.label, named, adds)


@dataclass(frozen=True)
class Marked:
    """What `mentions` knows, read back to say which mention counts in a text.

    Attributes:
        dictionary: of all mentions.
        adds: label -> mention -> what it adds.
        slack: as chosen.
    """

    dictionary: Dictionary
    adds: Mapping[str, Mapping[str, float]]
    slack: int

    @classmethod
    def of(cls, folder: Path, labels: Labels) -> Marked:
        """Of the baseline's evaluation folder and the corpus that it was counted on."""
        table = read_weights(folder).drop_nulls("feature")
        adds: dict[str, dict[str, float]] = defaultdict(dict)
        for label, mention, weight in table.select("label", "feature", "weight").iter_rows():
            adds[label][mention] = weight
        listed = [tuple(mention.split(" ")) for mention in table["feature"].unique(maintain_order=True)]
        slack = json.loads(require_file(Path(folder) / "choices.json").read_text())["slack"]
        return cls(_look_for(listed, labels), adds, slack)

    def found(self, text: str, label: str) -> dict[str, float]:
        """The mention of a label that counts in a text -> 1, or nothing."""
        adds = self.adds.get(label, {})
        near = (place for place, beyond in self.dictionary.found(text).items() if beyond <= self.slack)
        found = (" ".join(self.dictionary.mentions[place]) for place in near)
        best = max((one for one in found if one in adds), key=lambda one: (adds[one], one), default=None)
        return {} if best is None else {best: 1.0}


def _dictionary(marked: pl.DataFrame, labels: Labels) -> tuple[Dictionary, np.ndarray]:
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
