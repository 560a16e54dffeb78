"""The sign between labels that a look at a table guesses: labels are cut at it, and names that hold it are not."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pytest

from plant.serving.look import are_tags, best_separator


def drawn(documents: int, names: Sequence[str], labels: int, *, order: Callable = sorted) -> list[list[str]]:
    random = np.random.default_rng(0)
    return [order(random.choice(names, labels, replace=False).tolist()) for _ in range(documents)]


CODES_OF_ALL = [f"{number}.{number % 7}" for number in range(2000)]
LISTS = {
    "more labels than documents": drawn(200, CODES_OF_ALL, 12),
    "fewer lists than labels": drawn(40, CODES_OF_ALL[:80], 3) * 5,
    "labels of all documents first": [["0.0", *names] for names in drawn(200, CODES_OF_ALL[1:80], 3)],
    "not in order": drawn(200, CODES_OF_ALL[:300], 3, order=list),
    "one label for most": [[name] for [name] in drawn(190, CODES_OF_ALL[:30], 1)] + drawn(10, CODES_OF_ALL[:30], 2),
}


@pytest.mark.parametrize("sign", [";", ",", "|", ", ", " "])
@pytest.mark.parametrize("what", LISTS)
def test_the_separator_of_lists_is_the_one_that_joined_them(what, sign):
    assert best_separator(pl.Series([sign.join(names) for names in LISTS[what]])) == (sign.strip() or sign)


def test_commas_and_spaces_in_names_of_labels_cut_nothing():
    titles = [f"disease {n}, {how}" for n, how in zip(range(60), ["mild", "acute"] * 30, strict=True)]
    assert best_separator(pl.Series(titles * 3)) == ";"
    lists = ["; ".join(names) for names in drawn(300, titles, 3)]
    assert best_separator(pl.Series(lists)) == ";"


WORDS = [f"w{chr(97 + one // 26)}{chr(97 + one % 26)}" for one in range(300)]


def tags(documents: int, labels: int, most: int, *, order: Callable = sorted) -> list[str]:
    """One to `most` of the labels for each document, rare ones rarely; no label has a digit."""
    random, shares = np.random.default_rng(1), 1 / np.arange(1, labels + 1)
    drawn_ones = [
        random.choice(WORDS[:labels], random.integers(1, min(labels, most) + 1), replace=False, p=shares / shares.sum())
        for _ in range(documents)
    ]
    return [" ".join(order(names.tolist())) for names in drawn_ones]


@pytest.mark.parametrize("order", [sorted, list])
@pytest.mark.parametrize(
    ("documents", "labels", "most"), [(600, 3, 3), (600, 20, 2), (600, 20, 6), (600, 200, 4), (40, 5, 3)]
)
def test_tags_with_spaces_between_them_are_cut(documents, labels, most, order):
    assert best_separator(pl.Series(tags(documents, labels, most, order=order))) == " "


def test_tags_that_never_stand_alone_are_cut_where_they_change_places():
    assert best_separator(pl.Series([" ".join(names) for names in drawn(600, WORDS[:100], 6)])) == " "


HOW, WHAT = ["very low", "low", "medium", "high", "very high"], ["risk", "impact", "cost", "effort"]
PHRASES = {
    "names of two words": ["New York", "New Delhi", "San Francisco", "York", "travel"] * 120,
    "words of a few kinds": [f"{how} {what}" for how in HOW for what in WHAT] * 30,
    "all pairs of two kinds": [f"{one} {other}" for one in WORDS[:10] for other in WORDS[10:20]] * 6,
    "phrases and commas": ["New York, travel", "travel", "York, New", "New", "York"] * 100,
    "one word each": WORDS[:20] * 30,
}


@pytest.mark.parametrize("what", PHRASES)
def test_labels_that_are_phrases_are_not_cut_at_spaces(what):
    assert best_separator(pl.Series(PHRASES[what])) != " "
    assert not are_tags(pl.Series(PHRASES[what]))
