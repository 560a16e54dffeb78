"""Labels of new texts, with thresholds and reasons, a part of the texts at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plant.ground.errors import InputError, nearest
from plant.metrics.scores import Scores
from plant.metrics.thresholds import NATURAL, TUNED
from plant.metrics.top import top_labels
from plant.serving.inputs import Document
from plant.serving.system import SavedSystem
from plant.serving.words import spans_of

if TYPE_CHECKING:
    from plant.serving.network import Shares

REASONS = 5
"""Words that explain a label, at most."""
SMALL = 0.05
"""A reason that is smaller than this share of the strongest one of its label is not shown."""
Span = tuple[int, int]
Chosen = tuple[np.ndarray, np.ndarray]
"""Numbers of labels, and their scores (m) each."""


@dataclass(frozen=True)
class Reason:
    """A word or n-gram that made a score, and its character spans.

    Its weight is what it adds to the score, or for a network alone the share of the label's attention on it.
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
    """What a model says of a document: labels by falling score. The spans of reasons count in the cleaned text."""

    id: str
    labels: tuple[LabelScore, ...]
    text: str

    def as_dict(self, *, text: bool = False) -> dict[str, Any]:
        """Plain data for JSON; with the text only if asked for."""
        labels = [{**vars(one), "reasons": [{**vars(reason)} for reason in one.reasons]} for one in self.labels]
        return {"id": self.id, "labels": labels, **({"text": self.text} if text else {})}


