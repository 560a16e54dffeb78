"""The saved model as a class of transformers: `AutoModelForSequenceClassification.from_pretrained(folder)`.

    import plant.serving.modeling                       # registers the class; no code comes from the folder
    model = AutoModelForSequenceClassification.from_pretrained("results/serving/demo/best")
    scores = model.score(["a text", "another one"])     # what the whole system says, as in the pipeline
    logits = model(input_ids, attention_mask).logits    # what the network says

Everything that a system needs is in its folder (`plant.serving.folder`): the network, the words, the thresholds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from plant.ground import files
from plant.ground.checkpoints import save_tensors
from plant.ground.errors import InputError
from plant.ground.settings import WordNetwork
from plant.model.assemble import parse_network
from plant.model.classifier import Documents, LabelClassifier
from plant.model.transformer.backbone import Backbone
from plant.serving import folder as places
from plant.serving.folder import as_json, check_folder, write_folder
from plant.serving.network import reads_more
from plant.serving.system import STATIC, WORD_ARRAYS, WORDS, Parts, SavedSystem, read_network, read_parts


class PlantConfig(PretrainedConfig):
    """config.json of a saved model.

    Attributes:
        network: settings of the backbone (`backbone`), the recipe of Stage 2 (`finetuning`), ids that are never read
            (`skipped`), the size of the vocabulary and of the whole label list (`vocabulary`, `labels`), the numbers
            of the trained labels in it (`trained`); of a transformer its own config (`architecture`), LoRA (`lora`)
            and the special tokens around a text (`prefix`, `suffix`). Empty: the system has no network.
        system: `name`, `kind` (network, log_odds, linear, combined or evidence), `channels` in order, what weighs them
            (`scalars`, or `weight` and `scales`), `natural_threshold`, and how many scores are kept (`top`,
            `dense_limit`).
        cleaning: of the texts, as in the corpus.
    """

    model_type = "plant"

    def __init__(
        self,
        network: dict[str, Any] | None = None,
        system: dict[str, Any] | None = None,
        cleaning: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.network, self.system, self.cleaning = network or {}, system or {}, cleaning or {}
        super().__init__(**kwargs)

    @property
    def label_names(self) -> list[str]:
        """The labels in the order of the scores."""
        return [self.id2label[place] for place in range(len(self.id2label))]


class PlantForDocuments(SavedSystem, PreTrainedModel):
    """A system that labels documents: a network with planted label attention, word scores, or both.

    Args:
        config: of the system.
        classifier: with its weights; None if the system has none.
        parts: words, thresholds and labels.
    """

    config_class = PlantConfig
    base_model_prefix = "classifier"

    def __init__(
        self, config: PlantConfig, classifier: LabelClassifier | None = None, parts: Parts | None = None
    ) -> None:
        PreTrainedModel.__init__(self, config)
        self.parts, self.classifier = parts or Parts(), classifier

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **_: Any
    ) -> SequenceClassifierOutput:
        """Logits of the network alone.

        Args:
            input_ids: (B, n), without special tokens: the model puts them around each piece of a document.
            attention_mask: (B, n), 1 at tokens, which come before all padding. None: no padding.
            labels: (B, L) of 0 and 1; gives the binary cross-entropy as loss.

        Returns:
            logits (B, L) in the order of `config.id2label`.

        Raises:
            InputError: the system has no network, or keeps evidence in its attention (use `score`).
        """
        if self.classifier is None or reads_more(self.config):
            raise InputError(
                "forward", expected="a system whose network reads nothing but input ids",
                got=f"the system {self.config.system['name']}", fix="Use `score`, which takes texts.",
            )  # fmt: skip
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        hidden = self.classifier.hidden_states(Documents(mask.bool(), input_ids=input_ids))
        logits = self.classifier.logits(hidden, mask.bool())
        loss = None
        if labels is not None:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return SequenceClassifierOutput(loss=loss, logits=logits)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, *_: Any, **options: Any) -> Self:
        """Load a folder after checking that it is whole (`plant.serving.folder.check_folder`).

        Args:
            pretrained_model_name_or_path: the folder.
            options: `config`; what else transformers passes on plays no part.

        Raises:
            InputError: as `check_folder`, or the weights do not fit the config.
        """
        path = check_folder(pretrained_model_name_or_path)
        config = options.get("config") or PlantConfig.from_pretrained(path)
        return cls(config, read_network(config, path), read_parts(path)).eval()

    def save_pretrained(self, save_directory: str | Path, **_: Any) -> None:
        """Write the whole system as one folder, in one step (`plant.serving.folder`)."""
        self.config.architectures = [type(self).__name__]
        content: dict[str, bytes | Path] = {
            places.CONFIG: as_json(self.config.to_diff_dict()),
            places.THRESHOLDS: as_json(self.parts.thresholds),
            places.LABELS: as_json(self.parts.labels),
            **self.parts.files,
        }
        target = Path(save_directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
            arrays = {name: np.asarray(array) for name, array in self.parts.arrays.items()}
            for channel, scorer in self.parts.scorers.items():
                arrays |= {f"{channel}.{name}": array for name, array in scorer.arrays().items()}
            if arrays:
                records = {channel: scorer.record() for channel, scorer in self.parts.scorers.items()}
                content[WORDS], content[WORD_ARRAYS] = as_json(records), Path(scratch) / WORD_ARRAYS
                files.write_arrays(Path(scratch) / WORD_ARRAYS, arrays)
            if self.classifier is not None:
                content[places.WEIGHTS] = Path(scratch) / places.WEIGHTS
                save_tensors(Path(scratch) / places.WEIGHTS, self.classifier.state_dict())
            if self.parts.static is not None:
                content[STATIC] = Path(shutil.copyfile(self.parts.static, Path(scratch) / STATIC))
            write_folder(target, content)


def backbone_record(classifier: LabelClassifier, backbone: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json says of a backbone that the pipeline has built.

    Args:
        classifier: with its backbone.
        backbone: the settings.

    Raises:
        InputError: the backbone cannot be rebuilt from a config and a file of weights.
    """
    settings, inner = parse_network(backbone), classifier.backbone
    if isinstance(settings, WordNetwork) or not isinstance(inner, Backbone):
        return {"backbone": dict(backbone)}
    if settings.quantization != "none":
        raise InputError(
            "saved model", expected="a backbone in 16 or 32 bits", got=f"quantization: {settings.quantization}",
            fix="Train with `quantization: none` to save the model, or save a system of words alone.",
        )  # fmt: skip
    kind = inner.model.config.model_type  # type: ignore[union-attr]
    if kind not in CONFIG_MAPPING:
        raise InputError(
            "saved model", expected="a backbone that transformers can build by itself", got=f"the model type {kind!r}",
            fix="Its code is on the hub, and a model folder holds none; save a system of words alone.",
        )  # fmt: skip
    lora = None
    if settings.adapter == "lora":
        found: Any = inner.model.peft_config["default"]  # type: ignore[index]
        lora = {"r": found.r, "lora_alpha": found.lora_alpha, "lora_dropout": found.lora_dropout,
                "target_modules": sorted(found.target_modules), "bias": "none"}  # fmt: skip
    architecture = json.loads(json.dumps(inner.model.config.to_diff_dict(), default=str))  # type: ignore[union-attr, operator]
    return {
        "backbone": dict(backbone), "architecture": architecture, "lora": lora,
        "prefix": list(inner.prefix), "suffix": list(inner.suffix),
    }  # fmt: skip


AutoConfig.register(PlantConfig.model_type, PlantConfig, exist_ok=True)
AutoModelForSequenceClassification.register(PlantConfig, PlantForDocuments, exist_ok=True)
