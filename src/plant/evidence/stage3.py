"""Stage 3, the evidence channel (choice C25): the network's and the words' scores, weighted on validation.

    logit(d, l) = alpha network(d, l) + beta log_odds(d, l) + gamma linear(d, l) + g prior(l) + c

Other channels enter in the same way if the recipe names them (choices C29 and C30). All labels share these scalars.
They are fitted on the validation pairs after Stage 2, not together with the network: evidence that was counted on the
training documents looks too good on them, and a network trained on top of it would rely on something that other
documents lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plant.baselines.target import SPLITS, Outcome, read_comparable, write
from plant.corpus.folds import deal_folds
from plant.corpus.reader import load_labels
from plant.evidence.design import Design, LabelSide
from plant.evidence.fit import fit, standardisation
from plant.evidence.reasons import EVIDENCE, REASONS, export, reasons
from plant.ground.files import is_private, write_with
from plant.ground.settings import Evaluation, Evidence
from plant.ground.staging import owner_only
from plant.metrics.aligned import align
from plant.metrics.calibration import calibration
from plant.metrics.scores import read_scores


def evidence(
    channels: Mapping[str, Path], *, corpus: Path, settings: Evidence, evaluation: Evaluation, out: Path, seed: int,
    shown: int = 0, tokens: Path | None = None,
) -> None:  # fmt: skip
    """Fit the scalars on validation and write scores, choices.json, evidence.parquet and reasons.parquet to `out`.

    Test scores come from the fit on all validation documents. The scores of a validation document come from the fit
    without its fold, because the threshold is tuned on them. They are logits: above 0 is probability above .5. A pair
    without a score in some channel has no score (-inf): a label without training documents, a document without a token,
    a label outside of the network's shortlist. If the label set is too large for dense scores, the pairs are those of
    `plant.metrics.aligned.align`.

    Args:
        channels: channel -> evaluation folder with its scores, for all channels of the recipe but the prior.
        seed: of the folds.
        shown: number of test documents whose reasons are written; 0 for text that must not be shown.
        tokens: folder of the tokens that the log-odds were counted on; only needed for reasons.

    Raises:
        InputError: scores are missing or of other documents or labels, there are fewer groups of documents than folds,
            or all or none of the pairs are true.
    """
    labels = load_labels(corpus)
    channels = {name: channels[name] for name in settings.channels if name != "prior"}  # in the order of the recipe
    scores = {split: read_comparable(list(channels.values()), split, labels) for split in SPLITS}
    side = LabelSide.of(labels, settings)
    designs = {split: Design(align(some), side, some[0].truth) for split, some in scores.items()}
    fold_of = deal_folds(labels.groups("val"), settings.folds, seed, purpose="evidence", key="evidences: folds")
    parts = [np.arange(len(fold_of)), *(np.flatnonzero(fold_of != fold) for fold in range(settings.folds))]
    matrix, where = standardisation(designs["val"]), f"evidence of {out}"
    whole, *folds = (fit(designs["val"], part, matrix=matrix, ridge=settings.ridge, where=where) for part in parts)
    logits = {
        "val": designs["val"].logits(dict(enumerate(folds)), fold_of),
        "test": designs["test"].logits({0: whole}, np.zeros(designs["test"].pairs.shape[0], np.int64)),
    }
    filled = {split: designs[split].pairs.filled(values.astype(np.float32)) for split, values in logits.items()}
    fits = [{**_named(side, one), "documents": int((fold_of == fold).sum())} for fold, one in enumerate(folds)]
    record = {**_named(side, whole), "folds": fits, "validation": _validation(designs["val"], logits["val"])}
    made = Outcome(filled, 0.0, record)
    beside = Path(next(iter(channels.values()))) / "val.scores.parquet"
    write(out, labels, made, evaluation=evaluation, beside=beside)
    with owner_only(is_private(beside)):
        table = export(side, whole, labels.names, channels)
        write_with(out / EVIDENCE, table.write_parquet)
        documents = np.flatnonzero(np.diff(designs["test"].truth.indptr) > 0)[:shown].tolist()  # with a label
        told = reasons(
            table, read_scores(out, "test"), designs["test"].pairs, channels, data=labels, documents=documents,
            tokens=tokens,
        )  # fmt: skip
        write_with(out / REASONS, told.write_parquet)


def _validation(design: Design, logits: np.ndarray) -> dict[str, Any]:
    """The calibration of the scores on documents that the weights were not fitted on, and of the network alone."""

    def calibrated(scores: np.ndarray) -> dict[str, Any]:
        flat = scores.reshape(-1)
        return calibration((flat[block.places].astype(np.float64), block.truth) for block in design.blocks())

    after, alone = calibrated(logits), None
    counted = {name: after.pop(name) for name in ("pairs", "positives")}
    channels = [channel for channel in design.side.channels if channel != "prior"]
    if "network" in channels:
        before = calibrated(design.pairs.scores[channels.index("network")])
        alone = {name: before[name] for name in after}
    return {**counted, "out_of_fold": after, "network_alone": alone}


def _named(side: LabelSide, scalars: np.ndarray) -> dict[str, Any]:
    """Channel -> weight of its raw scores; with slopes the weights at the rarest and at the most frequent label."""
    weights = scalars[:-1].reshape(len(side.channels), -1).tolist()
    named = {
        channel: ends[0] if len(ends) == 1 else {"rarest_label": ends[0], "most_frequent_label": ends[1]}
        for channel, ends in zip(side.channels, weights, strict=True)
    }
    return {"weights": named, "constant": float(scalars[-1])}
