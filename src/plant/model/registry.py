"""Encoders and label attentions by name: one module each, and nothing else to write.

To add an encoder of word networks is to add a module `encoders/<name>.py` with a function

    build(settings, source, *, vocabulary, <options>) -> a module with `hidden_size`, `place(device)` and
        forward(input_ids (B, n), mask (B, n)) -> H (B, n, h), zeros at padding

`plant.model.word_network` has the embedding that word networks share. `options` of the backbone may name each keyword
argument but `vocabulary` and `language_model`. An encoder with the argument `language_model` can start from one
(`plant.model.language_model`).

To add a label attention is to add a module `attentions/<name>.py` with `build(sizes) -> (attention, head)`
(`plant.model.label_attention`). No rule, script or other module names them. Only the training of a language model is
written for one encoder, AWD-LSTM.

Nothing here imports PyTorch until something is built, because the Snakefile checks names by these folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from plant.ground.errors import InputError, nearest
from plant.ground.folders import ModuleFolder
from plant.ground.settings import Network, Settings, WordNetwork, Words

if TYPE_CHECKING:
    import torch

ENCODERS = ModuleFolder("plant.model.encoders", "build", given=("vocabulary", "language_model"))
"""Encoders of word networks (`kind: word_network`)."""
ATTENTIONS = ModuleFolder("plant.model.attentions", "build")
"""Label attentions, each with its head."""
TRANSFORMER = "plant.model.transformer.backbone"
WITHOUT_LAYERS = ("bigru", "bilstm", "cnn", "multi_res_cnn")
"""Encoders that do not name their layers, for gradual unfreezing; a transformer does not either."""
WITHOUT_PRODUCTS = ("cross_attention", "cross_attention_own", "cross_attention_states", "multi_head")
"""Label attentions whose head cannot read segments: it has no `products` to sum over segments."""


def build_backbone(settings: Network, source: str | Path, *, vocabulary: int, device: torch.device) -> torch.nn.Module:
    """The backbone that a section of the config describes.

    `source` is the hub id or folder of a transformer. Of a word network it is the file of its word vectors or language
    model, or "" for random weights; `vocabulary` is one more than the largest token id of the corpus.
    """
    if not isinstance(settings, WordNetwork):
        return import_module(TRANSFORMER).load_backbone(settings, source, device=device)
    start = {"language_model": source} if settings.language_model else {}
    build = ENCODERS.load(settings.encoder)
    return build(settings, "" if start else source, vocabulary=vocabulary, **start, **settings.options)


def modules_of(settings: Network) -> list[str]:
    """The modules that make this backbone and its attention: no import statement names them."""
    encoder = ENCODERS.module(settings.encoder) if isinstance(settings, WordNetwork) else TRANSFORMER
    return [encoder, ATTENTIONS.module(settings.attention)]


def check(settings: Settings) -> None:
    """Refuse encoders, attentions and options that do not exist, and recipes that a backbone cannot follow.

    Raises:
        InputError: one error that lists every fault.
    """
    faults = [*_unknown(settings), *_descriptions(settings), *_decoders(settings)]
    if faults:
        raise InputError(
            "config", expected="encoders and label attentions that can be made", got=f"{len(faults)} fault(s)",
            fix="Correct:\n  " + "\n  ".join(faults),
        )  # fmt: skip


def _unknown(settings: Settings) -> Iterator[str]:
    encoders, attentions = ENCODERS.names(), ATTENTIONS.names()
    for name, backbone in settings.backbones.items():
        path = f"backbones.{name}"
        if isinstance(backbone, Words):
            continue
        if backbone.attention not in attentions:
            yield f"{path}.attention: unknown name {backbone.attention!r}. {nearest(backbone.attention, attentions)}"
        if not isinstance(backbone, WordNetwork):
            continue
        if backbone.encoder not in encoders:
            yield f"{path}.encoder: unknown name {backbone.encoder!r}. {nearest(backbone.encoder, encoders)}"
            continue
        if backbone.language_model is not None and not ENCODERS.takes(backbone.encoder, "language_model"):
            able = ", ".join(each for each in encoders if ENCODERS.takes(each, "language_model"))
            yield f"{path}.language_model: {backbone.encoder} cannot be a language model; these can: {able}"
        known = ENCODERS.options(backbone.encoder)
        for key in backbone.options:
            if key not in known:
                yield f"{path}.options: {backbone.encoder} has no option {key!r}. {nearest(key, known)}"
        for key in sorted(each for each, needed in known.items() if needed and each not in backbone.options):
            yield f"{path}.options: {backbone.encoder} needs the option {key!r}"


def _descriptions(settings: Settings) -> Iterator[str]:
    """Label embeddings from descriptions need states that mean something before any training."""
    for name, experiment in settings.experiments.items():
        if not isinstance(settings.backbones.get(experiment.backbone), WordNetwork):
            continue
        for variant in experiment.variants:
            recipe = settings.variants[variant]
            stages = [settings.pretrainings.get(recipe.pretraining), settings.finetunings[recipe.finetuning]]
            if any(stage is not None and stage.initialisation == "descriptions" for stage in stages):
                yield (
                    f"experiments.{name}.variants: {variant} starts from descriptions, but the states of the word "
                    f"network {experiment.backbone!r} are random before training; use `initialisation: random`"
                )


def _decoders(settings: Settings) -> Iterator[str]:
    """What Stage 2 would refuse after Stage 1 has been trained."""
    for name, experiment in settings.experiments.items():
        for variant in experiment.variants:
            recipe = settings.variants[variant]
            stage2 = settings.finetunings[recipe.finetuning]
            for place in filter(None, (experiment.backbone, recipe.average_with)):
                backbone, path = settings.backbones[place], f"experiments.{name}.variants: {variant}"
                if isinstance(backbone, Words):
                    continue
                if stage2.segment is not None and backbone.attention in WITHOUT_PRODUCTS:
                    yield f"{path} has a segment, which {place!r} cannot read with attention: {backbone.attention}"
                names_layers = isinstance(backbone, WordNetwork) and backbone.encoder not in WITHOUT_LAYERS
                if stage2.unfreezing == "gradual" and not names_layers:
                    yield f"{path} has gradual unfreezing, which {place!r} cannot do: its layers have no names"
