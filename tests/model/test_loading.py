"""Where a backbone's layers are put. What needs several GPUs is tested by what is asked of the loader."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from plant.corpus.encoders import load as load_encoder
from plant.ground.errors import InputError
from plant.ground.settings import Pretrained
from plant.model.assemble import TrainingData, build_classifier
from plant.model.determinism import set_up
from plant.model.parallel import Processes
from plant.model.transformer import loading
from plant.model.transformer.backbone import Backbone, load_backbone
from plant.model.transformer.loading import load_model

CPU, GPU, META = torch.device("cpu"), torch.device("cuda"), torch.device("meta")


class Loaded(nn.Module):
    """What a loader would return."""

    def __init__(self, places):
        super().__init__()
        self.weight, self.hf_device_map = nn.Parameter(torch.zeros(1)), places


@pytest.fixture
def node(monkeypatch):
    """(free gigabytes of each GPU, where the loader puts layers) -> what the loader is asked for."""
    asked = {}

    def make(free, places=None):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(free))
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (int(free[index] * 1e9), int(99e9)))

        def from_pretrained(folder, **options):
            asked.update(options)
            return Loaded(places or {"": 0}), {"missing_keys": set()}

        monkeypatch.setattr(transformers.AutoModel, "from_pretrained", from_pretrained)
        return asked

    return make


def test_layers_are_spread_over_as_many_gpus_as_asked_for_with_room_left_on_each(node, tiny):
    asked = node([80, 70, 80], {"layers.0": 0, "layers.1": 1})
    load_model(tiny(parallel="layers", devices=2), "folder", GPU)
    assert asked["device_map"] == "balanced"
    assert asked["max_memory"] == {0: int(80e9 * 0.85), 1: int(70e9 * 0.85)}  # no CPU, no disk, no third GPU


REFUSED = {
    "too few GPUs": ([80], 0, 1, "2 GPUs in this process, got 1"),
    "a layer on the CPU": ([80, 80], "cpu", 1, "fits on 2 GPUs, got layers on .*cpu"),
    "a layer on disk": ([80, 80], "disk", 1, "fits on 2 GPUs, got layers on .*disk"),
    "several processes": ([80, 80], 0, 2, "one process"),
}


@pytest.mark.parametrize(("free", "place", "count", "message"), REFUSED.values(), ids=REFUSED)
def test_layers_that_cannot_be_spread_are_refused(node, tiny, monkeypatch, free, place, count, message):
    node(free, {"layers.0": 0, "layers.1": 1, "layers.2": place})
    monkeypatch.setattr(loading, "processes", lambda: Processes(0, count))
    with pytest.raises(InputError, match=message):
        load_model(tiny(parallel="layers", devices=2), "folder", GPU)


def test_a_quantised_model_is_read_onto_the_device_of_its_process(node, tiny, backbone_folder):
    folder = backbone_folder(tiny())
    asked = node([80, 80])
    load_model(tiny(adapter="lora", quantization="nf4"), folder, torch.device("cuda", 1))
    assert asked["device_map"] == {"": torch.device("cuda", 1)}


def test_a_model_in_full_precision_is_moved_by_the_caller(node, tiny):
    asked = node([80, 80])
    load_model(tiny(devices=2), "folder", GPU)
    assert "device_map" not in asked


def test_stacked_weights_that_nf4_passes_by_are_refused(tiny, backbone_folder, monkeypatch):
    class Stacked(Loaded):
        def __init__(self):
            super().__init__({"": "cpu"})
            self.experts = nn.Parameter(torch.zeros(2, 3, 4))

    folder = backbone_folder(tiny())
    monkeypatch.setattr(
        transformers.AutoModel, "from_pretrained", lambda folder, **options: (Stacked(), {"missing_keys": set()})
    )
    with pytest.raises(InputError, match="stacked weights of another kind, experts"):
        load_model(tiny(adapter="lora", quantization="nf4"), folder, CPU)


def without(folder, out, dropped):
    """A copy of a model's folder that lacks some weights, and has those of a head."""
    shutil.copytree(folder, out)
    weights = load_file(out / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.endswith(dropped)}
    assert len(kept) < len(weights)
    save_file({**kept, "classifier.weight": torch.zeros(2, 2)}, out / "model.safetensors", {"format": "pt"})
    return out


