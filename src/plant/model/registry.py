"""Encoders and label attentions by name: one entry and one file each.

To add an encoder: write `encoders/<file>.py` with a function

    build(settings, source, *, vocabulary, device) -> a module with `hidden_size`, `place(device)` and
        forward(input_ids (B, n), mask (B, n)) -> H (B, n, h), zeros at padding

(`plant.model.encoders.words` says what its arguments are, and has the embedding of word networks), and an entry below.
To add a label attention: write `attentions/<file>.py` with `build(sizes) -> (attention, head)`
(`plant.model.attentions.interface`), and an entry below. No rule and no script names them. Only the language
model before training (`language_model`, of AWD-LSTM) is written for one encoder.

Nothing here imports PyTorch until something is built, because the Snakefile checks names by this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Network, Settings, WordNetwork, Words

if TYPE_CHECKING:
    import torch

    from plant.model.attentions.interface import Sizes

TRANSFORMER = "plant.model.encoders.transformer:build"


@dataclass(frozen=True)
class Entry:
    """Where an encoder or an attention is made.

    Attributes:
        function: `module:function`.
        options: keys of `options` in the config that this encoder alone reads.
        language_model: whether the encoder can start from a language model (`plant.model.language_model`).
    """

    function: str
    options: tuple[str, ...] = ()
    language_model: bool = False

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    def load(self) -> Callable[..., Any]:
        """The function; imports its module."""
        return getattr(import_module(self.module), self.function.partition(":")[2])


ENCODERS = {
    "awd_lstm": Entry(
        "plant.model.encoders.awd_lstm:build",
        options=("segment", "backward", "frozen", "input_dropout", "hidden_dropout", "weight_dropout", "word_dropout"),
        language_model=True,
    ),
    "cnn": Entry("plant.model.encoders.cnn:build"),
    "multi_res_cnn": Entry("plant.model.encoders.multi_res_cnn:build"),
    "bilstm": Entry("plant.model.encoders.recurrent:lstm"),
    "bigru": Entry("plant.model.encoders.recurrent:gru"),
}
"""Encoders of word networks (`kind: word_network`)."""

ATTENTIONS = {
    "multi_head": Entry("plant.model.attentions.multi_head:build"),
    "per_label": Entry("plant.model.attentions.per_label:build"),
    "laat": Entry("plant.model.attentions.laat:build"),
    "cross_attention": Entry("plant.model.attentions.cross_attention:build"),
}
"""Label attentions, each with its head."""


def build_backbone(settings: Network, source: str | Path, *, vocabulary: int, device: torch.device) -> torch.nn.Module:
    """The backbone that a section of the config describes.

    Args:
        settings: of the backbone.
        source: hub id or folder of a transformer; file of word vectors, or "" for random ones, of a word network.
        vocabulary: one more than the largest token id of the corpus.
        device: where the job runs.
    """
    encoder = ENCODERS[settings.encoder] if isinstance(settings, WordNetwork) else Entry(TRANSFORMER)
    return encoder.load()(settings, source, vocabulary=vocabulary, device=device)


def build_attention(name: str, sizes: Sizes) -> tuple[torch.nn.Module, torch.nn.Module]:
    """A label attention and its head.

    Raises:
        InputError: the attention does not fit the sizes.
    """
    return ATTENTIONS[name].load()(sizes)


def modules_of(settings: Network) -> list[str]:
    """The modules that make this backbone and its attention: no import statement names them."""
    encoder = ENCODERS[settings.encoder] if isinstance(settings, WordNetwork) else Entry(TRANSFORMER)
    return [encoder.module, ATTENTIONS[settings.attention].module]


def check(settings: Settings) -> None:
    """Refuse encoders, attentions and options that are not in the tables, and recipes that a backbone cannot follow.

    Raises:
        InputError: one error that lists every fault.
    """
    faults = [*_unknown(settings), *_descriptions(settings)]
    if faults:
        raise InputError(
            "config", expected="encoders and label attentions that can be made", got=f"{len(faults)} fault(s)",
            fix="Correct:\n  " + "\n  ".join(faults),
        )  # fmt: skip


def _unknown(settings: Settings) -> Iterator[str]:
    for name, backbone in settings.backbones.items():
        path = f"backbones.{name}"
        if isinstance(backbone, Words):
            continue
        if backbone.attention not in ATTENTIONS:
            yield f"{path}.attention: unknown name {backbone.attention!r}. {nearest(backbone.attention, ATTENTIONS)}"
        if not isinstance(backbone, WordNetwork):
            continue
        if backbone.encoder not in ENCODERS:
            yield f"{path}.encoder: unknown name {backbone.encoder!r}. {nearest(backbone.encoder, ENCODERS)}"
            continue
        if backbone.language_model is not None and not ENCODERS[backbone.encoder].language_model:
            able = ", ".join(name for name, entry in ENCODERS.items() if entry.language_model)
            yield f"{path}.language_model: {backbone.encoder} cannot be a language model; these can: {able}"
        known = ENCODERS[backbone.encoder].options
        for key in backbone.options:
            if key not in known:
                yield f"{path}.options: {backbone.encoder} has no option {key!r}. {nearest(key, known)}"


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
