"""Texts in, scores out: the same functions, batches and rounding as the pipeline, so the same scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy.sparse as sp
import torch

from plant.baselines.combined import Moments, weighted
from plant.corpus.cleaning import clean
from plant.corpus.encoders import SubwordEncoder
from plant.evidence.design import Design, LabelSide
from plant.finetuning.kept_evidence import Static, by_token
from plant.finetuning.predict import PART, SCORES
from plant.finetuning.scoring import predict_logits
from plant.ground.errors import InputError
from plant.ground.settings import Cleaning
from plant.metrics.aligned import align
from plant.metrics.scores import LARGEST_FP16, Scores, kept_scores
from plant.model.assemble import parse_network
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import Known, LabelClassifier
from plant.pretraining.lists import TopTokens
from plant.serving.inputs import check_text

if TYPE_CHECKING:
    from plant.serving.modeling import PlantForDocuments


def clean_texts(model: PlantForDocuments, texts: Sequence[str]) -> list[str]:
    """The texts as the model reads them; character spans of reasons count in them.

    Raises:
        InputError: a text is empty or too long; its number is named, its words are not.
    """
    for number, text in enumerate(texts, 1):
        check_text(text, f"text {number}")
    return clean(pl.Series(list(texts), dtype=pl.String), Cleaning.model_validate(model.config.cleaning)).to_list()


def part_size(model: PlantForDocuments) -> int:
    """Texts that are scored together: as many as the pipeline scores at once."""
    return max(1, min(PART, SCORES // model.config.num_labels))


def score(model: PlantForDocuments, texts: Sequence[str]) -> Scores:
    """Scores of some texts; give `part_size` of them at once to get the pipeline's bits.

    A text without a token that the network knows gets no score (-inf), as in the pipeline.

    Raises:
        InputError: as `clean_texts`.
    """
    return score_cleaned(model, clean_texts(model, texts))


def score_cleaned(model: PlantForDocuments, cleaned: Sequence[str]) -> Scores:
    """`score` of texts that `clean_texts` gave."""
    system = model.config.system
    channels = {
        name: as_scores(model, network_logits(model, cleaned) if name == "network" else
                        model.parts.scorers[name].score(cleaned))
        for name in system["channels"] if name != "prior"
    }  # fmt: skip
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


def as_scores(model: PlantForDocuments, values: np.ndarray | sp.csr_array) -> Scores:
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


def network_logits(model: PlantForDocuments, texts: Sequence[str]) -> np.ndarray:
    """(N, L) float32 of cleaned texts; -inf for a text without a token."""
    classifier, corpus = require_network(model), corpus_of(model, texts)
    documents = corpus.documents("test")
    logits = np.full((len(texts), model.config.num_labels), -np.inf, np.float32)
    if len(documents):
        size = model.config.network["batch_size"]
        logits[documents] = predict_logits(classifier, corpus, documents, batch_size=size)
    return logits


def require_network(model: PlantForDocuments) -> LabelClassifier:
    """The network of a system that has one."""
    if model.classifier is None:
        raise InputError("model", expected="a system with a network", got=model.config.system["kind"], fix="Use words.")
    return model.classifier


@lru_cache(maxsize=4)
def _encoder(model: PlantForDocuments) -> SubwordEncoder:
    from tokenizers import Tokenizer

    return SubwordEncoder(Tokenizer.from_str(model.parts.files["tokenizer.json"].decode("utf-8")))


def tokens_of(model: PlantForDocuments, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Input ids (n) and character spans (n, 2) of each cleaned text; cut as in the corpus, no special tokens."""
    network = model.config.network
    most = parse_network(network["backbone"]).max_tokens
    pieces = _encoder(model).encode(texts, training=False)
    ends = np.cumsum(pieces.lengths)
    found = []
    for first, last in zip(ends - pieces.lengths, ends, strict=True):
        part = slice(first, min(last, first + most))
        kept = ~np.isin(pieces.ids[part], network["skipped"])
        spans = np.stack([pieces.starts[part], pieces.ends[part]], axis=1)
        found.append((pieces.ids[part][kept], spans[kept]))
    return found


def corpus_of(model: PlantForDocuments, texts: Sequence[str]) -> Corpus:
    """The tokens of some cleaned texts, as the pipeline's functions read documents."""
    ids = [tokens for tokens, _ in tokens_of(model, texts)]
    offsets = np.concatenate([[0], np.cumsum([len(tokens) for tokens in ids])]).astype(np.int64)
    joined = np.concatenate([np.zeros(0, np.int32), *ids])
    none = np.zeros(len(texts) + 1, np.int64)
    corpus = Corpus(joined, offsets, none, np.zeros(0, np.int64), {"test": (0, len(texts))}, known=_known(model, ids))
    if not model.config.network["backbone"].get("cache_features"):
        return corpus
    return Corpus(joined, offsets, none, corpus.indices, corpus.splits, _features(model, corpus), corpus.known)


def _features(model: PlantForDocuments, corpus: Corpus) -> np.ndarray:
    """Hidden states in fp16, as the pipeline caches those of a frozen backbone."""
    backbone = require_network(model).backbone
    assert backbone is not None
    rows = []
    for document in corpus.documents("test"):
        padded = pad_documents(corpus, np.array([document]), next(backbone.parameters()).device)
        with torch.inference_mode():
            rows.append(backbone(padded.input_ids, padded.mask).half().cpu().numpy()[0])
    return np.concatenate(rows) if rows else np.zeros((0, 1), np.float16)


def _known(model: PlantForDocuments, ids: Sequence[np.ndarray]) -> Callable[[np.ndarray, torch.device], Known] | None:
    """Relevance that is added to the attention (choice C26), for a recipe that keeps some."""
    static = _static(model)
    if static is None:
        return None

    def known(batch: np.ndarray, device: torch.device) -> Known:
        def bias(row: int, labels: torch.Tensor | None) -> torch.Tensor:
            asked = None if labels is None else labels.cpu().numpy()
            return torch.from_numpy(static(asked, ids[batch[row]])).to(device)

        return Known(bias)

    return known


@lru_cache(maxsize=4)
def _static(model: PlantForDocuments) -> Static | None:
    """The relevance of all labels, ready to be looked up."""
    strength, arrays = model.config.network["static_attention"], model.parts.arrays
    if not strength:
        return None
    sizes = np.diff(arrays["indptr"])
    top = TopTokens(arrays["indptr"][:-1], sizes, arrays["token_id"], arrays["relevance"], _encoder(model).size)
    return by_token(top, strength)
