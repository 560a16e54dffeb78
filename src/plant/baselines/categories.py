"""Log-odds of a label's category: what is known of its siblings stands in for what few documents cannot say.

A code of ICD names its category in its own name ("k21.9" is a kind of "k21"). Labels of one category share words, and a
rare label has common siblings: the log-odds of `mig_log_odds`, of the category in place of the label, counted on the
documents of all its labels. All labels of a category have the same score, so this is a channel of Stage 3 (choice C30)
rather than a system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from plant.baselines.log_odds import presence, present_words
from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Outcome, Sources, best_of, ndcg
from plant.baselines.words import table_with_constants
from plant.corpus.reader import load_tokens
from plant.relevance.log_odds import LogOdds, log_odds_of_best

if TYPE_CHECKING:
    from plant.relevance.choice import Training


def category_log_odds(sources: Sources) -> Outcome:
    """Choose k on validation, and score.

    The score of a label is the log-odds of its category, given which of the category's k words of highest mutual
    information are present (`plant.relevance.log_odds`). k is chosen by how well the categories of a document rank. A
    label without training documents has no score (-inf), whatever its category has.

    Raises:
        InputError: corpus and tokens do not belong together.
    """
    from plant.relevance.table import load_training

    labels, settings, text = sources.labels, sources.settings, load_tokens(sources.files["tokens"])
    names, category = categories_of(labels.names, sources.category_ends)
    member = sp.csr_array(
        (np.ones(labels.n_labels), (np.arange(labels.n_labels), category)), shape=(labels.n_labels, len(names))
    )
    truth = {split: sp.csr_array((sources.truth(split).astype(np.float64) @ member) > 0) for split in ("train", "val")}
    training = load_training(labels.folder, text.folder, "mig", sources.relevance)
    training = _of_categories(training, names, truth["train"])
    present = {split: presence(text, labels.rows(split)) for split in SPLITS}
    odds = {
        k: log_odds_of_best(
            training, "mig", sources.relevance.model_copy(update={"k": k}), smoothing=settings.smoothing
        )
        for k in settings.log_odds_k
    }
    k, choices = best_of("k", {k: ndcg(some.of(present["val"]), truth["val"]) for k, some in odds.items()})
    trained, chosen = labels.counts[0] > 0, odds[k]
    scores = {
        split: np.where(trained, chosen.of(some)[:, category], -np.inf).astype(np.float32)
        for split, some in present.items()
    }
    label, entry = _spread(chosen, category)
    words = [text.vocabulary[token] for token in chosen.token[entry]]
    weights = table_with_constants(labels, chosen.constant[category], label, words, chosen.weight[entry])
    return Outcome(scores, None, {**choices, "categories": len(names)}, weights)


def categories_of(names: Sequence[str], ends: str | None) -> tuple[tuple[str, ...], np.ndarray]:
    """The categories, sorted, and the one of each label; a label without `ends` in its name is its own category.

    >>> categories_of(["k21.0", "k21.9", "r52"], ".")
    (('k21', 'r52'), array([0, 0, 1]))
    """
    known, of_label = np.unique([name.split(ends, 1)[0] for name in names], return_inverse=True)
    return tuple(known.tolist()), of_label


def _of_categories(training: Training, names: tuple[str, ...], truth: sp.csr_array) -> Training:
    """The same documents with categories for labels."""
    columns = truth.tocsc()
    columns.sort_indices()
    return replace(
        training, names=names, indptr=columns.indptr.astype(np.int64), documents=columns.indices.astype(np.int64)
    )


def _spread(odds: LogOdds, category: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Label and entry of `odds` of every word of every label: a label has the words of its category."""
    ends = np.cumsum(np.bincount(odds.label, minlength=len(odds.constant)))
    by_category = np.split(np.argsort(odds.label, kind="stable"), ends[:-1])
    entries = [by_category[one] for one in category]
    return np.repeat(np.arange(len(category)), [len(some) for some in entries]), np.concatenate(entries)


register(
    Baseline(
        "category_log_odds", "MIG log-odds of the category", category_log_odds, inputs=("labels", "tokens"),
        needs="category_ends", channel="categories", features=present_words,
    )
)  # fmt: skip
