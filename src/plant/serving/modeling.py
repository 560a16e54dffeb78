"""The saved model as a class of transformers: `AutoModelForSequenceClassification.from_pretrained(folder)`.

    import plant.serving.modeling                       # registers the class; no code comes from the folder
    model = AutoModelForSequenceClassification.from_pretrained("results/serving/demo/best")
    scores = model.score(["a text", "another one"])     # what the whole system says, as in the pipeline
    logits = model(input_ids, attention_mask).logits    # what the network says

Everything that a system needs is in its folder (`plant.serving.folder`): the network, the words, the thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from plant.metrics.scores import Scores
from plant.model.classifier import Documents
from plant.serving.network import plain_network
from plant.serving.system import SavedSystem, load_system


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


class PlantForDocuments(PreTrainedModel):
    """A system that labels documents: a network with planted label attention, word scores, or both."""

    config_class = PlantConfig
    base_model_prefix = "classifier"

    def __init__(self, config: PlantConfig, saved: SavedSystem) -> None:
        super().__init__(config)
        self.saved, self.classifier = saved, saved.classifier

    def score(self, texts: Sequence[str]) -> Scores:
        """Scores of the whole system (`SavedSystem.score`)."""
        return self.saved.score(texts)

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
        classifier = plain_network(self.saved, "forward", "Use `score`, which takes texts.")
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        hidden = classifier.hidden_states(Documents(mask.bool(), input_ids=input_ids))
        logits = classifier.logits(hidden, mask.bool())
        loss = None
        if labels is not None:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return SequenceClassifierOutput(loss=loss, logits=logits)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, *_: Any, **options: Any) -> Self:
        """The model of a folder, which is checked first. Of the options only `config` counts.

        Raises:
            InputError: the folder is not whole, see `plant.serving.folder.check_folder`.
        """
        saved = load_system(pretrained_model_name_or_path)
        return cls(options.get("config") or PlantConfig.from_pretrained(pretrained_model_name_or_path), saved).eval()

    def save_pretrained(self, save_directory: str | Path, **_: Any) -> None:
        """Write the whole system as one folder."""
        self.config.architectures = [type(self).__name__]
        self.saved.save(Path(save_directory), self.config.to_diff_dict())


AutoConfig.register(PlantConfig.model_type, PlantConfig, exist_ok=True)
AutoModelForSequenceClassification.register(PlantConfig, PlantForDocuments, exist_ok=True)
