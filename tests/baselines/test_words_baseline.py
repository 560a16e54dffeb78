"""Values of words and choice of weights, which make a linear model's reasons."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from plant.baselines.words import largest, tfidf, word_grams


def test_tfidf_values_are_scikit_learns():
    texts = ["Fever, a high FEVER and rash-like", "rash? no rash; fever.", "x y zz", "naïve été fever"]
    for ngrams in (1, 2, 3):
        vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, ngrams), min_df=1)
        matrix = vectorizer.fit_transform(texts[:2])
        names = vectorizer.get_feature_names_out()
        idf = dict(zip(names, vectorizer.idf_, strict=True))
        matrix = vectorizer.transform(texts)
        for text, row in zip(texts, matrix.toarray(), strict=True):
            values = tfidf(word_grams(text, ngrams), idf)
            assert values == pytest.approx({names[i]: row[i] for i in np.flatnonzero(row)})


def test_the_largest_weights_are_those_of_a_full_sort():
    random = np.random.default_rng(0)
    for most in (1, 3, 9, 50):
        weights = random.integers(-3, 4, size=30) / 2  # ties and zeros
        order = sorted(range(30), key=lambda place: (-abs(weights[place]), place))
        assert largest(weights, most).tolist() == [place for place in order if weights[place]][:most]
