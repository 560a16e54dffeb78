"""Values of words, which make a linear model's reasons."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from plant.baselines.linear import values_of_grams
from plant.baselines.target import ExplainedDocument


@pytest.mark.parametrize(
    ("analysis", "record"),
    [({"ngram_range": (1, longest)}, {}) for longest in (1, 2, 3)]
    + [({"analyzer": "char_wb", "strip_accents": "unicode", "ngram_range": (2, 4)}, {"character_ngrams": [2, 4]})],
)
def test_the_values_of_a_text_are_scikit_learns(tmp_path, analysis, record):
    texts = ["Fever, a high FEVER and rash-like", "rash? no rash; fever.", "x y zz", "naïve été fever"]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=1, **analysis).fit(texts[:2])
    names = vectorizer.get_feature_names_out()
    pl.DataFrame({"feature": names.tolist(), "idf": vectorizer.idf_}).write_parquet(tmp_path / "features.parquet")
    (tmp_path / "choices.json").write_text(json.dumps(record))
    values = values_of_grams(tmp_path, None)
    for text, row in zip(texts, vectorizer.transform(texts).toarray(), strict=True):
        expected = {names[i]: row[i] for i in np.flatnonzero(row)}
        assert values(ExplainedDocument(text, frozenset()), "any label") == pytest.approx(expected)
