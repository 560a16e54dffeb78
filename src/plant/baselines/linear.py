"""TF-IDF of n-grams of words or of characters, and one linear support vector machine per label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Features, Outcome, Sources, best_of, ndcg
from plant.baselines.words import FEATURES, largest, table_of, tfidf
from plant.corpus.reader import Labels
from plant.ground.errors import InputError
from plant.ground.files import read_json, require_file
from plant.ground.seeds import generator, stream
from plant.ground.settings import BaselineSettings

if TYPE_CHECKING:
    import polars as pl

TOLERANCE = 0.1
"""Tolerance of the solver, liblinear's default. scikit-learn's 1e-4 takes twice the time and gives the same metrics."""
_CHUNK = 16  # labels per task of a worker process
_SMALL = 10**8  # numbers to read (features of all documents, times labels): below, starting workers costs more


@dataclass(frozen=True)
class _Problem:
    """All that is needed to fit one label. It goes to worker processes, so it holds no text."""

    train: scipy.sparse.csr_matrix  # (training documents, features)
    held: scipy.sparse.csr_matrix  # (val + test documents, features)
    truth: scipy.sparse.csc_array  # (training documents, labels)
    names: tuple[str, ...]  # of the labels; they name the random streams
    settings: BaselineSettings
    seed: int


@dataclass(frozen=True)
class _Fitted:
    """One label's model: float32 scores of the held-out documents, the features of largest weight, the intercept."""

    scores: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    intercept: float


def tfidf_linear(sources: Sources) -> Outcome:
    """Fit, choose C on validation, and score.

    Features are (1 + log tf) * idf of word n-grams, rows of unit length. For each label the L2-regularised squared
    hinge loss is minimised over its positives and at most `max_negatives` other documents, drawn by the seed for that
    label alone. The score is the signed distance w.x + b; above 0 means predicted. A label on every training document
    scores 1 everywhere. A label without training documents has no score (-inf).

    C is chosen on the labels with training documents. If there are more than `choice_labels`, that many are drawn by
    the seed, and the others are fitted with the chosen C only. weights.parquet keeps the `reasons` largest weights of
    each label (`plant.baselines.words`).

    Raises:
        InputError: no n-gram is left.
    """
    return _linear(sources, {"ngram_range": (1, sources.settings.ngrams)}, {})


def tfidf_characters(sources: Sources) -> Outcome:
    """The same over n-grams of characters within words (`character_ngrams`), without accents.

    Inflections, compounds, misspellings and words of one root ("nephr", "hepat") share parts of words. A rare label has
    too few documents to learn each of these words (choice C30).
    """
    sizes = sources.settings.character_ngrams
    return _linear(sources, character_analysis(*sizes), {"character_ngrams": list(sizes)})


def _linear(sources: Sources, analysis: Mapping[str, Any], record: Mapping[str, Any]) -> Outcome:
    """`analysis` says how scikit-learn makes n-grams. `record` is added to choices.json."""
    import polars as pl
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels, settings, texts = sources.labels, sources.settings, sources.labels.texts("train")
    least = min(settings.min_documents, len(texts))
    vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=settings.max_features, min_df=least, **analysis)
    try:
        train = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise InputError(
            str(labels.folder), expected=f"n-grams in {settings.min_documents} or more training documents", got="none",
            fix="Check the texts, or lower baselines.min_documents.",
        ) from error  # fmt: skip
    held = vectorizer.transform([text for split in SPLITS for text in labels.texts(split)])
    grams = vectorizer.get_feature_names_out()
    problem = _Problem(train, held, sources.truth("train").tocsc(), labels.names, settings, sources.seed)
    sample = scored = np.flatnonzero(labels.counts[0])
    if len(scored) > settings.choice_labels:
        drawn = generator(sources.seed, "tfidf_linear", "choice").choice(scored, settings.choice_labels, replace=False)
        sample = np.sort(drawn)
    n_val, val = int(labels.split_sizes[1]), sources.truth("val")[:, sample]
    tried = {c: fit_labels(problem, sample, c, threads=sources.threads) for c in settings.svm_c}
    c, choices = best_of("c", {c: ndcg(_scores(fitted, sample, problem)[:n_val], val) for c, fitted in tried.items()})
    rest = np.setdiff1d(scored, sample)
    fitted = {**tried[c], **fit_labels(problem, rest, c, threads=sources.threads)}
    scores = _scores(fitted, np.arange(labels.n_labels), problem)
    choices |= {"c_chosen_on_labels": len(sample), "features": train.shape[1], **record}
    return Outcome(
        {"val": scores[:n_val], "test": scores[n_val:]}, 0.0, choices, _weights(fitted, labels.names, grams),
        pl.DataFrame({"feature": pl.Series(grams, dtype=pl.String), "idf": vectorizer.idf_}),
    )  # fmt: skip


