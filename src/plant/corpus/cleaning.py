"""Text cleaning. It changes results: the same model has a micro-F1 of 58.9 or 59.8 with two cleanings."""

from __future__ import annotations

import polars as pl

from plant.ground.settings import Cleaning

BATCH = 4096
"""Number of documents cleaned at once. It limits the memory for the lists of words."""


def clean(texts: pl.Series, cleaning: Cleaning) -> pl.Series:
    """Clean a column of texts.

    - `edin`: lower case. Each run of characters other than ASCII letters and digits becomes a space. Words that are
      numbers are dropped. Words are separated by single spaces.
    - `caml`: words (`\\w+`, Unicode) in lower case, without numbers, separated by single spaces.
    - `raw`: unchanged.

    Then only the first `max_words` words are kept, with the white space between them.

    Null becomes the empty string. So does a text without words, with `edin` and `caml`.

    >>> clean(pl.Series(["BP 120/80; HbA1c 7.2"]), Cleaning(style="edin")).to_list()
    ['bp hba1c']
    """
    parts = [_clean(texts.slice(start, BATCH), cleaning) for start in range(0, len(texts), BATCH)]
    return pl.concat(parts) if parts else texts.cast(pl.String)


def _clean(texts: pl.Series, cleaning: Cleaning) -> pl.Series:
    texts = texts.cast(pl.String).fill_null("")
    if cleaning.style != "raw":
        between_words = r"[^a-z0-9]+" if cleaning.style == "edin" else r"\W+"
        texts = texts.str.to_lowercase().str.replace_all(between_words, " ")
        texts = texts.str.replace_all(r"\b\d+\b", "").str.replace_all(r"\s+", " ").str.strip_chars()
    if cleaning.max_words is not None:
        texts = texts.str.extract_all(r"\s*\S+").list.head(cleaning.max_words).list.join("")
    return texts
