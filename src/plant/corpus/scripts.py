"""Texts whose words are not what a reader calls words: scripts without spaces, and words that are cut at marks."""

from __future__ import annotations

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


def word_warnings(texts: pl.Series) -> tuple[str, ...]:
    """Sentences about texts whose words are not found; none of them quotes a text.

    Words are runs of letters and digits (`plant.corpus.encoders.WORD`). In a script without spaces, a whole clause is
    one word. A mark that combines with a letter ends a word: a vowel sign of Hindi or Thai, or an accent that is a
    character of its own.

    >>> texts = ["good day", "今天 天气 很 好", "今天天气很好我们去公园散步", "हिन्दी भाषा में समाचार"]
    >>> [len(word_warnings(pl.Series([text]))) for text in texts]
    [0, 0, 1, 1]
    """
    sample = texts.gather_every(max(1, len(texts) // SAMPLE)).fill_null("")
    letters = int(sample.str.count_matches(r"[\p{L}\p{M}]").sum())
    for script, (characters, longest) in SCRIPTS.items():
        of_script, runs = (sample.str.count_matches(f"[{characters}]{more}") for more in ("", "+"))
        mean = int(of_script.sum()) / max(1, int(runs.sum()))
        if of_script.sum() > SHARE * letters and mean > longest:
            said = (
                f"{int((of_script > 0).sum())} of {len(sample)} documents are in a script without spaces ({script}). A "
                f"whole clause counts as one word: {mean:.0f} characters on average. {ADVICE}."
            )
            return (said,)
    marked = sample.str.count_matches(r"\p{M}")
    share = int(marked.sum()) / max(1, letters)
    if share < MARKS:
        return ()
    said = (
        f"{int((marked > 0).sum())} of {len(sample)} documents have letters with combining marks "
        f"({100 * share:.0f}% of their letters). A mark ends a word here, so words are cut into "
        "pieces. If these are accents, normalise the texts (Unicode NFC). If they are vowel signs, as in Hindi or "
        "Thai, name a pretrained backbone, which has a tokenizer of its own; baselines and Stage 3 see the pieces."
    )
    return (said,)
