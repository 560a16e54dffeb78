"""Reads the files of other rooms into a corpus and a classifier; saves and loads weights."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plant.corpus.reader import load_labels, load_tokens
from plant.ground import settings as plant_settings
from plant.ground.checkpoints import load_tensors, save_tensors
from plant.ground.errors import InputError
from plant.ground.provenance import sha256
from plant.ground.seeds import stream
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier
from plant.model.descriptions import start_from_descriptions
from plant.model.determinism import set_up
from plant.model.features import read_features
from plant.model.l2r import l2r_from
from plant.model.registry import build_backbone

SPLITS = ("train", "val", "test")
ATTENTION, HEAD, BACKBONE = "label_attention.safetensors", "head.safetensors", "backbone.safetensors"


@dataclass(frozen=True)
class TrainingData:
    """A corpus whose labels are those that can be trained (choice C14).

    Attributes:
        corpus: documents; its label ids count the trained labels only.
        trained: ids of the trained labels in the full label list `names`.
    """

    corpus: Corpus
    trained: np.ndarray
    names: Sequence[str]


def load_training_data(corpus: Path, tokens: Path, features: Path | None = None) -> TrainingData:
    """Read a corpus and its tokens from their folders, and the file of cached hidden states.

    Raises:
        InputError: no training document has a label, a split has no token, or the features are of other tokens.
    """
    labels, texts = load_labels(corpus), load_tokens(tokens)
    ends = np.concatenate([[0], np.cumsum(labels.split_sizes)])
    splits = {name: (int(ends[i]), int(ends[i + 1])) for i, name in enumerate(SPLITS)}
    present = np.zeros(len(labels.names), dtype=bool)
    present[labels.indices[: labels.indptr[splits["train"][1]]]] = True
    trained = np.flatnonzero(present)
    if not len(trained):
        raise InputError(str(corpus), expected="labels on training documents", got="none", fix="Check the source.")
    new_id = np.cumsum(present) - 1
    kept = present[labels.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[labels.indptr]
    for name in ("train", "val"):
        first, last = splits[name]
        if texts.offsets[first] == texts.offsets[last]:
            raise InputError(
                f"{tokens}, {name} split", expected="a document with a token", got="none",
                fix="Check its texts, or lower min_documents of the backbone.",
            )  # fmt: skip
    states = None if features is None else read_features(features)
    if states is not None and len(states) != texts.offsets[-1]:
        raise InputError(
            str(features), expected=f"features of {texts.offsets[-1]} tokens", got=str(len(states)),
            fix="Delete the features and run again.",
        )  # fmt: skip
    data = Corpus(texts.input_ids, texts.offsets, indptr, new_id[labels.indices[kept]], splits, states)
    return TrainingData(data, trained, labels.names)


def build_classifier(
    settings: plant_settings.Network, source: str | Path, data: TrainingData, *, seed: int, device: torch.device
) -> LabelClassifier:
    """A classifier, initialised by the seed: two variants of one seed start from the same weights.

    The backbone is loaded from `source` (`build_backbone`); where features are cached there is none.
    """
    torch.manual_seed(stream(seed, "initialisation"))
    features, n_labels = data.corpus.features, len(data.trained)
    if features is None:
        vocabulary = 1 + int(data.corpus.input_ids.max(initial=-1))
        backbone: Any = build_backbone(settings, source, vocabulary=vocabulary, device=device)
        classifier = make_classifier(settings, backbone, n_labels=n_labels)
        backbone.place(device)
    else:
        classifier = make_classifier(settings, None, n_labels=n_labels, hidden_size=features.shape[1])
    classifier.attention.to(device)
    classifier.head.to(device)
    return classifier


def make_classifier(
    settings: plant_settings.Network, backbone: Any, *, n_labels: int, hidden_size: int | None = None
) -> LabelClassifier:
    """A classifier with the attention and the head that the settings of its backbone name.

    Without a backbone (cached features) the hidden size must be given.
    """
    return LabelClassifier(
        backbone, n_labels=n_labels, hidden_size=hidden_size or backbone.hidden_size, attention=settings.attention,
        heads=settings.attention_heads, pool_size=settings.pool_size, projection=settings.attention_size,
        mask_padding=settings.mask_padding,
    )  # fmt: skip


def parse_network(section: Mapping[str, Any]) -> plant_settings.Network:
    """The settings of a backbone that has a network."""
    settings = plant_settings.parse_backbone(section)
    assert not isinstance(settings, plant_settings.Words)
    return settings


def parse_transformer(section: Mapping[str, Any]) -> plant_settings.Pretrained | plant_settings.Random:
    """The settings of a backbone that is a transformer."""
    settings = parse_network(section)
    assert not isinstance(settings, plant_settings.WordNetwork)
    return settings


def prepare(
    settings: Mapping[str, Any],
    *,
    seed: int,
    corpus: str | Path,
    tokens: Path,
    backbone: str | Path,
    features: Path | None = None,
    embeddings: Path | None = None,
    initialisation: str = "random",
) -> tuple[TrainingData, LabelClassifier, dict[str, Any]]:
    """Set up threads and device, read the data, build the classifier: every script that runs a model begins with it.

    Args:
        settings: sections of the config, with `backbone` and `compute`.
        seed: of the run.
        corpus: folder of the corpus.
        tokens: tokens.safetensors of the backbone.
        backbone: as `source` of `build_backbone`.
        features: file of cached hidden states, or None.
        embeddings: file of `write_label_embeddings`, where E starts from descriptions.
        initialisation: of E: `random` (choice C10) or `descriptions` (choice C22).

    Returns:
        Data, classifier, and facts for the provenance.
    """
    device = set_up(settings["compute"])
    data = load_training_data(Path(corpus), tokens.parent, features)
    classifier = build_classifier(parse_network(settings["backbone"]), backbone, data, seed=seed, device=device)
    trainable = sum(p.numel() for p in classifier.parameters() if p.requires_grad)
    facts = {"device": str(device), "labels": len(data.trained), "trainable_parameters": trainable}
    if initialisation == "descriptions":
        assert embeddings is not None
        facts["labels_from_descriptions"] = start_from_descriptions(classifier.attention, embeddings, data.trained)
    return data, classifier, facts


def save_weights(classifier: LabelClassifier, folder: Path, *, head: bool) -> None:
    """Write the label attention, the trained part of the backbone and, after Stage 2, the head."""
    save_tensors(folder / ATTENTION, classifier.attention.state_dict())
    backbone = [] if classifier.backbone is None else classifier.backbone.named_parameters()
    save_tensors(folder / BACKBONE, {name: p for name, p in backbone if p.requires_grad})
    if head:
        save_tensors(folder / HEAD, classifier.head.state_dict())


def load_weights(classifier: LabelClassifier, folder: Path, *, head: bool) -> None:
    """Put weights of `save_weights` into a classifier built with the same settings.

    Raises:
        InputError: the folder or a file is missing, or does not fit the classifier.
    """
    if not folder.is_dir():
        raise InputError(
            str(folder), expected="a folder of weights", got="nothing there",
            fix="If it is an epoch that early stopping left out, name an earlier one or set `patience: null`.",
        )  # fmt: skip
    parts = [(classifier.attention, ATTENTION, True), (classifier.backbone, BACKBONE, False)]
    if head:
        parts.append((classifier.head, HEAD, True))
    for module, name, strict in parts:
        if module is None:
            continue
        tensors = load_tensors(folder / name)
        if module is classifier.attention and (l2r := l2r_from(tensors)) is not None:
            module.l2r = l2r.to(module.embeddings.device)
        try:
            unknown = module.load_state_dict(tensors, strict=strict).unexpected_keys
            lacking = [key for key, p in module.named_parameters() if p.requires_grad and key not in tensors]
            wrong = f"unknown names {unknown[:3]}" if unknown else f"no {lacking[0]}" if lacking else ""
        except RuntimeError as error:
            wrong = str(error).splitlines()[-1].strip()
        if wrong:
            raise InputError(
                str(folder / name), expected="weights that fit the configured model", got=wrong,
                fix="Delete the run's folder and run again.",
            )  # fmt: skip


def run_digest(facts: Any, inputs: Sequence[Path]) -> str:
    """SHA-256 over facts (plain data) and the contents of files or folders: only the same run may use a checkpoint."""
    sha = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for path in inputs:
        sha.update(bytes.fromhex(sha256(Path(path))))
    return sha.hexdigest()