def character_analysis(shortest: int, longest: int) -> dict[str, Any]:
    """Arguments by which scikit-learn splits a text into n-grams of characters within words."""
    return {"analyzer": "char_wb", "strip_accents": "unicode", "ngram_range": (shortest, longest)}


def values_of_grams(folder: Path, _labels: Labels) -> Features:
    """The TF-IDF values of a document's n-grams."""
    import polars as pl
    from sklearn.feature_extraction.text import CountVectorizer

    idf = dict(pl.read_parquet(require_file(folder / FEATURES)).select("feature", "idf").iter_rows())
    sizes = read_json(folder / "choices.json").get("character_ngrams")
    longest = max((gram.count(" ") + 1 for gram in idf), default=1)
    analysis = {"ngram_range": (1, longest)} if sizes is None else character_analysis(*sizes)
    grams = CountVectorizer(**analysis).build_analyzer()
    of_text = lru_cache(1)(lambda text: tfidf(grams(text), idf))
    return lambda document, _label: of_text(document.text)


def _scores(fitted: Mapping[int, _Fitted], labels: np.ndarray, problem: _Problem) -> np.ndarray:
    """(held-out documents, labels) float32; -inf for a label without a model."""
    scores = np.full((problem.held.shape[0], len(labels)), -np.inf, np.float32)
    for place, label in enumerate(labels):
        if label in fitted:
            scores[:, place] = fitted[label].scores
    return scores


def fit_labels(problem: _Problem, labels: np.ndarray, c: float, *, threads: int) -> dict[int, _Fitted]:
    """Fit and apply the model of each label. Only its scores and largest weights are kept."""
    import joblib

    # Processes, not threads: liblinear has one state of random numbers per process.
    work = (joblib.delayed(_fit_label)(problem, label, c) for label in labels.tolist())
    workers = threads if problem.train.nnz * len(labels) > _SMALL else 1
    fitted: Iterable[_Fitted] = joblib.Parallel(n_jobs=workers, batch_size=_CHUNK)(work)
    return dict(zip(labels.tolist(), fitted, strict=True))


def _fit_label(problem: _Problem, label: int, c: float) -> _Fitted:
    from sklearn.svm import LinearSVC

    positive = np.zeros(problem.train.shape[0], bool)
    positive[problem.truth[:, [label]].indices] = True
    if positive.all():
        return _Fitted(np.ones(problem.held.shape[0], np.float32), np.zeros(0, np.int64), np.zeros(0), 1.0)
    rows = _rows(positive, problem.settings.max_negatives, problem.seed, problem.names[label])
    state = stream(problem.seed, "tfidf_linear", "solver", problem.names[label]) % 2**31
    model = LinearSVC(C=c, tol=TOLERANCE, dual=True, random_state=state)
    model.fit(problem.train[rows], positive[rows])
    weights = model.coef_[0]
    best = largest(weights, problem.settings.reasons)
    scores = model.decision_function(problem.held).astype(np.float32)
    return _Fitted(scores, best, weights[best], float(model.intercept_[0]))


def _weights(fitted: Mapping[int, _Fitted], names: tuple[str, ...], grams: np.ndarray) -> pl.DataFrame:
    """weights.parquet: sorted by label; its intercept first, then its weights by magnitude."""
    models = [(names[label], fitted[label]) for label in sorted(fitted)]
    labels = [name for name, model in models for _ in range(1 + len(model.features))]
    features = [gram for _, model in models for gram in (None, *grams[model.features])]
    weights = [weight for _, model in models for weight in (model.intercept, *model.weights)]
    return table_of(labels, features, np.array(weights, np.float64))


def _rows(positive: np.ndarray, max_negatives: int | None, seed: int, name: str) -> np.ndarray:
    """The documents on which a label is fitted, ascending."""
    negatives = np.flatnonzero(~positive)
    if max_negatives is None or len(negatives) <= max_negatives:
        return np.arange(len(positive))
    drawn = generator(seed, "tfidf_linear", "negatives", name).choice(negatives, size=max_negatives, replace=False)
    return np.sort(np.concatenate((np.flatnonzero(positive), drawn)))


for name, title, function, channel in (
    ("tfidf_linear", "TF-IDF + linear", tfidf_linear, "linear"),
    ("tfidf_characters", "TF-IDF of characters + linear", tfidf_characters, "characters"),
):
    register(
        Baseline(
            name, title, function, inputs=("documents", "labels"), outputs=("weights.parquet", "features.parquet"),
            threads=2, channel=channel, features=values_of_grams,
        )
    )  # fmt: skip
