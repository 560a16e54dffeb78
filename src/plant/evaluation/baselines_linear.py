"""TF-IDF of word n-grams and one linear support vector machine a label."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from plant.corpus.identity import read_names
from plant.corpus.reader import Labels, load_labels
from plant.errors import InputError
from plant.evaluation.baselines_target import SPLITS, best_of, ndcg, truth_of, write
from plant.evaluation.scores import require_memory
from plant.seeds import generator, stream
from plant.settings import BaselineSettings, Evaluation

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
    """

    train: sp.csr_matrix
    held: sp.csr_matrix
    indptr: np.ndarray
    documents: np.ndarray
    names: tuple[str, ...]
    max_negatives: int | None
    seed: int


def tfidf_linear(
    corpus: Path, *, settings: BaselineSettings, evaluation: Evaluation, out: Path, seed: int = 0, threads: int = 1
) -> None:
    """Fit, choose C on validation, and write the scores of val and test and choices.json.

    Features: (1 + log tf) * idf over word n-grams, rows of unit length. For each label the L2-regularised
    squared hinge loss is minimised over its positives and at most `max_negatives` of the other documents, drawn
    by the seed for that label alone. The score is the signed distance w.x + b: above 0 means predicted.
    A label on every training document scores 1 everywhere, one without training documents has no score (-inf).

    C is chosen by ranking the labels that have training documents; of more than `choice_labels`, that many are
    drawn by the seed, and the others are fitted under the chosen C only.

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
    labels = load_labels(corpus)
    n_val, n_test = int(labels.split_sizes[1]), int(labels.split_sizes[2])
    require_memory((n_val + n_test, labels.n_labels), settings=evaluation, where="scores of tfidf_linear")
    problem = _problem(labels, settings, seed)
    truth = {split: truth_of(labels, split) for split in SPLITS}
    scored = np.flatnonzero(np.diff(problem.indptr) > 0)
    sample = _sample(scored, settings.choice_labels, seed)
    columns, choices = _choose_c(problem, sample, truth["val"], settings.svm_c, threads)
    rest = np.setdiff1d(scored, sample)
    scores = np.full((n_val + n_test, labels.n_labels), -np.inf, np.float32)
    scores[:, sample] = columns
    scores[:, rest] = fitted_scores(problem, rest, choices["c"], threads=threads)
    write(
        out, document_ids={split: labels.document_ids(split) for split in SPLITS}, label_names=labels.names,
        truth=truth, scores={"val": scores[:n_val], "test": scores[n_val:]}, natural_threshold=0.0,
        evaluation=evaluation, beside=Path(corpus) / "train.parquet", names=read_names(corpus),
        choices={**choices, "c_chosen_on_labels": len(sample), "features": problem.train.shape[1]},
    )  # fmt: skip


def _problem(labels: Labels, settings: BaselineSettings, seed: int) -> _Problem:
    train, held = _features(labels, settings)
    truth = truth_of(labels, "train").tocsc()
    truth.sort_indices()
    return _Problem(train, held, truth.indptr, truth.indices, labels.names, settings.max_negatives, seed)


def _features(labels: Labels, settings: BaselineSettings) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = {split: labels.texts(split) for split in ("train", *SPLITS)}
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, settings.ngrams), max_features=settings.max_features,
        min_df=min(settings.min_documents, len(texts["train"])),
    )  # fmt: skip
    try:
        train = vectorizer.fit_transform(texts["train"])
    except ValueError as error:
        raise InputError(
            str(labels.folder), expected=f"words in {settings.min_documents} or more training documents", got="none",
            fix="Check the texts, or lower baselines.min_documents.",
        ) from error  # fmt: skip
    return train, vectorizer.transform([*texts["val"], *texts["test"]])


def _sample(scored: np.ndarray, size: int, seed: int) -> np.ndarray:
    if len(scored) <= size:
        return scored
    return np.sort(generator(seed, "tfidf_linear", "choice").choice(scored, size=size, replace=False))


def _choose_c(
    problem: _Problem, sample: np.ndarray, truth: sp.csr_array, options: tuple[float, ...], threads: int
) -> tuple[np.ndarray, dict]:
    """Scores of the sampled labels under the best C, and the record of the choice."""
    columns = {c: fitted_scores(problem, sample, c, threads=threads) for c in options}
    n_val = truth.shape[0]
    best, record = best_of("c", {c: ndcg(scores[:n_val], truth[:, sample]) for c, scores in columns.items()})
    return columns[best], record


def fitted_scores(problem: _Problem, labels: np.ndarray, c: float, *, threads: int) -> np.ndarray:
    """(held-out documents, labels) float32: each label's model is fitted, applied and dropped."""
    if not len(labels):
        return np.zeros((problem.held.shape[0], 0), np.float32)
    if threads == 1:
        return np.column_stack([_label_scores(problem, label, c) for label in labels])
    import joblib

    # Processes, not threads: liblinear's random numbers are one state a process.
    chunks = [labels[start : start + _CHUNK] for start in range(0, len(labels), _CHUNK)]
    work = (joblib.delayed(fitted_scores)(problem, chunk, c, threads=1) for chunk in chunks)
    return np.concatenate(joblib.Parallel(n_jobs=threads)(work), axis=1)


def _label_scores(problem: _Problem, label: int, c: float) -> np.ndarray:
    from sklearn.svm import LinearSVC

    positive = np.zeros(problem.train.shape[0], bool)
    positive[problem.documents[problem.indptr[label] : problem.indptr[label + 1]]] = True
    if positive.all():
        return np.ones(problem.held.shape[0], np.float32)
    rows = _rows(positive, problem.max_negatives, problem.seed, problem.names[label])
    state = stream(problem.seed, "tfidf_linear", "solver", problem.names[label]) % 2**31
    model = LinearSVC(C=c, tol=TOLERANCE, dual=True, random_state=state)
    model.fit(problem.train[rows], positive[rows])
    return model.decision_function(problem.held).astype(np.float32)


def _rows(positive: np.ndarray, max_negatives: int | None, seed: int, name: str) -> np.ndarray:
    """The documents that a label is fitted on, ascending."""
    negatives = np.flatnonzero(~positive)
    if max_negatives is None or len(negatives) <= max_negatives:
        return np.arange(len(positive))
    drawn = generator(seed, "tfidf_linear", "negatives", name).choice(negatives, size=max_negatives, replace=False)
    return np.sort(np.concatenate((np.flatnonzero(positive), drawn)))
