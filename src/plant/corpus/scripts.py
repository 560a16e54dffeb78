"""Texts whose words are not what a reader calls words: scripts without spaces, and words that are cut at marks."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

SCRIPTS = {
    "Chinese or Japanese": (r"\p{Han}\p{Hiragana}\p{Katakana}ー", 4),
    "Thai": (r"\p{Thai}", 10),
    "Lao": (r"\p{Lao}", 10),
    "Khmer": (r"\p{Khmer}", 10),
    "Burmese": (r"\p{Myanmar}", 10),
}
"""Script -> its characters in a regular expression, and the longest mean of characters a word. Words of Chinese have
about 2 characters and words of Thai about 5; runs without a space have 8 and 20."""
SAMPLE = 1000
"""Documents that are looked at, evenly over the texts."""
SHARE = 0.3
"""Smallest share of a script among the letters."""
ADVICE = (
    "Put a space between words beforehand, with a program that cuts this language into words, or name a pretrained "
    "backbone: it has a tokenizer of its own. Baselines and Stage 3 need the spaces in any case, and count no word of "
    "one character"
)
"""What to do about a script without spaces."""


MARKS = 0.1
"""Share of combining marks among letters and marks. From here on, a warning says that they cut words."""


class Unspaced(NamedTuple):
    """Texts whose words have no spaces between them.

    Attributes:
        script: its name.
        documents: how many of the sample have the script.
        sample: how many documents were looked at.
        characters: mean of characters without a space between them.
    """

    script: str
    documents: int
    sample: int
    characters: float

    def __str__(self) -> str:
        return (
            f"{self.documents} of {self.sample} documents are in a script without spaces ({self.script}). A whole "
            f"clause counts as one word: {self.characters:.0f} characters on average. {ADVICE}"
        )


def unspaced(texts: pl.Series) -> Unspaced | None:
    """The script without spaces that the texts are in; None where there is none, or where words have spaces already.

    Only counts leave this function, and no text does.

    >>> unspaced(pl.Series(["今天天气很好我们去公园散步"])).script, unspaced(pl.Series(["今天 天气 很 好", "good day"]))
    ('Chinese or Japanese', None)
    """
    sample = _sample(texts)
    letters = int(sample.str.count_matches(r"[\p{L}\p{M}]").sum())
    for script, (characters, longest) in SCRIPTS.items():
        of_script, runs = (sample.str.count_matches(f"[{characters}]{more}") for more in ("", "+"))
        mean = int(of_script.sum()) / max(1, int(runs.sum()))
        if of_script.sum() > SHARE * letters and mean > longest:
            return Unspaced(script, int((of_script > 0).sum()), len(sample), mean)
    return None


def word_warnings(texts: pl.Series) -> tuple[str, ...]:
    """Sentences about texts whose words are not found; none of them quotes a text.

    Words are runs of letters and digits (`plant.corpus.encoders.WORD`), so a mark that combines with a letter ends a
    word: a vowel sign of Hindi or Thai, or an accent that is a character of its own.

    >>> len(word_warnings(pl.Series(["good day"]))), len(word_warnings(pl.Series(["हिन्दी भाषा में समाचार"])))
    (0, 1)
    """
    found = unspaced(texts)
    if found is not None:
        return (f"{found}.",)
    sample = _sample(texts)
    marked = sample.str.count_matches(r"\p{M}")
    share = int(marked.sum()) / max(1, int(sample.str.count_matches(r"[\p{L}\p{M}]").sum()))
    if share < MARKS:
        return ()
    said = (
        f"{int((marked > 0).sum())} of {len(sample)} documents have letters with combining marks "
        f"({100 * share:.0f}% of their letters). A mark ends a word here, so words are cut into "
        "pieces. If these are accents, normalise the texts (Unicode NFC). If they are vowel signs, as in Hindi or "
        "Thai, name a pretrained backbone, which has a tokenizer of its own; baselines and Stage 3 see the pieces."
    )
    return (said,)


def _sample(texts: pl.Series) -> pl.Series:
    return texts.gather_every(max(1, len(texts) // SAMPLE)).fill_null("")
