"""The network of a saved model: built from config.json, filled from its weights, and read with texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plant.corpus.encoders import WORD, Pieces, SubwordEncoder
from plant.finetuning.kept_evidence import keep_evidence
from plant.ground.checkpoints import load_tensors
from plant.ground.errors import InputError
from plant.ground.settings import Finetuning, Pretrained, Random, WordNetwork
from plant.model.assemble import TrainingData, parse_network
from plant.model.batches import Corpus, ordered_batches, pad_documents
from plant.model.classifier import Documents, LabelClassifier
from plant.model.l2r import l2r_from
from plant.model.registry import build_backbone
from plant.model.transformer.backbone import Backbone
from plant.serving import folder as places

if TYPE_CHECKING:
    from plant.serving.system import SavedConfig, SavedSystem

VOCABULARY = "vocabulary.json"
"""The words of a word network, in the order of their ids."""
Look = Callable[[int, np.ndarray, np.ndarray, Callable[[Sequence[int]], np.ndarray]], None]
"""(number of a text, its logits (L,), the character spans of its tokens (n, 2), labels -> shares of their attention
(m, n))."""


def build_network(config: SavedConfig) -> LabelClassifier:
    """The network of a config; its weights are not loaded and mean nothing."""
    settings = parse_network(config.network["backbone"])
    if isinstance(settings, WordNetwork):
        bare = settings.model_copy(update={"word_vectors": None, "language_model": None})
        vocabulary = config.network["vocabulary"]
        backbone: Any = build_backbone(bare, "", vocabulary=vocabulary, device=torch.device("cpu"))
    else:
        backbone = _transformer(settings, config.network)
    return LabelClassifier(
        backbone, n_labels=config.num_labels, hidden_size=backbone.hidden_size, attention=settings.attention,
        heads=settings.attention_heads, pool_size=settings.pool_size, projection=settings.attention_size,
        mask_padding=settings.mask_padding,
    )  # fmt: skip


def _transformer(settings: Pretrained | Random, network: Mapping[str, Any]) -> Backbone:
    own = dict(network["architecture"])
    from transformers import AutoConfig, AutoModel
    from transformers.initialization import no_init_weights

    with no_init_weights():  # the weights of the folder take their place
        model = AutoModel.from_config(AutoConfig.for_model(own.pop("model_type"), **own))
    model.config.use_cache = False
    if settings.bidirectional:
        model.config.is_causal = False
        for module in model.modules():
            if hasattr(module, "is_causal"):
                module.is_causal = False
    if network["lora"] is not None:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(**network["lora"]))
    return Backbone(
        model, chunk_tokens=settings.chunk_tokens, prefix=tuple(network["prefix"]), suffix=tuple(network["suffix"]),
        precision=settings.precision,
    )  # fmt: skip


def load_network(config: SavedConfig, source: Path) -> LabelClassifier:
    """A network with the weights of a file, ready to predict; they keep the type that they have in the file.

    Raises:
        InputError: the weights do not fit the config.
    """
    classifier = build_network(config)
    # copies: a mapped file that is overwritten would end the process
    tensors = {name: one.clone() for name, one in load_tensors(source).items()}
    of_attention = {
        name.removeprefix("attention."): one for name, one in tensors.items() if name.startswith("attention.")
    }
    if (ranking := l2r_from(of_attention)) is not None:
        classifier.attention.l2r = ranking
    try:
        classifier.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise InputError(
            str(source), expected="the weights of the network in config.json",
            got=str(error).splitlines()[-1].strip(), fix=places.AGAIN,
        ) from error  # fmt: skip
    return classifier.eval()


def reads_more(config: SavedConfig) -> bool:
    """Whether the network reads more of a document than its tokens, or reads it in segments."""
    recipe = Finetuning.model_validate(config.network["finetuning"])
    return bool(recipe.static_attention or recipe.differentiable_attention or recipe.segment)


@torch.no_grad()
def network_logits(model: SavedSystem, texts: Sequence[str], look: Look | None = None) -> np.ndarray:
    """(N, L) float32 of cleaned texts; -inf for a text without a token.

    Args:
        model: a system with a network.
        texts: after cleaning.
        look: called for each text with a token, while its hidden states are at hand.
    """
    classifier, tokens = require_network(model), tokens_of(model, texts)
    corpus, device = corpus_of(model, [ids for ids, _ in tokens]), classifier.attention.embeddings.device
    logits = np.full((len(texts), model.config.num_labels), -np.inf, np.float32)
    vectors = classifier.label_vectors()  # they serve all batches
    batch_size = model.config.network["finetuning"]["batch_size"]
    for batch in ordered_batches(corpus, corpus.documents("test"), batch_size):
        padded = pad_documents(corpus, batch, device)
        hidden = classifier.hidden_states(padded)
        made = classifier.logits(hidden, padded.mask, vectors=vectors, known=padded.known)
        logits[batch] = made.float().cpu().numpy()
        if look is None:
            continue
        for row, text in enumerate(batch.tolist()):
            own, spans = hidden[[row], : len(tokens[text][0])], tokens[text][1]
            look(text, logits[text], spans, partial(_shares, classifier, own, padded, row))
    return logits


def _shares(
    classifier: LabelClassifier, hidden: Tensor, padded: Documents, row: int, labels: Sequence[int]
) -> np.ndarray:
    """Shares of some labels' attention (m, n), the mean over heads; the states (1, n, h) are those of a padded row."""
    asked = torch.tensor([list(labels)], device=hidden.device)
    mask, bias, weights = padded.mask[[row], : hidden.shape[1]], padded.known.bias, padded.known.weights
    added = None if bias is None else classifier.dense_bias(hidden, asked, bias, row)
    attention = classifier.attention.token_probabilities(hidden, asked, mask, added)
    if weights is not None:
        attention = attention + classifier.dense_bias(hidden, asked, weights, row)
    return attention[0].cpu().numpy()


