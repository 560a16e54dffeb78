"""TF-IDF of n-grams of words or of characters, and one linear support vector machine a label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.target import SPLITS, best_of, ndcg, truth_of, write
from plant.baselines.words import largest, write_features, write_weights
from plant.corpus.reader import Labels, load_labels
from plant.ground.errors import InputError
from plant.ground.files import is_private
from plant.ground.identity import read_names
from plant.ground.seeds import generator, stream
from plant.ground.settings import BaselineSettings, Evaluation
from plant.ground.staging import owner_only
from plant.metrics.scores import require_memory

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

TOLERANCE = 0.1
"""Of the solver: liblinear's own default. scikit-learn's 1e-4 takes twice the time for the same metrics."""
_CHUNK = 16  # labels a task of a worker process


@dataclass(frozen=True)
class _Problem:
    """Everything that fitting one label needs.

    Attributes:
        train: (training documents, features) float64.
        held: (val + test documents, features) float64.
        indptr, documents: the training documents of each label, CSC of the truth.
        names: label names; they name the random streams.
        max_negatives, seed: see `tfidf_linear`.
        kept: largest weights of a label that are kept.
    """

    train: sp.csr_matrix
    held: sp.csr_matrix
    indptr: np.ndarray
    documents: np.ndarray
    names: tuple[str, ...]
    max_negatives: int | None
    seed: int
    kept: int


@dataclass(frozen=True)
class _Job:
    """What both baselines are given; see `tfidf_linear`."""

    labels: Labels
    settings: BaselineSettings
    evaluation: Evaluation
    out: Path
    seed: int
    threads: int


@dataclass(frozen=True)
class Model:
    """What is kept of one label's model: the features of largest weight, the weights, and the intercept."""

    features: np.ndarray
    weights: np.ndarray
    intercept: float


@dataclass(frozen=True)
class Fitted:
    """Models of some labels, and their (held-out documents, labels) float32 scores."""

    scores: np.ndarray
    models: tuple[Model, ...]


def tfidf_linear(
    corpus: Path, *, settings: BaselineSettings, evaluation: Evaluation, out: Path, seed: int = 0, threads: int = 1
) -> None:
    """Fit, choose C on validation, and write the scores of val and test, choices.json, weights and features.

    Features: (1 + log tf) * idf over word n-grams, rows of unit length. For each label the L2-regularised
    squared hinge loss is minimised over its positives and at most `max_negatives` of the other documents, drawn
    by the seed for that label alone. The score is the signed distance w.x + b: above 0 means predicted.
    A label on every training document scores 1 everywhere, one without training documents has no score (-inf).

    C is chosen by ranking the labels that have training documents; of more than `choice_labels`, that many are
    drawn by the seed, and the others are fitted under the chosen C only. weights.parquet keeps the `reasons` largest
    weights of each label under that C (`plant.baselines.words`).

    Args:
        corpus: folder of the corpus.
        settings: n-grams, features, C, negatives.
        evaluation: limits of the score files.
        out: the system's evaluation folder.
        seed: of the negatives, of the labels that C is chosen on, and of the solver.
        threads: worker processes; the scores do not depend on it.

    Raises:
        InputError: no n-gram is left, or the scores need more memory than `evaluation.memory_gb`.
    """
    job = _Job(load_labels(corpus), settings, evaluation, Path(out), seed, threads)
    _linear(job, word_analysis(settings), {})


def tfidf_characters(
    corpus: Path, *, settings: BaselineSettings, evaluation: Evaluation, out: Path, seed: int = 0, threads: int = 1
) -> None:
    """As `tfidf_linear`, over n-grams of characters within words (`character_ngrams`), without accents.

    Parts of words are shared by inflections, compounds, misspellings and words of one root ("nephr", "hepat"), which
    rare labels cannot learn word by word (choice C30).
    """
    job = _Job(load_labels(corpus), settings, evaluation, Path(out), seed, threads)
    shortest, longest = settings.character_ngrams
    _linear(job, character_analysis(shortest, longest), {"character_ngrams": [shortest, longest]})


