"""The weights of words that baselines write beside their scores. Stage 3 makes reasons from them.

- `weights.parquet`: label, feature, weight. A row without a feature is the label's constant. A label's score is its
  constant plus the sum over features of weight times the document's value. For linear models the table holds the
  features of largest weight only. For descriptions and mentions the best feature alone counts.
- `features.parquet` (linear models): feature (an n-gram), idf. The document's values are those of `tfidf`.

For a credentialed corpus both files hold words of patients' notes, so only the owner can read them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plant.corpus.reader import Labels
from plant.ground.files import require_file

if TYPE_CHECKING:
    import polars as pl

WEIGHTS, FEATURES = "weights.parquet", "features.parquet"
_WORD = re.compile(r"(?u)\b\w\w+\b")
"""The default of scikit-learn, which `tfidf_linear` uses."""


def split_words(text: str) -> list[str]:
    """Words of at least two letters, digits or underscores, in lower case and in order.

    >>> split_words("Rx tórax, a 2nd")
    ['rx', 'tórax', '2nd']
    """
    return _WORD.findall(text.lower())


def largest(weights: np.ndarray, most: int) -> np.ndarray:
    """Places of the weights of largest magnitude, largest first, without zeros. Equal ones are in the order of places.

    >>> largest(np.array([0.5, -2.0, 0.0, 2.0]), 2).tolist()
    [1, 3]
    """
    size = np.abs(weights)
    if most < size.size:
        size = np.where(size >= np.partition(size, size.size - most)[size.size - most], size, 0)
    places = np.flatnonzero(size)
    return places[np.argsort(-size[places], kind="stable")][:most]


def table_of(labels: Sequence[str] | np.ndarray, features: Iterable[str | None], weights: np.ndarray) -> pl.DataFrame:
    """weights.parquet. A row with the feature None is the constant of its label."""
    import polars as pl

    return pl.DataFrame({
        "label": pl.Series(labels, dtype=pl.String), "feature": pl.Series(features, dtype=pl.String), "weight": weights,
    })  # fmt: skip


def table_with_constants(
    labels: Labels, constant: np.ndarray, label: np.ndarray, features: Sequence[str], weights: np.ndarray
) -> pl.DataFrame:
    """weights.parquet of the labels with training documents: sorted by label, its constant first, then as given."""
    import polars as pl

    trained = labels.counts[0] > 0
    alone = np.flatnonzero(trained)
    ids = np.concatenate([alone, label])
    order = np.argsort(ids, kind="stable")
    order = order[trained[ids[order]]]
    strings = pl.Series([*[None] * len(alone), *features], dtype=pl.String).gather(order)
    values = np.concatenate([constant[alone], weights])[order]
    return table_of(np.array(labels.names, object)[ids[order]], strings, values)


def read_weights(folder: Path) -> pl.DataFrame:
    """weights.parquet of a baseline."""
    import polars as pl

    return pl.read_parquet(require_file(folder / WEIGHTS))


def tfidf(grams: Iterable[str], idf: Mapping[str, float]) -> dict[str, float]:
    """The values of a document's features in a linear model: (1 + log tf) * idf, of unit length."""
    counts = Counter(gram for gram in grams if gram in idf)
    values = {gram: (1 + log(count)) * idf[gram] for gram, count in counts.items()}
    length = sqrt(sum(value * value for value in values.values()))
    return {gram: value / length for gram, value in values.items()}