def require_network(model: SavedSystem) -> LabelClassifier:
    """The network of a system that has one."""
    if model.classifier is None:
        raise InputError("model", expected="a system with a network", got=model.config.system["kind"], fix="Use words.")
    return model.classifier


class SavedVocabulary(NamedTuple):
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
def _encoder(model: SavedSystem) -> SubwordEncoder | SavedVocabulary:
    from tokenizers import Tokenizer

    files = model.parts.files
    if VOCABULARY in files:
        return SavedVocabulary({word: place for place, word in enumerate(json.loads(files[VOCABULARY]))})
    return SubwordEncoder(Tokenizer.from_str(files["tokenizer.json"].decode("utf-8")))


def tokens_of(model: SavedSystem, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
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


def corpus_of(model: SavedSystem, ids: Sequence[np.ndarray]) -> Corpus:
    """The input ids of some texts, with the evidence that the recipe keeps, as the pipeline reads documents."""
    network = model.config.network
    offsets = np.concatenate([[0], np.cumsum([len(tokens) for tokens in ids])]).astype(np.int64)
    none = np.zeros(len(ids) + 1, np.int64)
    joined, splits = np.concatenate([np.zeros(0, np.int32), *ids]), {"test": (0, len(ids))}
    corpus = Corpus(joined, offsets, none, np.zeros(0, np.int64), splits)
    if network["backbone"].get("cache_features"):
        corpus = replace(corpus, features=_features(model, corpus))
    data = TrainingData(corpus, np.array(network["trained"]), range(network["labels"]))  # type: ignore[arg-type]
    recipe = Finetuning.model_validate(network["finetuning"])
    static = model.parts.static
    return keep_evidence(data, require_network(model), recipe, static=static, residual=None, whole=True).corpus


def _features(model: SavedSystem, corpus: Corpus) -> np.ndarray:
    """Hidden states in fp16, as the pipeline caches those of a frozen backbone."""
    classifier, rows = require_network(model), [np.zeros((0, 1), np.float16)]
    for document in corpus.documents("test"):
        padded = pad_documents(corpus, np.array([document]), classifier.attention.embeddings.device)
        with torch.inference_mode():
            rows.append(classifier.hidden_states(padded).half().cpu().numpy()[0])
    return np.concatenate(rows[1:] or rows)
