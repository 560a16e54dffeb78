"""The network of a saved model: built from config.json, filled from its weights, and read with texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from plant.corpus.encoders import SubwordEncoder, WordEncoder
from plant.finetuning.kept_evidence import keep_evidence
from plant.ground.checkpoints import load_tensors
from plant.ground.errors import InputError
from plant.ground.settings import Finetuning, Pretrained, Random, WordNetwork
from plant.model.assemble import TrainingData, make_classifier, parse_network
from plant.model.batches import Corpus, ordered_batches, pad_documents
from plant.model.classifier import Documents, LabelClassifier
from plant.model.l2r import l2r_from
from plant.model.registry import build_backbone
from plant.model.transformer.backbone import Backbone, set_reading

if TYPE_CHECKING:
    from plant.serving.system import SavedSystem

VOCABULARY = "vocabulary.json"
"""The words of a word network, in the order of their ids."""
Shares = Callable[[np.ndarray], np.ndarray]
"""Numbers of m labels -> shares of their attention to the n tokens of a text (m, n)."""
Look = Callable[[int, np.ndarray, np.ndarray, Shares], None]
"""(number of a text, its logits (L,), the character spans of its tokens (n, 2), its shares)."""


def load_network(network: Mapping[str, Any], n_labels: int, source: Path) -> LabelClassifier:
    """The network of config.json with the weights of a file; they keep the type that they have there."""
    settings = parse_network(network["backbone"])
    if isinstance(settings, WordNetwork):
        bare = settings.model_copy(update={"word_vectors": None, "language_model": None})
        backbone: Any = build_backbone(bare, "", vocabulary=network["vocabulary"], device=torch.device("cpu"))
    else:
        backbone = _transformer(settings, network)
    classifier = make_classifier(settings, backbone, n_labels=n_labels)
    # copies: a mapped file that is overwritten would end the process
    tensors = {name: one.clone() for name, one in load_tensors(source).items()}
    if (ranking := l2r_from(tensors, "attention.")) is not None:
        classifier.attention.l2r = ranking
    classifier.load_state_dict(tensors, assign=True)
    return classifier.eval()


def _transformer(settings: Pretrained | Random, network: Mapping[str, Any]) -> Backbone:
    own = dict(network["architecture"])
    from transformers import AutoConfig, AutoModel
    from transformers.initialization import no_init_weights

    with no_init_weights():  # the weights of the folder take their place
        model = AutoModel.from_config(AutoConfig.for_model(own.pop("model_type"), **own))
    set_reading(model, settings)
    if network["lora"] is not None:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(**network["lora"]))
    return Backbone(
        model, chunk_tokens=settings.chunk_tokens, prefix=tuple(network["prefix"]), suffix=tuple(network["suffix"]),
        precision=settings.precision,
    )  # fmt: skip


def backbone_record(classifier: LabelClassifier, backbone: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json says of a backbone that the pipeline has built, for `load_network`.

    Raises:
        InputError: the backbone cannot be rebuilt from a config and a file of weights.
    """
    settings, inner = parse_network(backbone), classifier.backbone
    if isinstance(settings, WordNetwork) or not isinstance(inner, Backbone):
        return {"backbone": dict(backbone)}
    from transformers import CONFIG_MAPPING

    model: Any = inner.model
    if settings.quantization != "none" or model.config.model_type not in CONFIG_MAPPING:
        raise InputError(
            "saved model", expected="a backbone in 16 or 32 bits that transformers can build without code of the hub",
            got=f"quantization: {settings.quantization}, and the model type {model.config.model_type!r}",
            fix="Train with `quantization: none` and another backbone, or save a system of words alone.",
        )  # fmt: skip
    lora = None
    if settings.adapter == "lora":
        found = model.peft_config["default"]
        lora = {"r": found.r, "lora_alpha": found.lora_alpha, "lora_dropout": found.lora_dropout,
                "target_modules": sorted(found.target_modules), "bias": "none"}  # fmt: skip
    return {
        "backbone": dict(backbone), "architecture": json.loads(json.dumps(model.config.to_diff_dict(), default=str)),
        "lora": lora, "prefix": list(inner.prefix), "suffix": list(inner.suffix),
    }  # fmt: skip


def plain_network(model: SavedSystem, where: str, fix: str) -> LabelClassifier:
    """The network of a system, if it reads the tokens of a document and nothing else.

    Raises:
        InputError: there is no network, or it keeps evidence in its attention or reads segments.
    """
    recipe = Finetuning.model_validate(model.network.get("finetuning", {}))
    if model.classifier is None or recipe.static_attention or recipe.differentiable_attention or recipe.segment:
        raise InputError(
            where, expected="a system whose network reads nothing but input ids",
            got=f"the system {model.system['name']}", fix=fix,
        )  # fmt: skip
    return model.classifier


