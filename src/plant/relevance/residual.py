"""Log-odds of every document and label for the residual on the logit, cross-fitted (choice C27).

A training document's are counted without its own fold: the tokens of each label are chosen, and their counts taken,
on the other folds. Those of validation and test documents come from all training documents. With one fold nothing is
left out: the in-sample control, whose log-odds of training documents are optimistic.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from plant.corpus.folds import deal_folds
from plant.corpus.reader import SPLITS, Labels, load_labels, load_tokens
from plant.ground.errors import InputError
from plant.ground.files import is_private
from plant.ground.settings import Relevance
from plant.ground.staging import owner_only
from plant.relevance.choice import Training
from plant.relevance.contingency import BLOCK, presence, spans
from plant.relevance.log_odds import log_odds_of_best
from plant.relevance.pieces import growing_arrays
from plant.relevance.table import load_training

LARGEST = 2**31
"""Log-odds (document, label) of one file: 4 GiB in fp16."""


def write_residual(
    corpus: Path, tokens: Path, measure: str, settings: Relevance, *, folds: int, smoothing: float, out: Path
) -> dict[str, float]:
    """Write the log-odds of every document, all splits.

    Args:
        corpus, tokens: their folders.
        measure: one of `measures.MEASURES`, by which the tokens of a label are chosen.
        settings: k of them a label, sign, min_documents, and the seed of the folds.
        folds: 1 counts everything on all training documents.
        smoothing: s of `plant.relevance.log_odds`, above 0.
        out: file to write: `log_odds` f16, (N, L) row after row. A label without training documents has its smoothed
            prior.

    Returns:
        For each split the mean log-odds of true labels with training documents: in-sample ones are far above those of
        validation. Facts for the record, which no score is made from.

    Raises:
        InputError: as `write_relevance`; more than `LARGEST` numbers; fewer groups than folds.
    """
    labels, texts = load_labels(corpus), load_tokens(tokens)
    if labels.n_documents * labels.n_labels > LARGEST:
        raise InputError(
            "finetunings: residual", expected=f"at most {LARGEST} log-odds, documents times labels",
            got=f"{labels.n_documents} documents and {labels.n_labels} labels",
            fix="Leave the residual out for label sets of this size.",
        )  # fmt: skip
    whole = load_training(corpus, tokens, measure, settings)
    key = "finetunings: residual_folds"
    fold = deal_folds(labels.groups("train"), folds, settings.seed, purpose="relevance", key=key)
    parts = [whole, *(without(whole, fold == one) for one in range(folds) if folds > 1)]
    odds = [log_odds_of_best(part, measure, settings, smoothing=smoothing) for part in parts]
    which = np.zeros(labels.n_documents, np.int64)  # of `odds`: that of all training documents, ...
    if folds > 1:
        which[: len(fold)] = 1 + fold  # ... or that without the document's fold
    sums, counts = np.zeros(len(SPLITS)), np.zeros(len(SPLITS))
    most, vocabulary = max(1, BLOCK // max(1, labels.n_labels)), texts.vocabulary_size
    with (
        owner_only(is_private(Path(corpus) / "train.parquet")),
        growing_arrays(out, {"log_odds": np.float16}, {"measure": measure}) as append,
    ):
        for first, last in spans(np.diff(texts.offsets), BLOCK, most=most):
            present = presence(texts, slice(first, last), vocabulary)
            values = np.empty((last - first, labels.n_labels), np.float32)
            for one in np.unique(which[first:last]):
                rows = np.flatnonzero(which[first:last] == one)
                values[rows] = odds[one].of(present[rows])
            append("log_odds", values)
            _add_true(values, labels, first, sums, counts)
    return {f"true_{split}": float(sums[i] / counts[i]) for i, split in enumerate(SPLITS) if counts[i]}


def without(training: Training, left_out: np.ndarray) -> Training:
    """What a table is made from, as if some training documents (bool[N]) were not there."""
    kept = ~left_out
    lengths, stays = np.diff(training.offsets), kept[training.documents]
    return replace(
        training, input_ids=training.input_ids[np.repeat(kept, lengths)],
        offsets=np.concatenate(([0], np.cumsum(lengths[kept]))),
        indptr=np.concatenate(([0], np.cumsum(stays)))[training.indptr],
        documents=(np.cumsum(kept) - 1)[training.documents[stays]],
    )  # fmt: skip


def _add_true(values: np.ndarray, labels: Labels, first: int, sums: np.ndarray, counts: np.ndarray) -> None:
    """Add the log-odds of the true labels that have training documents, by split."""
    ends = np.cumsum(labels.split_sizes)
    known = labels.counts[0] > 0
    for row, odds in enumerate(values):
        split = int(np.searchsorted(ends, first + row, side="right"))
        true = labels.row(first + row)
        true = true[known[true]]
        sums[split] += odds[true].sum()
        counts[split] += len(true)
