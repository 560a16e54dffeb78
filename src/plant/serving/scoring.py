"""Texts in, scores out: the same functions, batches and rounding as the pipeline, so the same scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.combined import Moments, weighted
from plant.corpus.cleaning import clean
from plant.evidence.design import Design, LabelSide
from plant.ground.settings import Cleaning
from plant.metrics.aligned import align
from plant.metrics.scores import LARGEST_FP16, PART, SCORES, Scores, kept_scores
from plant.serving.inputs import check_text

if TYPE_CHECKING:
    from plant.serving.network import Look
    from plant.serving.system import SavedSystem


def clean_texts(model: SavedSystem, texts: Sequence[str]) -> list[str]:
    """The texts as the model reads them; character spans of reasons count in them.

    Raises:
        InputError: a text is empty or too long; its number is named, its words are not.
    """
    for number, text in enumerate(texts, 1):
        check_text(text, f"text {number}")
    return clean(pl.Series(list(texts), dtype=pl.String), Cleaning.model_validate(model.config.cleaning)).to_list()


def part_size(model: SavedSystem) -> int:
    """Texts that are scored together: as many as the pipeline scores at once."""
    return max(1, min(PART, SCORES // model.config.num_labels))


def score(model: SavedSystem, texts: Sequence[str]) -> Scores:
    """Scores of some texts; give `part_size` of them at once to get the pipeline's bits.

    A text without a token that the network knows gets no score (-inf), as in the pipeline.

    Raises:
        InputError: as `clean_texts`.
    """
    return score_cleaned(model, clean_texts(model, texts))


def score_cleaned(model: SavedSystem, cleaned: Sequence[str], look: Look | None = None) -> Scores:
    """`score` of texts that `clean_texts` gave; `look` is called for each text that the network reads."""
    system = model.config.system
    names = [name for name in system["channels"] if name != "prior"]
    channels = {name: as_scores(model, _channel(model, name, cleaned, look)) for name in names}
    if system["kind"] not in ("combined", "evidence"):
        return next(iter(channels.values()))
    pairs = align(list(channels.values()))
    if system["kind"] == "combined":
        scales = [Moments(*each) for each in system["scales"]]
        return as_scores(model, weighted(pairs, scales, system["weight"]))
    trained = np.ones(model.config.num_labels, bool)
    side = LabelSide(tuple(system["channels"]), model.parts.arrays["prior"], model.parts.arrays["ends"], trained)
    none = sp.csr_array((len(cleaned), model.config.num_labels), dtype=bool)
    logits = Design(pairs, side, none).logits({0: np.array(system["scalars"])}, np.zeros(len(cleaned), np.int64))
    return as_scores(model, pairs.filled(logits.astype(np.float32)))


def _channel(model: SavedSystem, name: str, cleaned: Sequence[str], look: Look | None) -> np.ndarray:
    """(N, L) float32: what one channel says."""
    if name != "network":
        return model.parts.scorers[name].score(cleaned)
    from plant.serving.network import network_logits  # imports PyTorch, which words do not need

    return network_logits(model, cleaned, look)


def as_scores(model: SavedSystem, values: np.ndarray | sp.csr_array) -> Scores:
    """Scores as `plant.metrics.scores` keeps them: rounded to fp16, or for large label sets the best of each text."""
    system, names = model.config.system, tuple(model.config.label_names)
    dense = None
    if isinstance(values, np.ndarray) and len(names) <= system["dense_limit"]:
        bounded = np.where(values > -np.inf, np.clip(values, -LARGEST_FP16, LARGEST_FP16), -np.inf)
        values = dense = bounded.astype(np.float16).astype(np.float32)
    truth = sp.csr_array(values.shape, dtype=bool)
    kept = kept_scores(values, truth, system["top"])
    ids = tuple(str(number) for number in range(values.shape[0]))
    return Scores(ids, names, truth, kept, dense, system["top"], system["natural_threshold"])
