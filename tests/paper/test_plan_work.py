"""The cost model: counts of weights and FLOPs against the real models, at their real sizes where that needs no memory.

On torch's meta device a model of any size has shapes but no numbers, so that its parameters and the FLOPs of its
operations can be counted in seconds. Checkpointing runs on small models on the CPU.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel

from plant.finetuning import finetune
from plant.ground.settings import Finetuning, Hardware, Pretrained, Pretraining, Random
from plant.model.attentions.multi_head import EMBEDDING_STD
from plant.model.batches import shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.model.encoders import transformer as model_backbone
from plant.model.encoders.loading import load_model
from plant.model.fitting import cosine
from plant.paper.plan import work
from plant.paper.plan.networks import ARCHITECTURES, count, find_network
from plant.paper.plan.sizes import Sizes
from plant.paper.plan.work import (
    Setup,
    count_updates,
    device_memory,
    label_pass,
    labels_in_play,
    largest_movement,
    stage1,
    stage2,
)  # fmt: skip
from plant.paper.values.transcription import read_yaml

PUBLISHED: dict[str, Any] = read_yaml(ARCHITECTURES)
TINY = ("llama", "mistral", "phi3", "deepseek_v3", "bert")
MISTRAL = "mistralai/Mistral-7B-Instruct-v0.3"
H100 = Hardware()


def config_of(name: str, **changes: int) -> Any:
    shape = {key: value for key, value in PUBLISHED[name].items() if key not in ("source", "published", "stored")}
    return AutoConfig.for_model(**shape | changes)


def parameters(model: torch.nn.Module, *, trained: bool = False) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)


def make_setup(documents: int = 2, tokens: int = 64, labels: int = 10, **backbone: Any) -> Setup:
    settings = Random(kind="random", hidden_size=64, layers=4, max_tokens=tokens, chunk_tokens=tokens,
                      vocabulary=500, **backbone)  # fmt: skip
    network = find_network(settings)
    assert network is not None
    return Setup(network, settings, Sizes(documents, 0, 0, labels, tokens, ()))


def make_mistral(**changes: Any) -> Setup:
    settings = Pretrained(kind="pretrained", path=MISTRAL, quantization="nf4", precision="bf16",
                          gradient_checkpointing=True, max_tokens=4096, chunk_tokens=4096, **changes)  # fmt: skip
    network = find_network(settings)
    assert network is not None
    return Setup(network, settings, Sizes(1000, 0, 100, 8929, 2048, ()))


def tiny_model(setup: Setup) -> torch.nn.Module:
    settings = setup.backbone
    assert isinstance(settings, Random)
    model = AutoModel.from_config(model_backbone._random_config(settings, 500))
    model.config._experts_implementation = "eager"  # the counter knows no grouped products
    if settings.gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    if settings.adapter == "lora":
        return model_backbone._adapt(model, settings)
    return model.requires_grad_(settings.adapter == "full")


def counted(run: Any) -> int:
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("name", PUBLISHED)
def test_derived_parameters_are_the_published_ones(name):
    shape = PUBLISHED[name]
    network = count(shape)
    head = 0 if shape["model_type"] == "bert" else shape["vocab_size"] * shape["hidden_size"]
    assert (network.parameters + head) / 1e9 == pytest.approx(shape["published"]["parameters"], rel=1e-3)
    active = shape["published"].get("active")  # with the embedding of one token's row and the head: rounded to 37
    assert active is None or network.passed + head < active * 1e9 < network.passed + 2 * head


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_and_lora_of_a_published_backbone_are_those_of_the_real_model(name):
    with torch.device("meta"):
        model = AutoModel.from_config(config_of(name))
        network = count(PUBLISHED[name])
        assert network.parameters == parameters(model)
        adapted = model_backbone._adapt(model, Pretrained(kind="pretrained", path=name))
    assert network.lora_parameters(16, None) == parameters(adapted, trained=True)


@pytest.mark.parametrize("architecture", TINY)
def test_weights_and_lora_of_a_random_backbone_are_those_that_training_makes(architecture):
    setup = make_setup(architecture=architecture)
    model = AutoModel.from_config(model_backbone._random_config(setup.backbone, 500))  # type: ignore[arg-type]
    assert setup.network.parameters == parameters(model)
    assert setup.lora == 0
    adapted = replace(setup, backbone=setup.backbone.model_copy(update={"adapter": "lora"}))
    assert adapted.lora == parameters(tiny_model(adapted), trained=True)


@pytest.mark.parametrize(("adapter", "again", "lowest"), [
    ("frozen", False, 0.999), ("full", False, 0.999),
    ("lora", False, 0.97),  # the first layer's inputs need no gradient
    ("lora", True, 0.93), ("full", True, 0.94),  # the library recomputes a layer without its last product
])  # fmt: skip
@pytest.mark.parametrize("architecture", TINY)
def test_flops_of_a_training_step_are_those_that_torch_counts(architecture, adapter, again, lowest):
    setup = make_setup(architecture=architecture, adapter=adapter, gradient_checkpointing=again)
    model = tiny_model(setup).train(adapter != "frozen")
    ids = torch.zeros(2, 64, dtype=torch.long)

    def step() -> None:
        states = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        if adapter != "frozen":
            states.sum().backward()

    expected = setup.read(2, 2, training=True).products
    assert lowest * expected <= counted(step) <= 1.001 * expected


def test_flops_of_a_7b_step_at_its_real_size_are_those_that_torch_counts():
    setup = make_mistral()
    setup = replace(setup, backbone=setup.backbone.model_copy(update={"gradient_checkpointing": False}))
    with torch.device("meta"):
        model = model_backbone._adapt(AutoModel.from_config(config_of(MISTRAL)), setup.backbone).to("meta")
        ids = torch.zeros(2, 2048, dtype=torch.long)
        found = counted(lambda: model(input_ids=ids).last_hidden_state.sum().backward())
    assert found == pytest.approx(setup.read(2, 2, training=True).products, rel=5e-3)


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("labels", [None, 50])
def test_flops_of_label_attention_are_those_that_torch_counts(trained, labels):
    setup = make_setup(tokens=32, labels=200, adapter="full" if trained else "frozen")
    with torch.device("meta"):
        classifier = LabelClassifier(None, n_labels=200, hidden_size=64, heads=4, pool_size=16)
        hidden, mask = torch.zeros(4, 32, 64, requires_grad=trained), torch.ones(4, 32, dtype=torch.bool)
        ids = None if labels is None else torch.zeros(4, labels, dtype=torch.long)
        forward = counted(lambda: classifier.logits(hidden.detach(), mask, ids))
        both = counted(lambda: classifier.logits(hidden, mask, ids).sum().backward())
    assert forward == pytest.approx(label_pass(setup, 4, labels or 200, gradient=False), rel=1e-3)
    assert both == pytest.approx(label_pass(setup, 4, labels or 200, gradient=True), rel=1e-3)


def test_flops_of_stage_1_lists_are_those_that_torch_counts():
    setup = make_setup(documents=4, tokens=32, labels=200)
    with torch.device("meta"):
        attention = LabelClassifier(None, n_labels=200, hidden_size=64, heads=4, pool_size=16).attention
        hidden, ids = torch.zeros(4, 32, 64, requires_grad=True), torch.zeros(4, 23, dtype=torch.long)
        found = counted(lambda: attention.token_logits(hidden, ids).sum().backward())
    recipe = Pretraining(epochs=1, batch_size=4, negatives=8)
    assert work.POSITIVES + 8 == 23
    assert found == pytest.approx(stage1(setup, recipe).head, rel=1e-3)


def test_one_epoch_on_one_gpu_by_hand():
    """1,000 documents of 2,048 tokens, Mistral-7B with LoRA and checkpointing: every factor spelt out."""
    setup = make_mistral()
    per_layer = 4096 * (4096 + 1024 + 1024 + 4096 + 3 * 14336)
    lora = 16 * (4096 + 4096 + 2 * (4096 + 1024) + 4096 + 4096)
    forward = 32 * (2 * per_layer + 2 * lora + 4 * 4096 * 2048)
    backward = 32 * (2 * per_layer + 4 * lora + 8 * 4096 * 2048)
    products = 1000 * 2048 * (2 * forward + backward)
    unpacked = 3 * 125 * 32 * per_layer
    keys, shared = 4 * 8 * 2048 * 4096**2, 4 * 8929 * 4096**2
    mining = keys + shared + 4 * 8 * 8929 * 2048 * 4096
    training = 3 * (keys + shared + 4 * 8 * 1015 * 2048 * 4096)
    found = stage2(setup, Finetuning(epochs=1, hard_negatives=1000))
    assert found.products == pytest.approx(products)
    assert found.dequantised == pytest.approx(unpacked)
    assert found.head == pytest.approx(125 * (mining + training))
    seconds = (products + 15 * 125 * (mining + training) + 4.5 * 295 * unpacked) / (989e12 * 0.3)
    assert found.gpu_hours(H100, setup.backbone) == pytest.approx(seconds / 3600)


def test_data_parallelism_leaves_gpu_hours_and_layers_multiply_them():
    one = make_mistral()
    recipe = Finetuning(epochs=1)
    alone = stage2(one, recipe).gpu_hours(H100, one.backbone)
    for parallel, factor in (("data", 1.0), ("layers", 4.0)):
        other = make_mistral(devices=4, parallel=parallel)
        hours = stage2(other, recipe).gpu_hours(H100, other.backbone)
        # smaller micro-batches unpack the weights and project the labels more often: a little more, never less
        assert factor * alone <= hours < 1.3 * factor * alone


def test_padding_is_computed_cached_features_are_free_and_a_frozen_backbone_has_no_backward_pass():
    frozen, cached = make_setup(adapter="frozen"), make_setup(adapter="frozen", cache_features=True)
    assert cached.read(5, 1, training=True).products == 0
    assert frozen.read(5, 1, training=True) == frozen.read(5, 1, training=False)
    pieces = replace(frozen, backbone=frozen.backbone.model_copy(update={"chunk_tokens": 16}))
    assert (frozen.computed, pieces.computed) == (64, 64 + 16 / 2)


@pytest.mark.parametrize(("recipe", "labels", "expected"), [
    ({"hard_negatives": 1000}, 8929, (8929, 1015)),
    ({"hard_negatives": 1000}, 3956, (3956, 3956)),  # a quarter or more: one pass is cheaper
    ({"hard_negatives": None}, 8929, (8929, 8929)),
    ({"shortlist": 200, "hard_negatives": None}, 131_073, (215, 215)),
    ({"shortlist": 200, "hard_negatives": None}, 8929, (8929, 8929)),  # below shortlist_above
])  # fmt: skip
def test_labels_in_play_follow_mining_and_shortlist(recipe, labels, expected):
    assert labels_in_play(labels, Finetuning(**recipe)) == expected


def test_memory_of_weights_follows_their_storage():
    four, spread = make_mistral(), make_mistral(devices=4, parallel="layers")
    full = replace(four, backbone=four.backbone.model_copy(update={"quantization": "none"}))
    big, small, quarter = (
        device_memory(setup, Finetuning(batch_size=1), training=False).weights for setup in (full, four, spread)
    )
    assert big - small == pytest.approx(6.979 * (2 - 0.516), rel=1e-3)  # GB: the linear maps, not the embeddings
    assert quarter < small / 2


def test_memory_of_what_is_trained_is_twenty_bytes_for_each_weight():
    setup = make_setup(labels=5000, adapter="frozen")
    classifier = LabelClassifier(None, n_labels=5000, hidden_size=64, heads=8, pool_size=128)
    memory = device_memory(setup, Finetuning(), training=True)
    frozen = 4 * setup.network.parameters
    assert 1e9 * (memory.weights + memory.trained) == pytest.approx(20 * parameters(classifier) + frozen)


def test_constants_of_training_are_those_of_the_code_that_trains():
    assert (work.ONE_PASS, work.START) == (finetune.ONE_PASS, EMBEDDING_STD)


@pytest.mark.parametrize("architecture", ["llama", "deepseek_v3"])
def test_four_bits_reach_what_the_estimate_says(tmp_path, architecture):
    settings = Random(kind="random", architecture=architecture, hidden_size=64, layers=2, vocabulary=500,
                      adapter="frozen", quantization="nf4", chunk_tokens=64)  # fmt: skip
    AutoModel.from_config(model_backbone._random_config(settings, 500)).save_pretrained(tmp_path)
    model = load_model(settings, tmp_path, torch.device("cpu"))
    network = find_network(settings)
    assert network is not None
    assert sum(2 * p.numel() for p in model.parameters() if p.dtype == torch.uint8) == network.quantised
    assert sum(p.numel() for p in model.parameters() if p.dtype != torch.uint8) == network.other


@pytest.mark.parametrize("name", [name for name in PUBLISHED if not name.startswith("deepseek")])
def test_a_layer_keeps_no_more_for_its_backward_pass_than_the_estimate_and_not_much_less(name):
    """Bytes of the tensors that autograd saves in three bf16 layers at their real width, attention scores left out."""
    length = 512
    with torch.device("meta"):
        model = AutoModel.from_config(config_of(name, num_hidden_layers=3)).to(torch.bfloat16)
        model = model_backbone._adapt(model, Pretrained(kind="pretrained", path=name)).to("meta")
        weights = {p.untyped_storage()._cdata for p in model.parameters()}
        saved = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in weights and tuple(tensor.shape[-2:]) != (length, length):
                saved[storage._cdata] = (storage.nbytes(), tensor)  # held, so that no other storage takes its place
            return tensor

        ids = torch.zeros(2, length, dtype=torch.long)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model(input_ids=ids)
    found = sum(size for size, _ in saved.values()) / (3 * 2 * length)
    expected = work.KEPT_COPIES * 2 * count(PUBLISHED[name]).saved_width
    assert 0.75 * expected < found < 1.05 * expected


@pytest.mark.parametrize(
    ("documents", "batch", "accumulation"), [(136, 8, 4), (1, 8, 4), (32, 8, 4), (200, 3, 1), (641, 5, 3)]
)
def test_updates_and_movement_are_those_of_a_loop_over_the_batches_of_training(documents, batch, accumulation):
    rate = 1e-3
    recipe = Finetuning(epochs=50, batch_size=batch, accumulation=accumulation, head_learning_rate=rate)
    corpus = SimpleNamespace(length=lambda ids: np.ones(len(ids), dtype=np.int64))
    batches = shuffled_batches(corpus, np.arange(documents), batch, seed=0, epoch=1)  # type: ignore[arg-type]
    updates = 50 * sum(number % accumulation == 0 or number == len(batches) for number in range(1, len(batches) + 1))
    assert count_updates(documents, recipe) == updates
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW([weight], weight_decay=0.0)
    for update in range(updates):
        optimiser.param_groups[0]["lr"] = rate * cosine(update, updates)
        weight.grad = torch.ones(1)  # always in one direction: the fastest way
        optimiser.step()
    assert abs(weight.item()) == pytest.approx(largest_movement(documents, recipe), rel=0.03)
