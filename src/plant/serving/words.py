"""Word scores that need no training corpus: weights of words and n-grams as arrays, for the channels of Stage 3.

The score of a label is its constant plus the sum of weights times the document's values. For the log-odds
(`mig_log_odds`) a value is 1 if the word is in the document; for the linear model (`tfidf_linear`) it is the TF-IDF
value of the n-gram.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.words import split_words, tfidf
from plant.corpus.encoders import WORD


@dataclass(frozen=True, eq=False)
class WordScorer:
    """One channel of word scores.

    Attributes:
        features: V words or n-grams.
        weights: (V, L) float64, columns of trained labels.
        constant: (L,) float64.
        idf: (V,) float64 for a linear model; empty for log-odds.
        max_tokens: words of a document that are read; None: all.
    """

    features: tuple[str, ...]
    weights: sp.csr_array
    constant: np.ndarray
    idf: np.ndarray
    max_tokens: int | None = None

    @classmethod
    def from_tables(
        cls, weights: pl.DataFrame, labels: Sequence[str], *, idf: Mapping[str, float] | None = None,
        max_tokens: int | None = None,
    ) -> Self:  # fmt: skip
        """From weights.parquet of a baseline (`plant.baselines.words`) and the trained labels in order.

        A linear model has `idf`: n-gram -> idf. Log-odds read `max_tokens` words of a document.
        """
        columns = pl.DataFrame({"label": labels, "column": np.arange(len(labels))})
        table = weights.join(columns, on="label", how="inner", maintain_order="left")
        constants, words = table.filter(pl.col("feature").is_null()), table.drop_nulls("feature")
        constant = np.zeros(len(labels))
        constant[constants["column"].to_numpy()] = constants["weight"].to_numpy()
        # the length of a TF-IDF row counts all n-grams, those without a weight too
        features = words["feature"].unique().sort() if idf is None else pl.Series(list(idf), dtype=pl.String)
        rows = pl.DataFrame({"feature": features, "row": np.arange(len(features))})
        placed = words.join(rows, on="feature", how="left", maintain_order="left")
        places = (placed["row"].to_numpy(), placed["column"].to_numpy())
        matrix = sp.csr_array((placed["weight"].to_numpy(), places), shape=(len(features), len(labels)))
        names = tuple(features.to_list())
        values = np.array(list((idf or {}).values()), np.float64)
        return cls(names, matrix, constant, values, max_tokens)

    @classmethod
    def from_arrays(cls, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """What `record` and `arrays` gave."""
        features, shape = tuple(record["features"]), (len(record["features"]), len(arrays["constant"]))
        matrix = sp.csr_array((arrays["weights"], arrays["columns"], arrays["ends"]), shape=shape)
        return cls(features, matrix, arrays["constant"], arrays["idf"], record["max_tokens"])

    def record(self) -> dict[str, Any]:
        """What words.json holds of the channel."""
        return {"features": list(self.features), "max_tokens": self.max_tokens}

    def arrays(self) -> dict[str, np.ndarray]:
        """What words.safetensors holds of the channel."""
        columns, ends = self.weights.indices.astype(np.int32), self.weights.indptr.astype(np.int64)
        return {
            "weights": self.weights.data, "columns": columns, "ends": ends, "constant": self.constant, "idf": self.idf,
        }  # fmt: skip

    @property
    def is_linear(self) -> bool:
        return len(self.idf) > 0

    @cached_property
    def _places(self) -> dict[str, int]:
        return {feature: place for place, feature in enumerate(self.features)}

    @cached_property
    def _idf(self) -> dict[str, float]:
        return dict(zip(self.features, self.idf.tolist(), strict=True))

    @cached_property
    def _longest(self) -> int:
        """Words in the longest n-gram."""
        return max((feature.count(" ") + 1 for feature in self.features), default=1)

    @cached_property
    def _multiplied(self) -> sp.csr_array:
        """The weights in the type that the pipeline multiplies in: float32 for log-odds (`LogOdds.of`)."""
        return self.weights if self.is_linear else self.weights.astype(np.float32)

    def values(self, text: str) -> dict[str, float]:
        """Feature -> its value in a document, for the features that are there."""
        if self.is_linear:
            words = split_words(text)
            sizes = range(1, self._longest + 1)
            grams = (" ".join(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1))
            return tfidf(grams, self._idf)
        found = [match[0].lower() for match in WORD.finditer(text)][: self.max_tokens]
        return dict.fromkeys((word for word in found if word in self._places), 1.0)

    def score(self, texts: Sequence[str]) -> np.ndarray:
        """(N, L) float32."""
        rows = [self.values(text) for text in texts]
        places = [sorted((self._places[feature], value) for feature, value in row.items()) for row in rows]
        ends = np.cumsum([0, *map(len, places)])
        columns = np.array([place for row in places for place, _ in row], np.int64)
        data = np.array([value for row in places for _, value in row], self._multiplied.dtype)
        found = sp.csr_array((data, columns, ends), shape=(len(rows), len(self.features)))
        return ((found @ self._multiplied).toarray() + self.constant).astype(np.float32)

    def contributions(self, text: str, labels: Sequence[int]) -> list[dict[str, float]]:
        """Of each label: feature -> what it adds to the score; only features that are there and weigh something."""
        values = self.values(text)
        rows = self.weights[[self._places[feature] for feature in values]][:, list(labels)].tocoo()
        names, added = list(values), [dict[str, float]() for _ in labels]
        for row, column, weight in zip(*rows.coords, rows.data, strict=True):
            added[column][names[row]] = values[names[row]] * float(weight)
        return added


def spans_of(feature: str, text: str) -> list[tuple[int, int]]:
    """Where a word or n-gram stands in a text, as character spans.

    >>> spans_of("chest pain", "Chest pain, no pain")
    [(0, 10)]
    """
    pattern = r"\W+(?:\w\W+)*".join(re.escape(word) for word in feature.split(" "))
    return [match.span() for match in re.finditer(rf"\b{pattern}\b", text, re.IGNORECASE)]
