"""Naive Bayes on the presence of each label's few most informative words: evidence without a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.target import SPLITS, best_of, ndcg, truth_of, write
from plant.baselines.words import write_label_weights
from plant.corpus.reader import Labels, Tokens, load_labels, load_tokens
from plant.ground.errors import InputError
from plant.ground.files import is_private, require_file
from plant.ground.identity import read_names
from plant.ground.settings import BaselineSettings, Evaluation
from plant.ground.staging import owner_only
from plant.metrics.scores import require_memory
from plant.relevance import shortlist
from plant.relevance.log_odds import LogOdds
from plant.relevance.log_odds import log_odds as relevance_log_odds


def mig_log_odds(
    corpus: Path, tokens: Path, relevance: Path, *, settings: BaselineSettings, evaluation: Evaluation, out: Path
) -> None:
    """Choose k on validation and write the scores of val and test, choices.json and weights.parquet.

    The score of a label is the log-odds of `plant.relevance.log_odds` over the k tokens of highest relevance to it.
    Above 0 means probability above .5. A label without training documents has no score (-inf).

    Args:
        corpus: folder of the corpus.
        tokens: folder of the tokens (of the backbone `words`, or any other).
        relevance: {measure}.parquet for those tokens; its counts and ranks are used.
        settings: the values of k that are tried, and the smoothing.
        evaluation: limits of the score files.
        out: the system's evaluation folder.

    Raises:
        InputError: the relevance table is missing, does not belong to the corpus, or keeps fewer tokens a label
            than the largest k; or the scores need more memory than `evaluation.memory_gb`.
    """
    labels, text = load_labels(corpus), load_tokens(tokens)
    require_memory((labels.n_documents, labels.n_labels), settings=evaluation, where="scores of mig_log_odds")
    training = text.part(labels.rows("train"))[1]
    words = int(np.count_nonzero(np.bincount(training)))  # a small corpus has fewer than any k
    table = read_relevance(relevance, labels, most=min(max(settings.log_odds_k), words))
    present = {split: presence(text, labels.rows(split)) for split in SPLITS}
    truth = {split: truth_of(labels, split) for split in SPLITS}

    def score(split: str, k: int) -> np.ndarray:
        return log_odds(present[split], table, labels, k=k, smoothing=settings.smoothing)

    values = {k: ndcg(score("val", k), truth["val"]) for k in settings.log_odds_k}
    k, choices = best_of("k", values)
    beside = Path(corpus) / "train.parquet"
    write(
        out, document_ids={split: labels.document_ids(split) for split in SPLITS}, label_names=labels.names,
        truth=truth, scores={split: score(split, k) for split in SPLITS}, natural_threshold=0.0,
        evaluation=evaluation, beside=beside, names=read_names(corpus), choices=choices,
    )  # fmt: skip
    with owner_only(is_private(beside)):
        chosen = word_weights(table, labels, k=k, smoothing=settings.smoothing)
        named = [text.vocabulary[token] for token in chosen.token]
        write_label_weights(out, labels, chosen.constant, chosen.label, named, chosen.weight)


def read_relevance(path: Path, labels: Labels, *, most: int) -> pl.DataFrame:
    """The `most` best tokens of each label: label id, token_id, rank and the counts.

    Raises:
        InputError: see `mig_log_odds`.
    """
    columns = ["label", "token_id", "rank", "n_label", "n_token", "n_joint", "n_documents"]
    table = pl.scan_parquet(require_file(path)).select(columns).filter(pl.col("rank") <= most).collect()
    ids = pl.DataFrame({"label": labels.names, "label_id": np.arange(labels.n_labels)})
    table = table.join(ids, on="label", how="left", maintain_order="left")
    expected = labels.counts[0]
    if table["label_id"].null_count() or (expected[table["label_id"].to_numpy()] != table["n_label"].to_numpy()).any():
        raise InputError(
            str(path), expected=f"relevance of the labels of {labels.folder}", got="a table of another corpus",
            fix="Delete it and run again.",
        )  # fmt: skip
    kept = int(table["rank"].max() or 0)  # type: ignore[arg-type]
    if kept < most:
        raise InputError(
            str(path), expected=f"{most} tokens a label, the largest of baselines.log_odds_k", got=str(kept),
            fix="Raise relevance.k or lower baselines.log_odds_k.",
        )  # fmt: skip
    return table


def presence(tokens: Tokens, rows: slice) -> sp.csr_array:
    """(N, V) float32: 1 where the document holds the token."""
    offsets, input_ids = tokens.part(rows)
    return shortlist.presence(input_ids, offsets, tokens.vocabulary_size)


def word_weights(table: pl.DataFrame, labels: Labels, *, k: int, smoothing: float) -> LogOdds:
    """A constant a label, and a weight for each of its k best words where it is present.

    Args:
        table: of `read_relevance`.
        labels: for n_l, N and L.
        k: tokens a label, at least 1.
        smoothing: s > 0.
    """
    top = table.filter(pl.col("rank") <= k)
    label, token, n_joint, n_token = (
        top[name].to_numpy().astype(np.int64) for name in ("label_id", "token_id", "n_joint", "n_token")
    )
    return relevance_log_odds(
        label, token, n_joint=n_joint, n_token=n_token, n_label=labels.counts[0],
        n_documents=int(labels.split_sizes[0]), smoothing=smoothing,
    )  # fmt: skip


def log_odds(present: sp.csr_array, table: pl.DataFrame, labels: Labels, *, k: int, smoothing: float) -> np.ndarray:
    """Scores of `mig_log_odds` for one k.

    Args:
        present: (N, V), 1 or nothing.
        table, labels, k, smoothing: see `word_weights`.

    Returns:
        (N, L) float32 log-odds; -inf for labels without training documents.
    """
    scores = word_weights(table, labels, k=k, smoothing=smoothing).of(present)
    scores[:, labels.counts[0] == 0] = -np.inf
    return scores