@pytest.mark.parametrize("options", [{}, {"quantization": "nf4", "adapter": "lora"}])
@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_a_model_whose_file_lacks_a_weight_is_refused_by_its_name(tiny, backbone_folder, tmp_path, architecture,
                                                                   options):  # fmt: skip
    dropped = {"llama": "layers.0.mlp.up_proj.weight", "bert": "layer.0.output.dense.weight"}[architecture]
    settings = tiny(architecture=architecture, hidden_size=64, **options)
    folder = without(backbone_folder(settings), tmp_path / "model", dropped)
    with pytest.raises(InputError, match=f"1 missing, the first .*{dropped}"):
        load_model(settings, folder, CPU)


def test_a_missing_pooler_and_a_head_that_is_left_over_change_nothing(tiny, backbone_folder, tmp_path):
    settings = tiny(architecture="bert")
    whole, bare = backbone_folder(settings), tmp_path / "model"
    without(whole, bare, ("pooler.dense.weight", "pooler.dense.bias"))
    ids, mask = torch.arange(10, 20).view(2, 5), torch.ones(2, 5, dtype=torch.bool)
    states = [load_backbone(settings, folder).eval()(ids, mask) for folder in (whole, bare)]
    assert torch.equal(*states)


def test_a_tokenizer_with_ids_beyond_the_embedding_is_refused(tiny, backbone_folder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(backbone_folder(tiny()), folder)
    weights = load_file(folder / "model.safetensors")
    rows = len(weights["embed_tokens.weight"])
    save_file(weights | {"embed_tokens.weight": weights["embed_tokens.weight"][: rows - 7].clone()},
              folder / "model.safetensors", {"format": "pt"})  # fmt: skip
    config = json.loads((folder / "config.json").read_text("utf-8")) | {"vocab_size": rows - 7}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(InputError, match=f"ids are below {rows - 7}, the rows of its embedding, got 299"):
        load_backbone(tiny(), folder)


@pytest.mark.parametrize("path", ["/nowhere/model", "./models/none/here"])
def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    settings = Pretrained.model_validate({"kind": "pretrained", "path": path})
    for load in (lambda: load_model(settings, path, CPU), lambda: load_encoder(settings, None)):
        with pytest.raises(InputError, match=r"got no folder there.* hub id .*organisation/name") as caught:
            load()
        assert "Repo id" not in str(caught.value)


def test_cuda_where_there_is_none_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"compute\.device: expected a GPU that PyTorch can use, got none"):
        set_up({"device": "cuda"})
    assert set_up({"device": "auto"}) == CPU


def test_what_loading_has_placed_stays_and_the_rest_moves():
    assert Backbone(nn.Linear(1, 1), chunk_tokens=4, placed=True).place(META).model.weight.device == CPU
    assert Backbone(nn.Linear(1, 1), chunk_tokens=4).place(META).model.weight.device == META


@pytest.mark.parametrize("options", [{}, {"adapter": "lora"}, {"adapter": "lora", "quantization": "nf4"}])
def test_on_a_cpu_spread_layers_compute_what_any_others_do(toy, tiny, backbone_folder, options):
    data = TrainingData(toy, np.arange(6), list("abcdef"))
    ids, mask = torch.arange(10, 20).view(2, 5), torch.ones(2, 5, dtype=torch.bool)
    found = []
    for spread in ({}, {"parallel": "layers", "devices": 2}):
        settings = tiny(hidden_size=64, **options, **spread)
        model = build_classifier(settings, backbone_folder(settings), data, seed=0, device=CPU).eval()
        found.append(model.backbone(ids, mask))
    assert model.backbone.placed
    assert torch.equal(*found)


def test_a_gradient_reaches_an_adapter_of_placed_layers(tiny, backbone_folder):
    settings = tiny(adapter="lora", parallel="layers", devices=2, gradient_checkpointing=True)
    backbone = load_backbone(settings, backbone_folder(settings), device=CPU).train()
    backbone(torch.arange(10, 15)[None], torch.ones(1, 5, dtype=torch.bool)).square().sum().backward()
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in backbone.parameters())
