"""The four architectures of the paper as tiny random models in NF4. Both stages of each: tests/gpu/test_gpu_run.py."""

import json

import pytest
import torch
from torch import nn

from plant.ground.errors import InputError
from plant.model.transformer.backbone import load_backbone
from plant.model.transformer.loading import load_model

CPU = torch.device("cpu")
LAYERS = 2
ADAPTED = {"mistral": 4, "llama": 4, "phi3": 2, "deepseek_v3": 5}  # projections a layer (appendix A)


@pytest.fixture
def settings_of(tiny):
    sizes = {"hidden_size": 64, "layers": LAYERS, "pool_size": 4, "chunk_tokens": 8}
    lora = {"adapter": "lora", "lora": {"rank": 2}, "gradient_checkpointing": True}
    return lambda architecture, quantization="none", **options: tiny(
        architecture=architecture, quantization=quantization, **sizes | lora | options
    )


@pytest.fixture
def folder_of(settings_of, backbone_folder):
    """architecture -> folder of its backbone."""
    return lambda architecture: backbone_folder(settings_of(architecture))


@pytest.mark.parametrize("architecture", ADAPTED)
def test_nf4_takes_every_linear_layer_and_every_expert(settings_of, folder_of, architecture):
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
def test_no_keys_and_values_are_kept(settings_of, folder_of, architecture):
    backbone = load_backbone(settings_of(architecture), folder_of(architecture))
    found = backbone.model(input_ids=torch.tensor([[5, 6, 7]]), attention_mask=torch.ones(1, 3, dtype=torch.long))
    assert found.past_key_values is None


@pytest.mark.parametrize("architecture", ["llama", "deepseek_v3"])
def test_an_evaluation_does_not_change_the_gradients_that_follow(settings_of, folder_of, architecture):
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


def test_experts_in_nf4_are_those_of_the_model_with_rounded_weights(settings_of, folder_of):
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


def test_a_model_with_a_quantisation_of_its_own_is_refused(settings_of, folder_of, tmp_path):
    for file in folder_of("deepseek_v3").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}  # as DeepSeek-V3 comes
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match="without a quantisation of its own"):
        load_model(settings_of("deepseek_v3", "nf4"), tmp_path, CPU)