@torch.no_grad()
def network_logits(model: SavedSystem, texts: Sequence[str], look: Look | None = None) -> np.ndarray:
    """(N, L) float32 of cleaned texts; -inf for a text without a token.

    `look` is called for each text with a token, while its hidden states are at hand.
    """
    classifier, tokens = network_of(model), tokens_of(model, texts)
    corpus, device = corpus_of(model, [ids for ids, _ in tokens]), classifier.attention.embeddings.device
    logits = np.full((len(texts), len(model.labels)), -np.inf, np.float32)
    vectors = classifier.label_vectors()  # they serve all batches
    for batch in ordered_batches(corpus, corpus.documents("test"), model.network["finetuning"]["batch_size"]):
        padded = pad_documents(corpus, batch, device)
        hidden = classifier.hidden_states(padded)  # (B, n, h)
        made = classifier.logits(hidden, padded.mask, vectors=vectors, known=padded.known)  # (B, L)
        logits[batch] = made.float().cpu().numpy()
        if look is None:
            continue
        for row, text in enumerate(batch.tolist()):
            own, spans = hidden[[row], : len(tokens[text][0])], tokens[text][1]
            look(text, logits[text], spans, partial(_shares, classifier, own, padded, row))
    return logits


def _shares(classifier: LabelClassifier, hidden: Tensor, padded: Documents, row: int, labels: np.ndarray) -> np.ndarray:
    """Shares of some labels' attention (m, n); the states (1, n, h) are those of a padded row."""
    asked = torch.from_numpy(labels[None]).long().to(hidden.device)  # (1, m)
    mask = padded.mask[[row], : hidden.shape[1]]
    return classifier.attention_weights(hidden, mask, asked, padded.known, row).cpu().numpy()


def network_of(model: SavedSystem) -> LabelClassifier:
    """The network of a system that has the channel `network`."""
    assert model.classifier is not None
    return model.classifier


@lru_cache(maxsize=4)
def _encoder(model: SavedSystem) -> SubwordEncoder | WordEncoder:
    from tokenizers import Tokenizer

    settings, files = parse_network(model.network["backbone"]), model.files
    if isinstance(settings, WordNetwork):
        return WordEncoder(settings, json.loads(files[VOCABULARY]))
    return SubwordEncoder(Tokenizer.from_str(files["tokenizer.json"].decode("utf-8")))


def tokens_of(model: SavedSystem, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Input ids (n) and character spans (n, 2) of each cleaned text, cut as in the corpus, no special tokens."""
    most = parse_network(model.network["backbone"]).max_tokens
    pieces = _encoder(model).encode(texts, training=False)
    # a vocabulary is numbered from 1 while texts are read, with 0 for other words
    numbers = pieces.ids - 1 if VOCABULARY in model.files else pieces.ids
    spans, ends = np.stack([pieces.starts, pieces.ends], axis=1), np.cumsum(pieces.lengths)
    found = []
    for first, last in zip(ends - pieces.lengths, ends, strict=True):
        part = slice(first, min(last, first + most))
        ids = numbers[part]
        kept = (ids >= 0) & ~np.isin(ids, model.network["skipped"])
        found.append((ids[kept], spans[part][kept]))
    return found


def corpus_of(model: SavedSystem, ids: Sequence[np.ndarray]) -> Corpus:
    """The input ids of some texts, with the evidence that the recipe keeps, as the pipeline reads documents."""
    network, corpus = model.network, Corpus.of(ids, splits={"test": len(ids)})
    if network["backbone"].get("cache_features"):
        corpus = replace(corpus, features=_features(model, corpus))
    data = TrainingData(corpus, np.array(network["trained"]), range(network["labels"]))  # type: ignore[arg-type]
    recipe = Finetuning.model_validate(network["finetuning"])
    return keep_evidence(data, network_of(model), recipe, static=model.static, residual=None, whole=True).corpus


def _features(model: SavedSystem, corpus: Corpus) -> np.ndarray:
    """Hidden states in fp16, as the pipeline caches those of a frozen backbone."""
    classifier, rows = network_of(model), [np.zeros((0, 1), np.float16)]
    for document in corpus.documents("test"):
        padded = pad_documents(corpus, np.array([document]), classifier.attention.embeddings.device)
        with torch.inference_mode():
            rows.append(classifier.hidden_states(padded).half().cpu().numpy()[0])
    return np.concatenate(rows[1:] or rows)
