"""`compute.deterministic`: what it sets, that it holds other code to it, and that a CPU does without it."""

import os
import subprocess
import sys

import pytest
import torch

from plant.finetuning.finetune import finetune
from plant.ground.settings import Finetuning, Pretraining
from plant.model import features
from plant.model.determinism import set_up
from plant.model.fitting import TrainingRun
from plant.model.transformer.backbone import load_backbone
from plant.pretraining.pretrain import pretrain

VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
RECIPE = {"epochs": 3, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02}  # fmt: skip


pytestmark = pytest.mark.usefixtures("torch_as_it_was")


@pytest.fixture(autouse=True)
def _no_workspace(torch_as_it_was, monkeypatch):
    monkeypatch.delenv(VARIABLE)


@pytest.fixture
def trained(toy, make, indicators):
    """(folder, deterministic, recipes of both stages) -> weights after both stages."""

    def train(folder, deterministic, first, second):
        set_up({"device": "cpu", "deterministic": deterministic})
        model = make()
        pretrain(model, toy, indicators, Pretraining(**RECIPE, **first), TrainingRun(3, folder / "1", "d"))
        finetune(model, toy, Finetuning(**RECIPE, **second), TrainingRun(3, folder / "2", "d"))
        return {name: value.detach() for name, value in model.named_parameters()}

    return train


def test_off_it_leaves_torch_as_it_is():
    assert set_up({"device": "cpu", "threads": 1}) == torch.device("cpu")
    assert not torch.are_deterministic_algorithms_enabled()
    assert VARIABLE not in os.environ


def test_numbers_below_1e_38_are_0_in_all_threads():
    """Else a sharp softmax, whose small weights are such numbers, takes ten times as long."""
    code = (
        "import torch; from plant.model.determinism import set_up; set_up({'device': 'cpu', 'threads': 2});"
        "print(torch.get_num_threads(), (torch.full((10_000_000,), 1e-39) * 1).count_nonzero().item(),"
        " torch.tensor([0.0, -87.0, -95.0]).softmax(0)[2].item())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["2", "0", "0.0"]


@pytest.mark.parametrize("chosen", [None, ":16:8"])
def test_on_it_sets_algorithms_cudnn_and_the_workspace_of_cublas_unless_the_user_has(monkeypatch, chosen):
    if chosen:
        monkeypatch.setenv(VARIABLE, chosen)
    set_up({"device": "cpu", "deterministic": True})
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark
    assert os.environ[VARIABLE] == (chosen or ":4096:8")


@pytest.mark.parametrize(
    ("first", "second"), [({}, {"hard_negatives": None}), ({"objective": "approx_ndcg"}, {"hard_negatives": 2})]
)
def test_on_a_cpu_both_stages_have_the_same_bits_with_it_and_without(trained, tmp_path, first, second):
    without, within = (trained(tmp_path / str(on), on, first, second) for on in (False, True))
    assert all(torch.equal(value, within[name]) for name, value in without.items())


@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_hidden_states_have_the_same_bits_whatever_the_number_of_threads(
    toy, tiny, backbone_folder, tmp_path, architecture, monkeypatch
):
    """Features are made with as many threads as the rule gets; each batch is one thread's."""
    monkeypatch.setattr(features, "BATCH_TOKENS", 40)
    settings, found = tiny(architecture=architecture, hidden_size=64), []
    backbone = load_backbone(settings, backbone_folder(settings))
    device = set_up({"device": "cpu"})
    for threads in (1, 2, 5):
        features.write_features(backbone, toy, tmp_path / str(threads), device=device, threads=threads)
        found.append((tmp_path / str(threads)).read_bytes())
    assert found[0] == found[1] == found[2]
