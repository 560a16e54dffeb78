"""The network of a saved model as an ONNX file: `plant export MODEL --onnx FILE`.

Inputs are `input_ids` and `attention_mask`, (B, n) int64 as for `PlantForDocuments.forward`; the output is `logits`,
(B, L) float32 in the order of labels.json. Batch and length are free, up to one piece of the backbone.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from plant.ground.errors import InputError
from plant.ground.files import atomic_path
from plant.model.classifier import Documents, LabelClassifier
from plant.model.transformer.backbone import Backbone
from plant.model.word_network import WordBackbone
from plant.serving.network import plain_network
from plant.serving.system import SavedSystem

LARGEST = 2**31
"""Bytes of weights that one ONNX file can hold."""


class OnePiece(nn.Module):
    """Logits of documents that are not cut into pieces: how a document is cut depends on its tokens, and a graph of
    ONNX is the same for all of them."""

    def __init__(self, classifier: LabelClassifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask, backbone = attention_mask.bool(), self.classifier.backbone
        if isinstance(backbone, Backbone):
            hidden = backbone.piece_states(input_ids, mask) * mask[..., None]
        elif isinstance(backbone, WordBackbone):  # which words are padding depends on the data too: all are looked up
            hidden = backbone.network(backbone.embed(input_ids) * mask[..., None], mask) * mask[..., None]
        else:
            hidden = self.classifier.hidden_states(Documents(mask, input_ids=input_ids))
        return self.classifier.logits(hidden, mask)


def export_onnx(model: SavedSystem, out: Path) -> str:
    """Write the network of a model, which is on the CPU, as ONNX; what was written, in one line.

    Raises:
        InputError: the system has no network, its network reads more than input ids, is recurrent, is too large for one
            file, or is another one that torch cannot convert.
    """
    classifier = plain_network(
        model, "plant export",
        "Save a variant without static attention or segments: snakemake model_<variant>_in_<experiment>.",
    )  # fmt: skip
    size = sum(weight.numel() * weight.element_size() for weight in classifier.parameters())
    if size >= LARGEST:
        raise InputError("plant export", expected="weights of less than 2 GB", got=f"{size / 1e9:.1f} GB",
                         fix="Load the folder with transformers instead.")  # fmt: skip
    if any(isinstance(module, nn.RNNBase) for module in classifier.modules()):  # torch's graph fixes their batch
        raise _refused("a recurrent one")
    ids, mask = torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0
    free = {0: "batch", 1: "tokens"}
    try:
        program = torch.onnx.export(
            OnePiece(classifier).eval(), (ids, mask), dynamo=True, verbose=False,
            input_names=["input_ids", "attention_mask"], output_names=["logits"],
            dynamic_shapes={"input_ids": free, "attention_mask": free},
        )  # fmt: skip
    except torch.onnx.OnnxExporterError as error:
        raise _refused(f"another one ({type(error).__name__})") from error
    assert program is not None  # what the older exporter returns
    backbone = model.network["backbone"]
    most = backbone.get("chunk_tokens") or backbone["max_tokens"]
    program.model.metadata_props["max_tokens"] = str(most)
    with atomic_path(out) as partial:
        program.save(str(partial))
    return f"{out}: {len(model.labels)} labels, documents of up to {most} tokens"


def _refused(got: str) -> InputError:
    return InputError(
        "plant export", expected="a network that torch can convert", got=got,
        fix="Load the folder in Python, or export a transformer or a convolution.",
    )  # fmt: skip
