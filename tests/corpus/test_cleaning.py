"""Cleaning against plain loops over single texts."""

import re

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from plant.corpus import cleaning
from plant.corpus.cleaning import clean
from plant.ground.settings import Cleaning

TEXTS = st.text(st.sampled_from(list("abzAZ09 \n\t.,:_-/\"'[]*éÑ²")), max_size=60)


def edin(text: str, most: int | None) -> str:
    words = [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word and not re.fullmatch("[0-9]+", word)]
    return " ".join(words[:most])


def caml(text: str, most: int | None) -> str:
    words = [word for word in re.findall(r"\w+", text.lower()) if not word.isdecimal()]
    return " ".join(words[:most])


def one(text: str, style: str, most: int | None = None) -> str:
    return clean(pl.Series([text]), Cleaning(style=style, max_words=most)).item()


@given(st.lists(TEXTS, min_size=1, max_size=5), st.none() | st.integers(1, 5))
def test_edin_and_caml_equal_the_loops(texts, most):
    def cleaned(style: str) -> list[str]:
        return clean(pl.Series(texts), Cleaning(style=style, max_words=most)).to_list()

    assert cleaned("edin") == [edin(text, most) for text in texts]
    texts = [text.replace("²", "") for text in texts]  # a word to Python, none to polars
    assert cleaned("caml") == [caml(text, most) for text in texts]


@given(TEXTS, st.integers(1, 5))
def test_a_cut_raw_text_is_its_own_beginning(text, most):
    cut = one(text, "raw", most)
    assert one(text, "raw") == text
    assert text.startswith(cut)
    assert cut.split() == text.split()[:most]


def test_more_texts_than_a_batch_come_out_in_order(monkeypatch):
    monkeypatch.setattr(cleaning, "BATCH", 2)
    assert clean(pl.Series(["A", "B", None, "D", "E"]), Cleaning(style="edin")).to_list() == ["a", "b", "", "d", "e"]
    assert len(clean(pl.Series([], dtype=pl.String), Cleaning(style="edin"))) == 0
