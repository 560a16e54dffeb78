"""Stage 3, the evidence channel (choice C25): what the network says and what the words say, weighed on validation.

    logit(d, l) = alpha network(d, l) + beta log_odds(d, l) + gamma linear(d, l) + g prior(l) + c,

and with descriptions(d, l) and mentions(d, l) where the recipe names them (choice C29). A handful of scalars that all
labels share, fitted after Stage 2 on the validation pairs. Nothing is trained jointly: evidence that is counted on the
training documents is optimistic there, and a network that is trained on top of it fits around something that vanishes
on other documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.baselines.target import SPLITS, Outcome, read_comparable, write
from plant.corpus.folds import deal_folds
from plant.corpus.reader import load_labels
from plant.evidence.design import Design, LabelSide
from plant.evidence.fit import Scale, fit
from plant.evidence.reasons import EVIDENCE, REASONS, export, reasons
from plant.ground.files import is_private, require_file, write_with
from plant.ground.settings import Evaluation, Evidence
from plant.ground.staging import owner_only
from plant.metrics.aligned import align
from plant.metrics.calibration import Calibration
from plant.metrics.scores import Scores

__all__ = ["evidence", "reasons"]


@dataclass(frozen=True)
class Fits:
    """The scalars of all validation documents, and of all but each fold's.

    Attributes:
        whole: (F + 1,).
        folds: (folds, F + 1).
        fold_of: (N,) fold of each validation document.
    """

    whole: np.ndarray
    folds: np.ndarray
    fold_of: np.ndarray


def evidence(
    channels: Mapping[str, Path],
    *,
    corpus: Path,
    settings: Evidence,
    evaluation: Evaluation,
    out: Path,
    seed: int,
    shown: int = 0,
    tokens: Path | None = None,
) -> None:
    """Fit the scalars on validation and write scores, choices.json, evidence.parquet and reasons.parquet.

    Scores of test documents come from the fit on all validation documents. Those of a validation document come from
    the fit without its fold, since the threshold is tuned on them. They are on the logit scale: above 0 is probability
    above .5. A pair that one of the channels has no score for (-inf) gets none, as in the baseline `combined`: a label
    without training documents, a document without a token, a label outside of the network's shortlist.

    Where the label set is too large for dense scores, the pairs are those of `plant.metrics.aligned.align`.

    Args:
        channels: channel -> evaluation folder with its scores, for all channels of the recipe but the prior; in any
            order.
        corpus: folder of the corpus.
        settings: the recipe.
        evaluation: limits of the score files.
        out: the system's evaluation folder.
        seed: of the folds.
        shown: test documents whose reasons are written; 0 for text that must not be shown.
        tokens: folder of the tokens that the log-odds were counted on; only needed for reasons.

    Raises:
        InputError: scores are missing or of other documents or labels, fewer groups of documents than folds, or pairs
            that tell nothing (all or none of them true).
    """
    labels = load_labels(corpus)
    channels = {name: channels[name] for name in settings.channels if name != "prior"}  # the regression goes by place
    scores = {split: read_comparable(list(channels.values()), split, labels) for split in SPLITS}
    side = LabelSide.of(labels, settings)
    designs = {split: Design(align(some), side, some[0].truth) for split, some in scores.items()}
    fits = _fit(designs["val"], read_groups(corpus), settings, seed, where=f"evidence of {out}")
    logits = {
        "val": designs["val"].logits(dict(enumerate(fits.folds)), fits.fold_of),
        "test": designs["test"].logits({0: fits.whole}, np.zeros(designs["test"].pairs.shape[0], np.int64)),
    }
    filled = {split: designs[split].pairs.filled(values.astype(np.float32)) for split, values in logits.items()}
    write(out, labels, Outcome(filled, 0.0, _record(designs["val"], fits, logits["val"], settings)), evaluation)
    with owner_only(is_private(labels.folder / "train.parquet")):
        write_with(Path(out) / EVIDENCE, export(side, fits.whole, labels.names, channels).write_parquet)
        documents = _shown(scores["test"][0], shown)
        told = reasons(out, channels, corpus=corpus, documents=documents, tokens=tokens)
        write_with(Path(out) / REASONS, told.write_parquet)


def read_groups(corpus: Path) -> np.ndarray:
    """(N,) group (patient) of each validation document."""
    return pl.read_parquet(require_file(Path(corpus) / "val.parquet"), columns=["group_id"])["group_id"].to_numpy()


def _fit(design: Design, groups: np.ndarray, settings: Evidence, seed: int, *, where: str) -> Fits:
    """No fold's truth plays a part in the scalars of its own documents."""
    fold_of = deal_folds(groups, settings.folds, seed, purpose="evidence", key="evidences: folds")
    scale = Scale.of(design)
    parts = [np.arange(len(fold_of)), *(np.flatnonzero(fold_of != fold) for fold in range(settings.folds))]
    whole, *folds = (fit(design, part, scale=scale, ridge=settings.ridge, where=where) for part in parts)
    return Fits(whole, np.stack(folds), fold_of)


def _shown(scores: Scores, count: int) -> tuple[str, ...]:
    """The first test documents that have a label."""
    labelled = np.flatnonzero(np.diff(scores.truth.indptr) > 0)[:count]
    return tuple(scores.document_ids[place] for place in labelled)


def _record(design: Design, fits: Fits, logits: np.ndarray, settings: Evidence) -> dict[str, Any]:
    """choices.json: weights, and what they are worth on validation documents that they were not fitted on."""
    before, after = Calibration(), Calibration()
    pairs = [channel for channel in settings.channels if channel != "prior"]
    network = design.pairs.scores[pairs.index("network")].reshape(-1) if "network" in pairs else None
    for block in design.blocks(np.arange(design.pairs.shape[0])):
        after.add(logits.reshape(-1)[block.places], block.truth)
        if network is not None:
            before.add(network[block.places].astype(np.float64), block.truth)
    whole = _named(design.side, fits.whole)
    folds = [{**_named(design.side, one), "documents": int((fits.fold_of == fold).sum())}
             for fold, one in enumerate(fits.folds)]  # fmt: skip
    worth = {"out_of_fold": after.record(), "network_alone": None if network is None else before.record()}
    return {**whole, "folds": folds, "validation": {"pairs": after.pairs, "positives": after.positives, **worth}}


def _named(side: LabelSide, scalars: np.ndarray) -> dict[str, Any]:
    """Weights of the raw scores; with slopes at the rarest and at the most frequent label."""
    weights = scalars[:-1].reshape(len(side.channels), -1).tolist()
    named = {
        channel: ends[0] if len(ends) == 1 else {"rarest_label": ends[0], "most_frequent_label": ends[1]}
        for channel, ends in zip(side.channels, weights, strict=True)
    }
    return {"weights": named, "constant": float(scalars[-1])}
