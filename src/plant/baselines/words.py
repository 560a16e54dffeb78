"""What the baselines know of words, kept beside their scores: features.parquet and weights.parquet, to be reasons.

- `weights.parquet`: label, feature, weight. A row without a feature is the label's constant. The label's score is the
  constant plus the sum of weights times the document's values, over all features; for the linear model the table holds
  the features of largest weight only; of descriptions and mentions the best feature alone counts.
- `features.parquet` (linear models): feature (an n-gram), idf. The document's values are `tfidf`.

Of a credentialed corpus both hold words of patients' notes: they are made readable by their owner only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from pathlib import Path

import numpy as np
import polars as pl

from plant.corpus.reader import Labels
from plant.ground.files import require_file

WEIGHTS, FEATURES = "weights.parquet", "features.parquet"
_WORD = re.compile(r"(?u)\b\w\w+\b")
"""scikit-learn's default, which `tfidf_linear` takes."""


def split_words(text: str) -> list[str]:
    """Words of two letters, digits or underscores at least, in lower case and in order.

    >>> split_words("Rx tórax, a 2nd")
    ['rx', 'tórax', '2nd']
    """
    return _WORD.findall(text.lower())


def largest(weights: np.ndarray, most: int) -> np.ndarray:
    """Places of the weights of largest magnitude that are not 0, largest first; equal ones in the order of places.

    >>> largest(np.array([0.5, -2.0, 0.0, 2.0]), 2).tolist()
    [1, 3]
    """
    size = np.abs(weights)
    if most < size.size:
        size = np.where(size >= np.partition(size, size.size - most)[size.size - most], size, 0)
    places = np.flatnonzero(size)
    return places[np.argsort(-size[places], kind="stable")][:most]


def table_of(labels: Sequence[str] | np.ndarray, features: Iterable[str | None], weights: np.ndarray) -> pl.DataFrame:
    """weights.parquet.

    Args:
        labels: names, one a row.
        features: strings, one a row; None for a constant.
        weights: float64, one a row.
    """
    return pl.DataFrame({
        "label": pl.Series(labels, dtype=pl.String), "feature": pl.Series(features, dtype=pl.String), "weight": weights,
    })  # fmt: skip


def table_with_constants(
    labels: Labels, constant: np.ndarray, label: np.ndarray, features: Sequence[str], weights: np.ndarray
) -> pl.DataFrame:
    """weights.parquet of the labels that have training documents: by label, its constant first, then as given.

    Args:
        labels: of the corpus.
        constant: (L,).
        label, features, weights: id, string and weight of each feature.
    """
    trained = labels.counts[0] > 0
    alone = np.flatnonzero(trained)
    ids = np.concatenate([alone, label])
    order = np.argsort(ids, kind="stable")
    order = order[trained[ids[order]]]
    strings = pl.Series([*[None] * len(alone), *features], dtype=pl.String).gather(order)
    values = np.concatenate([constant[alone], weights])[order]
    return table_of(np.array(labels.names, object)[ids[order]], strings, values)


def read_weights(folder: Path) -> pl.DataFrame:
    """weights.parquet of a baseline.

    Raises:
        InputError: it is missing.
    """
    return pl.read_parquet(require_file(Path(folder) / WEIGHTS))


def read_features(folder: Path) -> dict[str, float]:
    """features.parquet of a baseline: n-gram -> idf."""
    frame = pl.read_parquet(require_file(Path(folder) / FEATURES))
    return dict(zip(frame["feature"].to_list(), frame["idf"].to_list(), strict=True))


def tfidf(grams: Iterable[str], idf: Mapping[str, float]) -> dict[str, float]:
    """The values of a document's features in a linear model: (1 + log tf) * idf, of unit length.

    >>> tfidf(["fever", "high", "fever"], {"fever": 1.0, "high fever": 2.0})
    {'fever': 1.0}
    """
    counts = Counter(gram for gram in grams if gram in idf)
    values = {gram: (1 + log(count)) * idf[gram] for gram, count in counts.items()}
    length = sqrt(sum(value * value for value in values.values()))
    return {gram: value / length for gram, value in values.items()}
