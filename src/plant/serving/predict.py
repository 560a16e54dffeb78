"""Labels of new texts, with thresholds and reasons, a part of the texts at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from plant.metrics.scores import Scores
from plant.metrics.thresholds import TUNED
from plant.metrics.top import top_labels
from plant.serving.cut import Cut, cut_of
from plant.serving.inputs import Document
from plant.serving.scoring import as_scores, clean_texts, part_size, score_cleaned
from plant.serving.system import SavedSystem
from plant.serving.words import spans_of

if TYPE_CHECKING:
    from plant.serving.network import Look

REASONS = 5
"""Words that explain a label, at most."""
SMALL = 0.05
"""A reason that is smaller than this share of the strongest one of its label is not shown."""
Span = tuple[int, int]


@dataclass(frozen=True)
class Reason:
    """A word that made a score.

    Attributes:
        word: a word or an n-gram.
        weight: what it adds to the score (systems that read words), or the share of the label's attention on it
            (a network alone).
        spans: where it is in the text, character spans.
    """

    word: str
    weight: float
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class LabelScore:
    """One label of a document. It is `predicted` if its score is above its threshold."""

    label: str
    score: float
    threshold: float
    predicted: bool
    description: str | None = None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """What a model says of a document.

    Attributes:
        id: of the document.
        labels: by falling score.
        text: as the model read it, after cleaning; the spans of reasons count in it.
    """

    id: str
    labels: tuple[LabelScore, ...]
    text: str

    def as_dict(self, *, text: bool = False) -> dict[str, Any]:
        """Plain data for JSON; with the text only if asked for."""
        labels = [{**vars(one), "reasons": [{**vars(reason)} for reason in one.reasons]} for one in self.labels]
        return {"id": self.id, "labels": labels, **({"text": self.text} if text else {})}


def predictions(
    model: SavedSystem,
    documents: Iterable[Document],
    *,
    top: int | None = None,
    reasons: int = 0,
    labels: Sequence[str] = (),
    rule: str = TUNED,
) -> Iterator[Prediction]:
    """Label documents in parts of `part_size`.

    Args:
        model: of a saved folder.
        documents: in order.
        top: labels of highest score a document, predicted or not. None: the labels above the threshold.
        reasons: words that explain each of these labels; 0: none.
        labels: exactly these, whatever their scores; none: as `top` says.
        rule: threshold rule, see `cut_of`.

    Raises:
        InputError: a text is empty or too long, or a label or the rule is not one of the model.
    """
    asked, cut = model.label_ids(labels), cut_of(model, rule)
    waiting = iter(documents)
    while part := list(islice(waiting, part_size(model))):
        texts = clean_texts(model, [document.text for document in part])
        choose = partial(_chosen, model, cut, top=top, asked=asked)
        looked: dict[int, list[list[Reason]]] = {}
        watch = bool(reasons) and not model.parts.scorers
        scores = score_cleaned(model, texts, _look(model, texts, choose, reasons, looked) if watch else None)
        for row, document in enumerate(part):
            chosen = choose(scores, row)
            names, why = [label for label, _ in chosen], looked.get(row, [[] for _ in chosen])
            if reasons and not watch:
                why = explain(model, texts[row], names, most=reasons)
            found = (_label(model, cut, *one, said) for one, said in zip(chosen, why, strict=True))
            yield Prediction(document.id, tuple(found), texts[row])


def _chosen(
    model: SavedSystem, cut: Cut, scores: Scores, row: int, top: int | None, asked: Sequence[int]
) -> list[tuple[int, float]]:
    """Labels of a document and their scores, by falling score."""
    if scores.dense is not None:
        values = scores.dense[row]
    else:
        values = np.full(model.config.num_labels, -np.inf, np.float32)
        kept = scores.retrieved[[row]]
        values[kept.indices] = kept.data
    most = min(len(values), top) if top is not None and not asked else len(values)
    best = top_labels(values[None], most)[0]
    best = best[(best >= 0) & np.isfinite(values[best])]
    if asked:
        best = best[np.isin(best, asked)]
    elif top is None:
        best = best[cut.above(values[best], best)]
    return [(int(label), float(values[label])) for label in best]


def _label(model: SavedSystem, cut: Cut, label: int, value: float, reasons: Sequence[Reason]) -> LabelScore:
    record = model.parts.labels[label]
    above = bool(cut.above(np.array([value], np.float32), np.array([label]))[0])
    return LabelScore(record["label"], value, cut.threshold(label), above, record["description"], tuple(reasons))


def explain(model: SavedSystem, text: str, labels: Sequence[int], *, most: int | None = None) -> list[list[Reason]]:
    """Why labels got their scores: of each, the strongest reason first.

    A system that reads words adds up what each word contributes in its channels, with the weights of the channels; a
    network alone gives the words by the share of its label attention (the mean over heads), which says where the
    network looked and not what made the score.

    Args:
        model: of a saved folder.
        text: after cleaning.
        labels: their numbers.
        most: reasons of a label that are to be shown; None: all.
    """
    if not model.parts.scorers:
        looked: dict[int, list[list[Reason]]] = {}
        score_cleaned(model, [text], _look(model, [text], lambda *_: [(label, 0.0) for label in labels], most, looked))
        return looked.get(0, [[] for _ in labels])
    added: list[Counter[str]] = [Counter() for _ in labels]
    for channel, scorer in model.parts.scorers.items():
        for place, words in enumerate(scorer.contributions(text, labels)):
            share = _share(model, channel, labels[place])
            added[place].update({word: share * value for word, value in words.items()})
    return [
        [Reason(word, value, tuple(spans_of(word, text))) for word, value in _ordered(words, most)] for words in added
    ]


def _ordered(words: Mapping[str, float], most: int | None) -> list[tuple[str, float]]:
    """By falling magnitude, then by name, without words that add nothing; at most so many, none of them `SMALL`."""
    found = sorted(((word, value) for word, value in words.items() if value), key=lambda item: (-abs(item[1]), item[0]))
    if most is None or not found:
        return found
    return [(word, value) for word, value in found[:most] if abs(value) >= SMALL * abs(found[0][1])]


def _share(model: SavedSystem, channel: str, label: int) -> float:
    """What one unit of a channel's score adds to the system's score of a label."""
    system = model.config.system
    if system["kind"] == "combined":
        place = system["channels"].index(channel)
        weight = (system["weight"], 1 - system["weight"])[place]
        return float(weight / system["scales"][place][1])
    if system["kind"] != "evidence":
        return 1.0
    ends, place = model.parts.arrays["ends"], system["channels"].index(channel)
    scalars = np.array(system["scalars"][place * len(ends) : (place + 1) * len(ends)])
    return float(scalars @ ends[:, label])


def _look(
    model: SavedSystem,
    texts: Sequence[str],
    choose: Callable[[Scores, int], list[tuple[int, float]]],
    most: int | None,
    looked: dict[int, list[list[Reason]]],
) -> Look:
    """Note the reasons of a text's labels in `looked` while its hidden states are at hand: a second pass through the
    backbone would double the time."""

    def look(text: int, logits: np.ndarray, spans: np.ndarray, shares: Callable[[Sequence[int]], np.ndarray]) -> None:
        labels = [label for label, _ in choose(as_scores(model, logits[None]), 0)]
        looked[text] = _attended(texts[text], spans, shares(labels), most) if labels else []

    return look


def _attended(text: str, spans: np.ndarray, shares: np.ndarray, most: int | None) -> list[list[Reason]]:
    """Words by the attention of each label, from the shares (m, n) of tokens with character spans (n, 2).

    A word gets the shares of all tokens that overlap it. Words after the last token were not read.
    """
    places: dict[str, list[Span]] = {}
    found = [match for match in re.finditer(r"\w+", text) if match.start() < spans[-1, 1]]
    for match in found:
        places.setdefault(match[0].lower(), []).append(match.span())
    starts, ends = np.array([match.span() for match in found], np.int64).reshape(-1, 2).T
    first, last = np.searchsorted(spans[:, 1], starts, "right"), np.searchsorted(spans[:, 0], ends, "left")
    sums = np.cumsum(np.pad(shares, ((0, 0), (1, 0))), axis=1, dtype=np.float64)  # (m, n + 1)
    numbers = {word: number for number, word in enumerate(places)}
    attended = np.zeros((len(places), len(shares)))
    rows = np.array([numbers[match[0].lower()] for match in found], np.int64)
    np.add.at(attended, rows, (sums[:, last] - sums[:, first]).T)
    by_label = (dict(zip(places, column, strict=True)) for column in attended.T.tolist())
    return [[Reason(word, share, tuple(places[word])) for word, share in _ordered(words, most)] for words in by_label]
