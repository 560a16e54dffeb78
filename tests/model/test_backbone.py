"""Backbones: one sequence of states a document, special tokens, adapters, quantisation, bad input."""

import pytest
import torch

from plant.ground.errors import InputError
from plant.model.transformer.backbone import LORA_TARGETS, load_backbone, special_tokens

ARCHITECTURES = ["llama", "mistral", "phi3", "deepseek_v3", "bert"]


def documents(lengths=(12, 7, 1)):
    torch.manual_seed(0)
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    return torch.randint(5, 200, mask.shape) * mask, mask


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_do_not_depend_on_the_batch(backbone_folder, architecture, tiny):
    settings = tiny(architecture=architecture)
    backbone = load_backbone(settings, backbone_folder(settings)).eval()
    ids, mask = documents()
    with torch.no_grad():
        together = backbone(ids, mask)
        for row, length in enumerate((12, 7, 1)):
            alone = backbone(ids[row : row + 1, :length], mask[row : row + 1, :length])
            torch.testing.assert_close(together[row, :length], alone[0], rtol=1e-4, atol=1e-5)
            assert (together[row, length:] == 0).all()


@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_a_long_document_is_its_pieces_side_by_side(backbone_folder, architecture, tiny):
    settings = tiny(architecture=architecture, chunk_tokens=5)
    backbone = load_backbone(settings, backbone_folder(settings)).eval()
    ids, mask = documents()
    with torch.no_grad():
        whole = backbone(ids, mask)
        assert whole.shape[:2] == (3, 12)
        pieces = [backbone(ids[:1, a:b], mask[:1, a:b]) for a, b in ((0, 5), (5, 10), (10, 12))]
    torch.testing.assert_close(whole[:1], torch.cat(pieces, 1), rtol=1e-4, atol=1e-5)


def test_special_tokens_surround_the_tokens_and_not_the_padding(backbone_folder, tiny):
    settings = tiny()
    backbone = load_backbone(settings, backbone_folder(settings))
    backbone.prefix, backbone.suffix = (1,), (2, 3)
    ids, inside = backbone._with_special(torch.tensor([[7, 8, 9], [7, 0, 0]]), torch.tensor([[1, 1, 1], [1, 0, 0]]) > 0)
    assert ids.tolist() == [[1, 7, 8, 9, 2, 3], [1, 7, 2, 3, 0, 0]]
    assert inside.tolist() == [[True] * 6, [True] * 4 + [False] * 2]


def test_special_tokens_are_read_from_the_tokenizer(backbone_folder, tiny):
    assert special_tokens(tiny(), backbone_folder(tiny()), rows=300) == ((), ())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_lora_adapts_every_projection_of_the_list_and_nothing_else_trains(backbone_folder, architecture, tiny):
    settings = tiny(architecture=architecture, adapter="lora", lora={"rank": 2})
    backbone = load_backbone(settings, backbone_folder(settings))
    trained = [name for name, p in backbone.named_parameters() if p.requires_grad]
    assert trained
    assert all("lora_" in name for name in trained)
    for target in LORA_TARGETS[architecture]:
        assert any(f"{target}.lora_A" in name for name in trained), target
    ids, mask = documents()
    backbone(ids, mask).square().sum().backward()
    assert all(p.grad is not None for n, p in backbone.named_parameters() if "lora_B" in n)


@pytest.mark.parametrize(("rank", "alpha", "factor"), [(16, 32.0, 2.0), (16, 512.0, 32.0), (4, 32.0, 8.0)])
def test_the_update_of_lora_is_alpha_over_rank_times_its_product(backbone_folder, tiny, rank, alpha, factor):
    settings = tiny(adapter="lora", lora={"rank": rank, "alpha": alpha, "dropout": 0})
    layer = load_backbone(settings, backbone_folder(settings)).eval().model.base_model.layers[0].self_attn.q_proj
    down, up = layer.lora_A["default"].weight, torch.nn.init.normal_(layer.lora_B["default"].weight)
    states = torch.randn(3, layer.in_features)
    expected = layer.base_layer(states) + factor * states @ down.T @ up.T
    torch.testing.assert_close(layer(states), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("precision", "kind"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_precision_is_the_type_of_products_and_states_stay_single(backbone_folder, tiny, precision, kind):
    settings = tiny(precision=precision)
    backbone = load_backbone(settings, backbone_folder(settings)).eval()
    seen = []
    backbone.model.layers[0].self_attn.q_proj.register_forward_hook(lambda *call: seen.append(call[2].dtype))
    assert backbone(*documents()).dtype == torch.float32
    assert seen == [kind]


def test_lora_targets_that_match_nothing_are_refused(backbone_folder, tiny):
    settings = tiny(adapter="lora", lora={"targets": ["q_proj", "qury_proj"]})
    with pytest.raises(InputError, match="qury_proj"):
        load_backbone(settings, backbone_folder(settings))


def test_a_folder_without_a_tokenizer_is_refused(backbone_folder, tmp_path, tiny):
    source = backbone_folder(tiny())
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    with pytest.raises(InputError, match="tokenizer"):
        load_backbone(tiny(), tmp_path)


def test_a_frozen_backbone_stays_in_evaluation_mode(backbone_folder, tiny):
    settings = tiny(architecture="bert", adapter="frozen")  # BERT has dropout
    backbone = load_backbone(settings, backbone_folder(settings)).train()
    ids, mask = documents()
    torch.testing.assert_close(backbone(ids, mask), backbone(ids, mask), rtol=0, atol=0)
    assert not any(p.requires_grad for p in backbone.parameters())


@pytest.mark.parametrize("architecture", ["llama", "phi3"])
def test_states_in_nf4_differ_little_from_full_precision(backbone_folder, architecture, tiny):
    plain = tiny(architecture=architecture, adapter="frozen", hidden_size=64)  # the kernel packs rows of 32
    quantised = plain.model_copy(update={"adapter": "lora", "quantization": "nf4"})
    ids, mask = documents()
    with torch.no_grad():
        one, two = (load_backbone(each, backbone_folder(plain)).eval()(ids, mask)[mask] for each in (plain, quantised))
    assert torch.nn.functional.cosine_similarity(one, two).min() > 0.9


def test_gradient_checkpointing_changes_no_gradient(backbone_folder, tiny):
    ids, mask = documents()
    found = []
    for checkpointing in (False, True):
        settings = tiny(gradient_checkpointing=checkpointing)
        backbone = load_backbone(settings, backbone_folder(settings)).train()
        backbone(ids, mask).square().sum().backward()
        found.append([p.grad for p in backbone.parameters()])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two)