class Cut(NamedTuple):
    """A label is predicted if its score, less what its frequency takes from it, is above one value.

    Attributes:
        value: of all labels.
        less: slope * log(1 + training documents) of each label, float32 (L,); zeros without a slope.
    """

    value: float
    less: np.ndarray

    def above(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Whether the scores of some labels are above, compared in float32 as the value was tuned."""
        return values - self.less[labels] > np.float32(self.value)


def cut_of(model: SavedSystem, rule: str) -> Cut:
    """The thresholds of a rule of `plant.metrics.thresholds`, tuned on validation when the system was trained.

    Raises:
        InputError: the folder has no threshold of this rule.
    """
    saved = model.thresholds
    entries = {TUNED: saved, **{name: entry for name, entry in saved.items() if isinstance(entry, dict)}}
    if saved.get(NATURAL) is not None:
        entries[NATURAL] = {"value": saved[NATURAL]}
    if rule not in entries:
        raise InputError("rule", expected=f"one of {', '.join(entries)}", got=repr(rule), fix=nearest(rule, entries))
    entry, less = entries[rule], np.zeros(len(model.labels), np.float32)
    if slope := entry.get("slope"):
        counts = np.array([record["training_documents"] for record in model.labels])
        less = (slope * np.log1p(counts)).astype(np.float32)
    return Cut(float(entry["value"]), less)


def predictions(
    model: SavedSystem,
    documents: Iterable[Document],
    *,
    top: int | None = None,
    reasons: int = 0,
    labels: Sequence[str] = (),
    rule: str = TUNED,
) -> Iterator[Prediction]:
    """Label documents in parts of `model.part_size`.

    Args:
        model: of a saved folder.
        documents: in order.
        top: labels of highest score a document, predicted or not, also where the pipeline keeps fewer. None: the labels
            above the threshold.
        reasons: words that explain each of these labels, at most.
        labels: exactly these, whatever their scores; none: as `top` says.
        rule: of thresholds.

    Raises:
        InputError: a text is empty or too long, or a label or the rule is not one of the model.
    """
    cut = cut_of(model, rule)
    choose = partial(_chosen, cut=cut, top=top, asked=model.label_ids(labels))
    every, waiting = bool(labels) or (top or 0) > model.system["top"], iter(documents)
    while part := list(islice(waiting, model.part_size)):
        yield from _of_part(model, part, cut, choose, reasons, every=every)


def _of_part(
    model: SavedSystem,
    part: Sequence[Document],
    cut: Cut,
    choose: Callable[[Scores, int], Chosen],
    reasons: int,
    *,
    every: bool,
) -> Iterator[Prediction]:
    """The predictions of documents that are scored together. With `every`, no score is dropped for its rank."""
    texts, attended = model.clean([document.text for document in part]), dict[int, list[list[Reason]]]()

    # a network alone gives its reasons while its states are at hand: a second pass would double the time
    def look(row: int, logits: np.ndarray, spans: np.ndarray, shares: Shares) -> None:
        chosen, _ = choose(model.as_scores(logits[None], every=every), 0)
        attended[row] = _attended(texts[row], spans, shares(chosen), reasons) if len(chosen) else []

    scores = model.score_cleaned(texts, look if reasons and not model.scorers else None, every=every)
    for row, document in enumerate(part):
        chosen, values = choose(scores, row)
        why = attended.get(row, [[] for _ in chosen])
        if reasons and model.scorers:
            why = _contributed(model, texts[row], chosen.tolist(), reasons)
        found = []
        for label, value, above, said in zip(chosen, values, cut.above(values, chosen), why, strict=True):
            record, threshold = model.labels[label], cut.value + float(cut.less[label])
            name, description = record["label"], record["description"]
            found.append(LabelScore(name, float(value), threshold, bool(above), description, tuple(said)))
        yield Prediction(document.id, tuple(found), texts[row])


def _chosen(scores: Scores, row: int, *, cut: Cut, top: int | None, asked: Sequence[int]) -> Chosen:
    """Numbers of the labels of a document, by falling score, and their scores."""
    if scores.dense is not None:
        values = scores.dense[row]
    else:
        values = np.full(len(scores.label_names), -np.inf, np.float32)
        kept = scores.retrieved[[row]]
        values[kept.indices] = kept.data
    most = min(len(values), top) if top is not None and not asked else len(values)
    best = top_labels(values[None], most)[0]
    best = best[(best >= 0) & np.isfinite(values[best])]
    if asked:
        best = best[np.isin(best, asked)]
    elif top is None:
        best = best[cut.above(values[best], best)]
    return best, values[best]


def _contributed(model: SavedSystem, text: str, labels: Sequence[int], most: int) -> list[list[Reason]]:
    """Words by what they add to the score of each label, summed over the channels with the weights of the channels."""
    added: list[Counter[str]] = [Counter() for _ in labels]
    for channel, scorer in model.scorers.items():
        for place, words in enumerate(scorer.contributions(text, labels)):
            share = _share(model, channel, labels[place])
            added[place].update({word: share * value for word, value in words.items()})
    return [
        [Reason(word, value, tuple(spans_of(word, text))) for word, value in _ordered(words, most)] for words in added
    ]


def _share(model: SavedSystem, channel: str, label: int) -> float:
    """What one unit of a channel's score adds to the system's score of a label."""
    system = model.system
    if system["kind"] == "combined":
        place = system["channels"].index(channel)
        weight = (system["weight"], 1 - system["weight"])[place]
        return float(weight / system["scales"][place][1])
    if system["kind"] != "evidence":
        return 1.0
    ends, place = model.arrays["ends"], system["channels"].index(channel)
    scalars = np.array(system["scalars"][place * len(ends) : (place + 1) * len(ends)])
    return float(scalars @ ends[:, label])


def _ordered(words: Mapping[str, float], most: int) -> list[tuple[str, float]]:
    """By falling magnitude, then by name, without words that add nothing; at most so many, none of them `SMALL`."""
    found = sorted(((word, value) for word, value in words.items() if value), key=lambda item: (-abs(item[1]), item[0]))
    return [(word, value) for word, value in found[:most] if abs(value) >= SMALL * abs(found[0][1])]


def _attended(text: str, spans: np.ndarray, shares: np.ndarray, most: int) -> list[list[Reason]]:
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