def _linear(job: _Job, analysis: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Fit, choose, score and write; `analysis` says what n-grams are, `record` what choices.json adds."""
    labels, settings, seed, threads, out = job.labels, job.settings, job.seed, job.threads, job.out
    n_val, n_test = int(labels.split_sizes[1]), int(labels.split_sizes[2])
    require_memory((n_val + n_test, labels.n_labels), settings=job.evaluation, where="scores of a linear model")
    problem, vectorizer = _problem(labels, analysis, settings, seed)
    grams = vectorizer.get_feature_names_out()
    truth = {split: truth_of(labels, split) for split in SPLITS}
    scored = np.flatnonzero(np.diff(problem.indptr) > 0)
    sample = _sample(scored, settings.choice_labels, seed)
    chosen, choices = _choose_c(problem, sample, truth["val"], settings.svm_c, threads)
    rest = np.setdiff1d(scored, sample)
    others = fit_labels(problem, rest, choices["c"], threads=threads)
    scores = np.full((n_val + n_test, labels.n_labels), -np.inf, np.float32)
    scores[:, sample] = chosen.scores
    scores[:, rest] = others.scores
    beside = labels.folder / "train.parquet"
    write(
        out, document_ids={split: labels.document_ids(split) for split in SPLITS}, label_names=labels.names,
        truth=truth, scores={"val": scores[:n_val], "test": scores[n_val:]}, natural_threshold=0.0,
        evaluation=job.evaluation, beside=beside, names=read_names(labels.folder),
        choices={**choices, "c_chosen_on_labels": len(sample), "features": problem.train.shape[1], **record},
    )  # fmt: skip
    with owner_only(is_private(beside)):
        write_features(out, grams, vectorizer.idf_)
        models = dict(zip((*sample, *rest), (*chosen.models, *others.models), strict=True))
        _write_models(out, {label: models[label] for label in sorted(models)}, problem.names, grams)


def _problem(
    labels: Labels, analysis: Mapping[str, Any], settings: BaselineSettings, seed: int
) -> tuple[_Problem, TfidfVectorizer]:
    vectorizer, train, held = _features(labels, analysis, settings)
    truth = truth_of(labels, "train").tocsc()
    truth.sort_indices()
    fixed = (labels.names, settings.max_negatives, seed, settings.reasons)
    return _Problem(train, held, truth.indptr, truth.indices, *fixed), vectorizer


def word_analysis(settings: BaselineSettings) -> dict[str, Any]:
    """How scikit-learn takes a text apart into n-grams of words."""
    return {"ngram_range": (1, settings.ngrams)}


def character_analysis(shortest: int, longest: int) -> dict[str, Any]:
    """How scikit-learn takes a text apart into n-grams of characters within words."""
    return {"analyzer": "char_wb", "strip_accents": "unicode", "ngram_range": (shortest, longest)}


def character_grams(shortest: int, longest: int) -> Callable[[str], list[str]]:
    """Text -> its n-grams of characters, as `tfidf_characters` counts them.

    >>> character_grams(4, 4)("Tós")
    [' tos', 'tos ']
    """
    from sklearn.feature_extraction.text import CountVectorizer

    analyzer: Callable[[str], list[str]] = CountVectorizer(**character_analysis(shortest, longest)).build_analyzer()
    return analyzer


def _features(
    labels: Labels, analysis: Mapping[str, Any], settings: BaselineSettings
) -> tuple[TfidfVectorizer, sp.csr_matrix, sp.csr_matrix]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = {split: labels.texts(split) for split in ("train", *SPLITS)}
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, max_features=settings.max_features,
        min_df=min(settings.min_documents, len(texts["train"])), **analysis,
    )  # fmt: skip
    try:
        train = vectorizer.fit_transform(texts["train"])
    except ValueError as error:
        raise InputError(
            str(labels.folder), expected=f"n-grams in {settings.min_documents} or more training documents", got="none",
            fix="Check the texts, or lower baselines.min_documents.",
        ) from error  # fmt: skip
    return vectorizer, train, vectorizer.transform([*texts["val"], *texts["test"]])


def _sample(scored: np.ndarray, size: int, seed: int) -> np.ndarray:
    if len(scored) <= size:
        return scored
    return np.sort(generator(seed, "tfidf_linear", "choice").choice(scored, size=size, replace=False))


def _choose_c(
    problem: _Problem, sample: np.ndarray, truth: sp.csr_array, options: tuple[float, ...], threads: int
) -> tuple[Fitted, dict]:
    """The sampled labels under the best C, and the record of the choice."""
    fitted = {c: fit_labels(problem, sample, c, threads=threads) for c in options}
    n_val = truth.shape[0]
    best, record = best_of("c", {c: ndcg(some.scores[:n_val], truth[:, sample]) for c, some in fitted.items()})
    return fitted[best], record


def fit_labels(problem: _Problem, labels: np.ndarray, c: float, *, threads: int) -> Fitted:
    """Each label's model is fitted, applied and dropped but for its largest weights."""
    if not len(labels):
        return Fitted(np.zeros((problem.held.shape[0], 0), np.float32), ())
    if threads == 1:
        fitted = [_fit_label(problem, label, c) for label in labels]
        return Fitted(np.column_stack([scores for scores, _ in fitted]), tuple(model for _, model in fitted))
    import joblib

    # Processes, not threads: liblinear's random numbers are one state a process.
    chunks = [labels[start : start + _CHUNK] for start in range(0, len(labels), _CHUNK)]
    work = (joblib.delayed(fit_labels)(problem, chunk, c, threads=1) for chunk in chunks)
    parts = joblib.Parallel(n_jobs=threads)(work)
    return Fitted(np.concatenate([p.scores for p in parts], axis=1), tuple(m for p in parts for m in p.models))


def _fit_label(problem: _Problem, label: int, c: float) -> tuple[np.ndarray, Model]:
    from sklearn.svm import LinearSVC

    positive = np.zeros(problem.train.shape[0], bool)
    positive[problem.documents[problem.indptr[label] : problem.indptr[label + 1]]] = True
    if positive.all():
        return np.ones(problem.held.shape[0], np.float32), Model(np.zeros(0, np.int64), np.zeros(0), 1.0)
    rows = _rows(positive, problem.max_negatives, problem.seed, problem.names[label])
    state = stream(problem.seed, "tfidf_linear", "solver", problem.names[label]) % 2**31
    model = LinearSVC(C=c, tol=TOLERANCE, dual=True, random_state=state)
    model.fit(problem.train[rows], positive[rows])
    weights = model.coef_[0]
    best = largest(weights, problem.kept)
    kept = Model(best, weights[best], float(model.intercept_[0]))
    return model.decision_function(problem.held).astype(np.float32), kept


def _write_models(out: Path, models: Mapping[int, Model], names: Sequence[str], grams: np.ndarray) -> None:
    """weights.parquet: by label, its intercept first, then by magnitude."""
    sizes = [1 + len(model.features) for model in models.values()]
    features = [gram for model in models.values() for gram in (None, *grams[model.features])]
    weights = [np.concatenate([[model.intercept], model.weights]) for model in models.values()]
    labels = np.repeat(np.array(names, dtype=object)[list(models)], sizes)
    write_weights(out, labels, pl.Series(features, dtype=pl.String), np.concatenate([*weights, np.zeros(0)]))


def _rows(positive: np.ndarray, max_negatives: int | None, seed: int, name: str) -> np.ndarray:
    """The documents that a label is fitted on, ascending."""
    negatives = np.flatnonzero(~positive)
    if max_negatives is None or len(negatives) <= max_negatives:
        return np.arange(len(positive))
    drawn = generator(seed, "tfidf_linear", "negatives", name).choice(negatives, size=max_negatives, replace=False)
    return np.sort(np.concatenate((np.flatnonzero(positive), drawn)))
