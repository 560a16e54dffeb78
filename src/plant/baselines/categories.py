"""Log-odds of a label's category: frequent siblings speak for a rare label.

An ICD code contains its category ("k21.9" is a kind of "k21"). Labels of one category share words. This baseline
computes the log-odds of `mig_log_odds` for categories in place of labels, from the documents of all labels of the
category. All labels of a category have the same score, so it is meant as a channel of Stage 3 (choice C30), not as a
system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from plant.baselines.log_odds import present_words
from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Outcome, Sources, best_of, ndcg
from plant.baselines.words import table_with_constants
from plant.corpus.reader import load_tokens
from plant.relevance.contingency import label_documents, presence
from plant.relevance.log_odds import log_odds_of_best


def category_log_odds(sources: Sources) -> Outcome:
    """Choose k on validation by how well categories are ranked, and score.

    The score of a label is the log-odds of its category, given which of the category's k words of highest mutual
    information are present (`plant.relevance.log_odds`). A label without training documents has no score, even if its
    category has one.

    Raises:
        InputError: corpus and tokens do not belong together.
    """
    from plant.relevance.table import load_training

    labels, settings, text = sources.labels, sources.settings, load_tokens(sources.files["tokens"])
    names, category = categories_of(labels.names, sources.category_ends)
    member = scipy.sparse.csr_array(
        (np.ones(labels.n_labels), (np.arange(labels.n_labels), category)), shape=(labels.n_labels, len(names))
    )
    train, val = (scipy.sparse.csr_array((sources.truth(split) @ member) > 0) for split in ("train", "val"))
    indptr, documents = label_documents(train.indptr, train.indices, len(names))
    whole = load_training(labels.folder, text.folder, "mig", sources.relevance)
    training = replace(whole, names=names, indptr=indptr, documents=documents)
    present = {split: presence(text, labels.rows(split), text.vocabulary_size) for split in SPLITS}
    recipes = {k: sources.relevance.model_copy(update={"k": k}) for k in settings.log_odds_k}
    odds = {k: log_odds_of_best(training, "mig", one, smoothing=settings.smoothing) for k, one in recipes.items()}
    k, choices = best_of("k", {k: ndcg(some.of(present["val"]), val) for k, some in odds.items()})
    chosen = odds[k]
    scores = {
        split: np.where(sources.trained, chosen.of(some)[:, category], -np.inf).astype(np.float32)
        for split, some in present.items()
    }
    places = np.split(np.arange(len(chosen.label)), np.searchsorted(chosen.label, np.arange(1, len(names))))
    label = np.repeat(np.arange(labels.n_labels), [len(places[one]) for one in category])
    entry = np.concatenate([places[one] for one in category])  # a label has the words of its category
    words = [text.vocabulary[token] for token in chosen.token[entry]]
    weights = table_with_constants(labels, chosen.constant[category], label, words, chosen.weight[entry])
    return Outcome(scores, None, {**choices, "categories": len(names)}, weights)


def categories_of(names: Sequence[str], ends: str | None) -> tuple[tuple[str, ...], np.ndarray]:
    """The categories, sorted, and the category of each label. A label without `ends` in its name is its own category.

    >>> categories_of(["v45.8.1", "e849.0", "r52", "e849.1"], ".")
    (('e849', 'r52', 'v45'), array([2, 0, 1, 0]))
    """
    known, of_label = np.unique([name.split(ends, 1)[0] for name in names], return_inverse=True)
    return tuple(known.tolist()), of_label


register(
    Baseline(
        "category_log_odds", "MIG log-odds of the category", category_log_odds, inputs=("labels", "tokens"),
        needs="category_ends", counts=True, channel="categories", features=present_words,
    )
)  # fmt: skip
