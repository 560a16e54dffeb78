"""A training step of each of the paper's backbones at its real size, on torch's meta device: shapes, types, bytes.

docs/explanation/plan.md has the table of the bytes; `-s` prints its rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoConfig, AutoModel, masking_utils

from plant.finetuning.losses.focal import focal_loss
from plant.ground.settings import Pretrained
from plant.model.classifier import LabelClassifier
from plant.model.transformer.backbone import _adapt

SHAPES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shapes.yaml").read_text(encoding="utf-8"))
LABELS, TOKENS, DOCUMENTS = 8929, 4096, 2
GB = 1e9


def build(name: str, settings: Pretrained) -> LabelClassifier:
    """Backbone with LoRA, label attention and head on the meta device, as training makes them."""
    shape = {key: value for key, value in SHAPES[name].items() if key not in ("source", "published", "stored")}
    model = AutoModel.from_config(AutoConfig.for_model(**shape)).to(torch.bfloat16)
    model.config.use_cache = False
    if shape["model_type"] == "deepseek_v3":
        model.config._experts_implementation = "grouped_mm"  # the other way asks which experts were chosen
    model.activation_checkpointing_enable({"use_reentrant": False})
    model.enable_input_require_grads()
    backbone = _adapt(model, settings).to("meta")
    for parameter in backbone.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()  # as peft trains them
    return LabelClassifier(backbone, n_labels=LABELS, hidden_size=shape["hidden_size"], heads=8, pool_size=128).train()


def size(tensors: Any) -> float:
    return sum(x.numel() * x.element_size() for x in tensors) / GB


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_memory_of_a_step_at_real_size_follows_from_published_counts(name, monkeypatch):
    # it reads the positions to see whether a row holds several texts
    monkeypatch.setattr(masking_utils, "find_packed_sequence_indices", lambda _: None)
    settings = Pretrained(kind="pretrained", path=name, precision="bf16", gradient_checkpointing=True,
                          max_tokens=TOKENS, chunk_tokens=TOKENS)  # fmt: skip
    kept: dict[int, tuple[int, torch.Tensor]] = {}
    with torch.device("meta"):
        model = build(name, settings)
        weights = {p.untyped_storage()._cdata for p in model.parameters()}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in weights:
                kept[storage._cdata] = (storage.nbytes(), tensor)  # held, so that no other storage takes its place
            return tensor

        ids = torch.zeros(DOCUMENTS, TOKENS, dtype=torch.long)
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16),
        ):
            hidden = model.backbone(input_ids=ids).last_hidden_state.float()
        logits = model.logits(hidden, torch.ones(DOCUMENTS, TOKENS, dtype=torch.bool))
        truth = torch.zeros(DOCUMENTS, LABELS, dtype=torch.bool)
        focal_loss(logits, truth, gamma=2.0, epsilon=0.1, n_labels=LABELS).sum().backward()

    # shapes, types and devices
    trained = [p for p in model.parameters() if p.requires_grad]
    assert (logits.shape, logits.dtype, hidden.dtype) == ((DOCUMENTS, LABELS), torch.float32, torch.float32)
    assert {p.dtype for p in trained} == {torch.float32}
    assert all(p.grad is not None and p.grad.shape == p.shape and p.grad.device.type == "meta" for p in trained)
    assert not any(p.grad is not None for p in model.parameters() if not p.requires_grad)
    # bytes
    shape, tokens = SHAPES[name], DOCUMENTS * TOKENS
    weights, states = size(model.parameters()), sum(nbytes for nbytes, _ in kept.values()) / GB
    print(f"| {name} | {weights:.2f} | {4 * size(trained):.2f} | {states:.2f} |")
    # bf16 weights of the published model without its language-model head, which is never loaded, and fp32 trained ones
    published = shape["published"]["parameters"] - shape["vocab_size"] * shape["hidden_size"] / 1e9
    assert weights == pytest.approx(2 * published + size(trained), rel=1e-3)
    # one bf16 state a layer and token, and the last norm's input in fp32
    layers = shape["num_hidden_layers"]
    assert states == pytest.approx(tokens * shape["hidden_size"] * (2 * layers + 4) / GB, rel=1e-3)
