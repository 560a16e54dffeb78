"""Texts in, scores out: the same functions, batches and rounding as the pipeline, so the same scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp
import torch

from plant.baselines.combined import Moments, weighted
from plant.corpus.cleaning import clean
from plant.corpus.encoders import WORD, Pieces, SubwordEncoder
from plant.evidence.design import Design, LabelSide
from plant.finetuning.kept_evidence import keep_evidence
from plant.finetuning.predict import PART, SCORES
from plant.finetuning.scoring import predict_logits
from plant.ground.errors import InputError
from plant.ground.settings import Cleaning, Finetuning
from plant.metrics.aligned import align
from plant.metrics.scores import LARGEST_FP16, Scores, kept_scores
from plant.model.assemble import TrainingData, parse_network
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import LabelClassifier
from plant.serving.inputs import check_text

if TYPE_CHECKING:
    from plant.serving.modeling import PlantForDocuments

VOCABULARY = "vocabulary.json"
"""The words of a word network, in the order of their ids."""


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
        size = model.config.network["finetuning"]["batch_size"]
        logits[documents] = predict_logits(classifier, corpus, documents, batch_size=size)
    return logits


def require_network(model: PlantForDocuments) -> LabelClassifier:
    """The network of a system that has one."""
    if model.classifier is None:
        raise InputError("model", expected="a system with a network", got=model.config.system["kind"], fix="Use words.")
    return model.classifier


class Words(NamedTuple):
    """The tokens of a word network: the lower-cased words of its training documents."""

    ids: dict[str, int]

    def encode(self, texts: Sequence[str], *, training: bool) -> Pieces:  # noqa: ARG002 (as of `SubwordEncoder`)
        """Words of all texts; an unknown one has the id -1."""
        found = [list(WORD.finditer(text)) for text in texts]
        flat = [(self.ids.get(match[0].lower(), -1), *match.span()) for matches in found for match in matches]
        columns = np.array(flat, np.int32).reshape(-1, 3)
        ids, starts, ends = columns.T
        return Pieces(ids, starts, ends, np.array([len(matches) for matches in found], np.int64))


@lru_cache(maxsize=4)
def _encoder(model: PlantForDocuments) -> SubwordEncoder | Words:
    from tokenizers import Tokenizer

    files = model.parts.files
    if VOCABULARY in files:
        return Words({word: place for place, word in enumerate(json.loads(files[VOCABULARY]))})
    return SubwordEncoder(Tokenizer.from_str(files["tokenizer.json"].decode("utf-8")))


def tokens_of(model: PlantForDocuments, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Input ids (n) and character spans (n, 2) of each cleaned text, cut as in the corpus, no special tokens."""
    network = model.config.network
    most = parse_network(network["backbone"]).max_tokens
    pieces = _encoder(model).encode(texts, training=False)
    ends = np.cumsum(pieces.lengths)
    found = []
    for first, last in zip(ends - pieces.lengths, ends, strict=True):
        part = slice(first, min(last, first + most))
        kept = (pieces.ids[part] >= 0) & ~np.isin(pieces.ids[part], network["skipped"])
        spans = np.stack([pieces.starts[part], pieces.ends[part]], axis=1)
        found.append((pieces.ids[part][kept], spans[kept]))
    return found


def corpus_of(model: PlantForDocuments, texts: Sequence[str]) -> Corpus:
    """The tokens of some cleaned texts, with the evidence that the recipe keeps, as the pipeline reads documents."""
    network = model.config.network
    ids = [tokens for tokens, _ in tokens_of(model, texts)]
    offsets = np.concatenate([[0], np.cumsum([len(tokens) for tokens in ids])]).astype(np.int64)
    none = np.zeros(len(texts) + 1, np.int64)
    joined, splits = np.concatenate([np.zeros(0, np.int32), *ids]), {"test": (0, len(texts))}
    corpus = Corpus(joined, offsets, none, np.zeros(0, np.int64), splits)
    if network["backbone"].get("cache_features"):
        corpus = replace(corpus, features=_features(model, corpus))
    data = TrainingData(corpus, np.array(network["trained"]), range(network["labels"]))  # type: ignore[arg-type]
    recipe = Finetuning.model_validate(network["finetuning"])
    static = model.parts.static
    return keep_evidence(data, require_network(model), recipe, static=static, residual=None, whole=True).corpus


def _features(model: PlantForDocuments, corpus: Corpus) -> np.ndarray:
    """Hidden states in fp16, as the pipeline caches those of a frozen backbone."""
    classifier, rows = require_network(model), [np.zeros((0, 1), np.float16)]
    for document in corpus.documents("test"):
        padded = pad_documents(corpus, np.array([document]), classifier.attention.embeddings.device)
        with torch.inference_mode():
            rows.append(classifier.hidden_states(padded).half().cpu().numpy()[0])
    return np.concatenate(rows[1:] or rows)
