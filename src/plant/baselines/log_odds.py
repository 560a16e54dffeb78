"""Naive Bayes on the presence of each label's few most informative words: evidence without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plant.baselines.registry import Baseline, register
from plant.baselines.target import SPLITS, Features, Outcome, Sources, choose
from plant.baselines.words import table_with_constants
from plant.corpus.reader import Labels, load_tokens
from plant.ground.errors import InputError
from plant.ground.files import require_file
from plant.relevance.contingency import presence
from plant.relevance.log_odds import LogOdds, log_odds

if TYPE_CHECKING:
    import polars as pl


def mig_log_odds(sources: Sources) -> Outcome:
    """Choose k on validation, and score.

    The score of a label is the log-odds of `plant.relevance.log_odds` over the k tokens of highest relevance to it.
    Above 0 means probability above .5.

    Raises:
        InputError: the relevance table is missing, does not belong to the corpus, or keeps fewer tokens per label
            than the largest k.
    """
    labels, text, settings = sources.labels, load_tokens(sources.files["tokens"]), sources.settings
    training = text.part(labels.rows("train"))[1]
    words = int(np.count_nonzero(np.bincount(training)))  # a small corpus may have fewer words than k
    table = read_relevance(sources.files["relevance"], labels, most=min(max(settings.log_odds_k), words))
    present = {split: presence(text, labels.rows(split), text.vocabulary_size) for split in SPLITS}
    odds = {k: word_weights(table, labels, k=k, smoothing=settings.smoothing) for k in settings.log_odds_k}
    k, choices, scores = choose(sources, "k", odds, lambda split, k: odds[k].of(present[split]))
    chosen = odds[k]
    strings = [text.vocabulary[token] for token in chosen.token]
    return Outcome(
        scores, 0.0, choices, table_with_constants(labels, chosen.constant, chosen.label, strings, chosen.weight)
    )


def read_relevance(path: Path, labels: Labels, *, most: int) -> pl.DataFrame:
    """The `most` best tokens of each label: label id, token_id, rank and the counts. Raises as `mig_log_odds` does."""
    import polars as pl

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
            str(path), expected=f"{most} tokens per label, the largest of baselines.log_odds_k", got=str(kept),
            fix="Raise relevance.k or lower baselines.log_odds_k.",
        )  # fmt: skip
    return table


def word_weights(table: pl.DataFrame, labels: Labels, *, k: int, smoothing: float) -> LogOdds:
    """A constant for each label, and a weight for each of its k best words in a table of `read_relevance`."""
    import polars as pl

    top = table.filter(pl.col("rank") <= k)
    label, token, n_joint, n_token = (
        top[name].to_numpy().astype(np.int64) for name in ("label_id", "token_id", "n_joint", "n_token")
    )
    return log_odds(
        label, token, n_joint=n_joint, n_token=n_token, n_label=labels.counts[0],
        n_documents=int(labels.split_sizes[0]), smoothing=smoothing,
    )  # fmt: skip


def present_words(_folder: Path, _labels: Labels) -> Features:
    """The words of a document, each with value 1."""
    return lambda document, _label: dict.fromkeys(document.tokens, 1.0)


register(
    Baseline(
        "mig_log_odds", "MIG log-odds", mig_log_odds, inputs=("labels", "tokens", "relevance"),
        channel="log_odds", features=present_words,
    )
)  # fmt: skip
