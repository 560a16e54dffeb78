"""The four architectures of the paper as tiny random models: both stages through the settings, saved, read again."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from plant.finetuning.finetune import finetune
from plant.ground.errors import InputError
from plant.ground.settings import Finetuning, Pretraining, parse_backbone
from plant.model.assemble import TrainingData, build_classifier, load_weights, save_weights
from plant.model.batches import pad_documents
from plant.model.encoders.loading import load_model
from plant.model.encoders.transformer import load_backbone, make_random_backbone
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import pretrain

CPU = torch.device("cpu")
LAYERS = 2
ADAPTED = {"mistral": 4, "llama": 4, "phi3": 2, "deepseek_v3": 5}  # projections a layer (appendix A)
KINDS = [("none", "fp32"), ("none", "bf16"), ("nf4", "fp32"), ("nf4", "bf16")]
STAGE = {"epochs": 2, "patience": None, "batch_size": 5, "accumulation": 1, "learning_rate": 0.01,
         "head_learning_rate": 0.01}  # fmt: skip


def settings_of(architecture, quantization="none", precision="fp32", **options):
    sizes = {"hidden_size": 64, "layers": LAYERS, "heads": 2, "attention_heads": 2, "pool_size": 4, "vocabulary": 300}
    return parse_backbone(
        {"kind": "random", "architecture": architecture, "quantization": quantization, "precision": precision,
         "adapter": "lora", "lora": {"rank": 2}, "gradient_checkpointing": True, "chunk_tokens": 8, **sizes, **options}
    )  # fmt: skip


@pytest.fixture(scope="session")
def folder_of(tokenizer, tmp_path_factory):
    """architecture -> folder of its backbone."""
    made = {}

    def make(architecture):
        if architecture not in made:
            made[architecture] = tmp_path_factory.mktemp(architecture) / "backbone"
            make_random_backbone(settings_of(architecture), tokenizer, made[architecture])
        return made[architecture]

    return make


def indicators():
    """T_l: the indicator of label l, and a token of noise below it."""
    tokens = np.stack([10 + np.arange(6), 30 + np.arange(6)], 1)
    relevance = np.tile(np.array([1.0, 0.2], dtype=np.float32), (6, 1))
    return TopTokens.from_csr(np.arange(7) * 2, tokens.ravel(), relevance.ravel(), k=10, vocabulary=300)


@pytest.mark.parametrize(("quantization", "precision"), KINDS)
@pytest.mark.parametrize("architecture", ADAPTED)
def test_both_stages_train_the_adapter_and_what_is_saved_is_read_again(
    toy, folder_of, tmp_path, architecture, quantization, precision
):
    settings, data = settings_of(architecture, quantization, precision), TrainingData(toy, np.arange(6), list("abcdef"))

    def build(seed=0):
        return build_classifier(settings, folder_of(architecture), data, seed=seed, device=CPU)

    model = build()
    adapted = [module for module in model.modules() if hasattr(module, "lora_A")]
    assert len(adapted) == ADAPTED[architecture] * LAYERS
    trained = {name for name, p in model.backbone.named_parameters() if p.requires_grad}
    assert len(trained) == 2 * len(adapted)
    before = {name: p.detach().clone() for name, p in model.backbone.named_parameters()}
    first = pretrain(model, toy, indicators(), Pretraining(**STAGE), seed=0, checkpoint=tmp_path / "1", digest="d")
    save_weights(model, tmp_path / "planted", head=False)

    model = build(seed=1)
    load_weights(model, tmp_path / "planted", head=False)
    planted = {name: p.detach().clone() for name, p in model.backbone.named_parameters()}
    second = finetune(model, toy, Finetuning(**STAGE), seed=0, checkpoint=tmp_path / "2", digest="d")
    save_weights(model, tmp_path / "tuned", head=True)
    after = dict(model.backbone.named_parameters())
    assert len(first) == len(second) == 2
    assert np.isfinite([row["loss"] for row in first + second]).all()
    for name in before:
        moved = [not torch.equal(before[name], planted[name]), not torch.equal(planted[name], after[name])]
        assert moved == [name in trained] * 2, name

    again = build(seed=2)
    load_weights(again, tmp_path / "tuned", head=True)
    batch = pad_documents(toy, np.arange(25, 30), CPU)
    assert torch.equal(model.eval().predict(batch), again.eval().predict(batch))


@pytest.mark.parametrize("architecture", ADAPTED)
def test_nf4_takes_every_linear_layer_and_every_expert(folder_of, architecture):
    plain = load_model(settings_of(architecture), folder_of(architecture), CPU)
    model = load_model(settings_of(architecture, "nf4"), folder_of(architecture), CPU)
    linear = {name for name, module in plain.named_modules() if isinstance(module, nn.Linear)}
    assert {name for name, module in model.named_modules() if type(module).__name__ == "Linear4bit"} == linear
    assert len(linear) >= 4 * LAYERS
    left = {name for name, p in model.named_parameters() if p.is_floating_point() and p.ndim > 1}
    assert all("embed_tokens" in name or name.endswith("mlp.gate.weight") for name in left)  # the router stays exact
    numbers = {name: p.numel() for name, p in plain.named_parameters() if name not in left and p.ndim > 1}
    assert numbers == {name: 2 * p.numel() for name, p in model.named_parameters() if name in numbers}


@pytest.mark.parametrize("architecture", ADAPTED)
def test_no_keys_and_values_are_kept(folder_of, architecture):
    backbone = load_backbone(settings_of(architecture), folder_of(architecture))
    found = backbone.model(input_ids=torch.tensor([[5, 6, 7]]), attention_mask=torch.ones(1, 3, dtype=torch.long))
    assert found.past_key_values is None


@pytest.mark.parametrize("architecture", ["llama", "deepseek_v3"])
def test_an_evaluation_does_not_change_the_gradients_that_follow(folder_of, architecture):
    backbone = load_backbone(
        settings_of(architecture, "nf4", lora={"rank": 2, "dropout": 0.0}), folder_of(architecture)
    )
    ids, mask = torch.arange(10, 19)[None], torch.ones(1, 9, dtype=torch.bool)
    torch.manual_seed(0)
    weights = torch.randn(64)
    for name, parameter in backbone.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(parameter)

    def gradients():
        backbone.train().zero_grad()
        (backbone(ids, mask) @ weights).sum().backward()
        return {name: p.grad.clone() for name, p in backbone.named_parameters() if p.grad is not None}

    first = gradients()
    with torch.no_grad():
        backbone.eval()(ids, mask)
    again = gradients()
    assert len(first) == 2 * ADAPTED[architecture] * LAYERS
    assert all(torch.equal(value, again[name]) for name, value in first.items())


def test_experts_in_nf4_are_those_of_the_model_with_rounded_weights(folder_of):
    import bitsandbytes

    plain = load_model(settings_of("deepseek_v3"), folder_of("deepseek_v3"), CPU).layers[1].mlp.experts
    small = load_model(settings_of("deepseek_v3", "nf4"), folder_of("deepseek_v3"), CPU).layers[1].mlp.experts
    with torch.no_grad():
        for name in ("gate_up_proj", "down_proj"):
            weights = getattr(plain, name)
            for expert in range(len(weights)):
                packed, state = bitsandbytes.functional.quantize_nf4(weights[expert], compress_statistics=True)
                weights[expert] = bitsandbytes.functional.dequantize_4bit(packed, state)
    torch.manual_seed(0)
    x = torch.randn(7, 64)
    index = torch.tensor([[0, 2], [1, 0], [2, 1], [0, 1], [1, 2], [2, 0], [0, 2]])  # the fourth expert gets no token
    weights = torch.rand(7, 2)
    found = []
    for experts in (plain, small):
        states = x.clone().requires_grad_()
        out = experts(states, index, weights)
        out.square().sum().backward()
        found.append((out.detach(), states.grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)
    assert found[0][1].abs().max() > 0


def test_a_model_with_a_quantisation_of_its_own_is_refused(folder_of, tmp_path):
    for file in folder_of("deepseek_v3").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}  # as DeepSeek-V3 comes
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match="without a quantisation of its own"):
        load_model(settings_of("deepseek_v3", "nf4"), tmp_path, CPU)
