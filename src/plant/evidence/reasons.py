"""Reasons of Stage 3: which words made a label's score. The contributions of a document and label add up to its score.

- `evidence.parquet`: label, channel, part, feature, weight. The logit is the sum over channels of score times the
  `score` weight, plus the `constant` weights of the prior and of the intercept. For a channel with words, its rows
  `constant` and `word` take this product apart: the constant, plus each word's weight times its value in the document.
  The values are
  - 1 for each present word (log-odds of labels and categories);
  - the TF-IDF value (linear models; only the n-grams of largest weight are listed);
  - the share of the phrase that is present, for the best phrase alone (descriptions);
  - 1 for the present mention of largest weight alone (mentions).
- `reasons.parquet`: document_id, label, truth, score, channel, part, feature, contribution. The part `other words` is
  what the unlisted words add (for the log-odds, which list all their words, only the rounding of the stored score).

Both files hold words of the texts: they are private if the texts are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path

import numpy as np
import polars as pl

from plant.baselines.registry import channels as readable_channels
from plant.baselines.target import ExplainedDocument
from plant.baselines.words import read_weights
from plant.corpus.reader import Labels, load_tokens
from plant.evidence.design import LabelSide
from plant.metrics.aligned import AlignedScores
from plant.metrics.scores import Scores
from plant.metrics.top import scores_at, stored_at, top_labels

EVIDENCE, REASONS = "evidence.parquet", "reasons.parquet"
LABELS = 5
"""Number of labels that are explained per document."""
CONSTANT, SCORE, WORD, OTHER = "constant", "score", "word", "other words"
"""Parts of a channel. The intercept is a channel named `constant`."""
Part = tuple[str, str, str | None, float]
"""Channel, part, feature, contribution."""
_SCHEMA = {
    "document_id": pl.String, "label": pl.String, "truth": pl.Boolean, "score": pl.Float64, "channel": pl.String,
    "part": pl.String, "feature": pl.String, "contribution": pl.Float64,
}  # fmt: skip


def export(side: LabelSide, scalars: np.ndarray, names: Sequence[str], channels: Mapping[str, Path]) -> pl.DataFrame:
    """evidence.parquet: what every channel adds to the logit of each label with training documents.

    Rows are sorted by label and channel; in a channel the constant comes first, then the words by magnitude.
    `scalars` (F + 1,) are those of the fit on all of validation, `names` those of all L labels, and `channels` the
    evaluation folders, whose weights.parquet is read if the channel is a baseline.
    """
    weights, known = dict(zip(side.channels, side.weights(scalars), strict=True)), readable_channels()
    ids = np.flatnonzero(side.trained)
    rows = pl.DataFrame({"label": pl.Series([names[i] for i in ids.tolist()], dtype=pl.String), "place": ids})
    parts = [_alone(rows, CONSTANT, CONSTANT, np.full(len(ids), scalars[-1]))]
    for channel, of_label in weights.items():
        if channel == "prior":
            parts.append(_alone(rows, channel, CONSTANT, (of_label * side.prior)[ids]))
            continue
        parts.append(_alone(rows, channel, SCORE, of_label[ids]))
        if channel in known and known[channel].features is not None:
            shares = rows.with_columns(pl.Series("share", of_label[ids]))
            part = pl.when(pl.col("feature").is_null()).then(pl.lit(CONSTANT)).otherwise(pl.lit(WORD))
            parts.append(
                read_weights(channels[channel]).join(shares, on="label", how="inner").select(
                    "place", "label", pl.lit(channel).alias("channel"), part.alias("part"), "feature",
                    pl.col("weight") * pl.col("share"),
                )
            )  # fmt: skip
    table = pl.concat([part.with_columns(pl.lit(order).alias("order")) for order, part in enumerate(parts)])
    size = -pl.when(pl.col("feature").is_null()).then(np.inf).otherwise(pl.col("weight").abs())
    table = table.sort("place", "order", size, "feature", nulls_last=True, maintain_order=True)
    return table.select("label", "channel", "part", "feature", "weight")


def _alone(rows: pl.DataFrame, channel: str, part: str, weights: np.ndarray) -> pl.DataFrame:
    """One row per label."""
    return rows.select(
        "place", "label", pl.lit(channel).alias("channel"), pl.lit(part).alias("part"),
        pl.lit(None, dtype=pl.String).alias("feature"), pl.Series("weight", weights, dtype=pl.Float64),
    )  # fmt: skip


def reasons(
    evidence: pl.DataFrame, written: Scores, pairs: AlignedScores, channels: Mapping[str, Path], *,
    data: Labels, documents: Sequence[int], tokens: Path | None,
) -> pl.DataFrame:  # fmt: skip
    """reasons.parquet: why a system of Stage 3 gives some test documents their highest scores.

    Documents are in the given order, labels by score, channels in the order of evidence.parquet, and the largest
    contributions of a channel come first.

    Args:
        evidence: evidence.parquet of the system.
        written: its test scores.
        pairs: the test scores of its channels.
        channels: channel -> evaluation folder, in the order of `pairs`.
        data: labels and texts of the corpus.
        documents: places in the test split.
        tokens: folder of the tokens of the log-odds; needed if a channel reads them.
    """
    if not documents:
        return pl.DataFrame(schema=_SCHEMA)
    known = {channel: entry for channel, entry in readable_channels().items() if channel in channels}
    features = {channel: read(channels[channel], data) for channel, entry in known.items() if (read := entry.features)}
    scores = dict(zip(channels, map(pairs.filled, pairs.scores), strict=True))
    texts, words = data.texts("test"), None if tokens is None else load_tokens(tokens)
    rows: list[tuple[object, ...]] = []
    for place in documents:
        ids = () if words is None else words.row(data.rows("test").start + place)
        seen = ExplainedDocument(texts[place], frozenset(words.vocabulary[i] for i in ids) if words else frozenset())
        best = top_labels(written.known[[place]], LABELS)[0]
        best = best[best >= 0]
        where = np.full(len(best), place), best
        said = {channel: scores_at(some, *where).tolist() for channel, some in scores.items()}
        for rank, (label, true) in enumerate(
            zip(best.tolist(), stored_at(written.truth, *where).tolist(), strict=True)
        ):
            name = written.label_names[label]
            own = {channel: values(seen, name) for channel, values in features.items()}
            parts = [*_parts(evidence.filter(label=name), {c: some[rank] for c, some in said.items()}, own)]
            total = fsum(part[-1] for part in parts)
            rows += [(written.document_ids[place], name, true, total, *part) for part in parts]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _parts(
    evidence: pl.DataFrame, scores: Mapping[str, float], values: Mapping[str, Mapping[str, float]]
) -> Iterator[Part]:
    """The parts of a logit: from the label's rows of evidence.parquet, scores of channels, and values of words."""
    for channel in evidence["channel"].unique(maintain_order=True):
        own = evidence.filter(channel=channel)
        constant = own.filter(part=CONSTANT)["weight"].to_list()
        listed: list[Part] = [(channel, CONSTANT, None, weight) for weight in constant]
        if channel not in scores:
            yield from listed
            continue
        total = own.filter(part=SCORE)["weight"].item() * scores[channel]
        if channel not in values:
            yield channel, SCORE, None, total
            continue
        words = own.filter(part=WORD).select("feature", "weight").iter_rows()
        present: list[Part] = [(channel, WORD, word, weight * values[channel][word])
                               for word, weight in words if word in values[channel]]  # fmt: skip
        listed += sorted(present, key=lambda part: -abs(part[-1]))
        yield from listed
        yield channel, OTHER, None, total - fsum(part[-1] for part in listed)
