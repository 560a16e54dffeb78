"""Log-odds of a label's category: what is known of its siblings stands in for what few documents cannot say.

A code of ICD names its category in its own name ("k21.9" is a kind of "k21"). Labels of one category share words, and a
rare label has common siblings: the log-odds of `mig_log_odds`, of the category in place of the label, counted on the
documents of all its labels. All labels of a category have the same score, so this is a channel of Stage 3 (choice C30)
rather than a system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from plant.baselines.log_odds import presence
from plant.baselines.target import SPLITS, best_of, ndcg, truth_of, write
from plant.baselines.words import write_label_weights
from plant.corpus.reader import load_labels, load_tokens
from plant.ground.files import is_private
from plant.ground.identity import read_names
from plant.ground.settings import BaselineSettings, Evaluation, Relevance
from plant.ground.staging import owner_only
from plant.metrics.scores import require_memory
from plant.relevance.choice import Training
from plant.relevance.log_odds import LogOdds, log_odds_of_best
from plant.relevance.table import load_training


def category_log_odds(
    corpus: Path,
    tokens: Path,
    *,
    ends: str,
    relevance: Relevance,
    settings: BaselineSettings,
    evaluation: Evaluation,
    out: Path,
) -> None:
    """Choose k on validation and write the scores of val and test, choices.json and weights.parquet.

    The score of a label is the log-odds of its category, given which of the category's k words of highest mutual
    information are present (`plant.relevance.log_odds`). k is chosen by how well the categories of a document rank. A
    label without training documents has no score (-inf), whatever its category has.

    Args:
        corpus: folder of the corpus.
        tokens: folder of the tokens of the backbone `words`.
        ends: what a label's category ends before; a label without it is its own category.
        relevance: sign and min_documents of the words.
        settings: the values of k that are tried, and the smoothing.
        evaluation: limits of the score files.
        out: the system's evaluation folder.

    Raises:
        InputError: corpus and tokens do not belong together; or the scores need more memory than
            `evaluation.memory_gb`.
    """
    labels, text = load_labels(corpus), load_tokens(tokens)
    require_memory((labels.n_documents, labels.n_labels), settings=evaluation, where="scores of category_log_odds")
    names, category = categories_of(labels.names, ends)
    member = sp.csr_array(
        (np.ones(labels.n_labels), (np.arange(labels.n_labels), category)), shape=(labels.n_labels, len(names))
    )
    truth = {split: truth_of(labels, split) for split in ("train", *SPLITS)}
    of_category = {split: sp.csr_array((some.astype(np.float64) @ member) > 0) for split, some in truth.items()}
    training = _of_categories(load_training(corpus, tokens, "mig", relevance), names, of_category["train"])
    present = {split: presence(text, labels.rows(split)) for split in SPLITS}
    odds = {
        k: log_odds_of_best(training, "mig", relevance.model_copy(update={"k": k}), smoothing=settings.smoothing)
        for k in settings.log_odds_k
    }
    values = {k: ndcg(some.of(present["val"]), of_category["val"]) for k, some in odds.items()}
    k, choices = best_of("k", values)
    trained = labels.counts[0] > 0

    def score(split: str) -> np.ndarray:
        return np.where(trained, odds[k].of(present[split])[:, category], -np.inf).astype(np.float32)

    beside = Path(corpus) / "train.parquet"
    write(
        out, document_ids={split: labels.document_ids(split) for split in SPLITS}, label_names=labels.names,
        truth={split: truth[split] for split in SPLITS}, scores={split: score(split) for split in SPLITS},
        natural_threshold=None, evaluation=evaluation, beside=beside, names=read_names(corpus),
        choices={**choices, "categories": len(names)},
    )  # fmt: skip
    with owner_only(is_private(beside)):
        label, entry = _spread(odds[k], category)
        words = [text.vocabulary[token] for token in odds[k].token[entry]]
        write_label_weights(out, labels, odds[k].constant[category], label, words, odds[k].weight[entry])


def categories_of(names: Sequence[str], ends: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The categories, sorted, and the one of each label.

    >>> categories_of(["k21.0", "k21.9", "r52"], ".")
    (('k21', 'r52'), array([0, 0, 1]))
    """
    found = [name.split(ends, 1)[0] for name in names]
    known = tuple(sorted(set(found)))
    places = {name: place for place, name in enumerate(known)}
    return known, np.array([places[name] for name in found], dtype=np.int64)


def _of_categories(training: Training, names: tuple[str, ...], truth: sp.csr_array) -> Training:
    """The same documents with categories for labels."""
    columns = truth.tocsc()
    columns.sort_indices()
    return replace(
        training, names=names, indptr=columns.indptr.astype(np.int64), documents=columns.indices.astype(np.int64)
    )


def _spread(odds: LogOdds, category: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Label and entry of `odds` of every word of every label: a label has the words of its category."""
    order = np.argsort(odds.label, kind="stable")
    starts = np.searchsorted(odds.label[order], np.arange(len(odds.constant) + 1))
    lengths = np.diff(starts)[category]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(np.arange(len(category)), lengths), order[np.repeat(starts[category], lengths) + within]
