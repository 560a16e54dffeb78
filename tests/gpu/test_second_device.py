"""Training on a second device that a CPU plays: no tensor stays behind, nothing is copied to the host unasked."""

from __future__ import annotations

import checks
import numpy as np
import pytest
import torch
from samples import Place, make_corpus, make_top_tokens, small_backbone
from second_device import AWAY, Away, SecondDevice

from plant.finetuning.finetune import batch_loss, finetune
from plant.ground.checkpoints import load_tensors
from plant.ground.settings import Finetuning, Pretraining
from plant.model import assemble
from plant.model.assemble import TrainingData, build_classifier, load_weights, save_weights
from plant.model.fitting import TrainingRun
from plant.model.transformer.backbone import load_backbone
from plant.pretraining.pretrain import TokenRanking, pretrain

CPU = torch.device("cpu")
ARCHITECTURES = ("llama", "mistral", "phi3", "deepseek_v3")
CORPUS = make_corpus(range(5, 25), checks.LABELS)
DATA = TrainingData(CORPUS, np.arange(checks.LABELS), list("abcdef"))
OF_THE_MASK = 2  # numbers that transformers reads in each pass, to choose the form of the attention mask
pytestmark = pytest.mark.filterwarnings("ignore:for .* a meta parameter in the current model, which is a no-op")
TOP = make_top_tokens(checks.LABELS)


@pytest.fixture
def build(tmp_path, monkeypatch):
    """(architecture, device) -> classifier. The backbone is read on the CPU: transformers reads through `meta`, too."""
    real = torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda kind, **how: real("cpu" if kind == AWAY.type else kind, **how))
    (tmp_path / "backbones").mkdir()
    place = Place(CPU, True, tmp_path / "backbones")
    read = {}

    def make(architecture, device, *, seed=0, **options):
        if device == CPU:
            settings, folder = small_backbone(place, architecture, **options)
            torch.manual_seed(seed)
            read[architecture] = settings, load_backbone(settings, folder)
        settings, backbone = read[architecture]
        monkeypatch.setattr(assemble, "build_backbone", lambda *_, **__: backbone)
        return build_classifier(settings, "", DATA, seed=seed, device=device)

    return make


def stages(model, folder):
    """History of both stages, and the weights as they are on disk."""
    first = pretrain(model, CORPUS, TOP, Pretraining(**checks.RECIPE), TrainingRun(0, folder / "1", "d"))
    second = finetune(model, CORPUS, Finetuning(**checks.RECIPE), TrainingRun(0, folder / "2", "d"))
    save_weights(model, folder / "weights", head=True)
    files = sorted((folder / "weights").glob("*.safetensors"))
    return first + second, {f"{file.stem}/{name}": x for file in files for name, x in load_tensors(file).items()}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_both_stages_give_there_what_they_give_on_the_cpu(build, tmp_path, architecture):
    build(architecture, CPU)  # makes the folder
    history, weights = stages(build(architecture, CPU), tmp_path / "cpu")
    build(architecture, CPU)
    with SecondDevice():
        model = build(architecture, AWAY)
        assert all(isinstance(x, Away) for x in [*model.parameters(), *model.buffers()])
        there, moved = stages(model, tmp_path / "away")
        with torch.no_grad():
            model.head.project.weight.zero_()
        load_weights(model, tmp_path / "away" / "weights", head=True)
        assert torch.equal(model.head.project.weight.cpu(), moved["head/project.weight"])
        assert all(isinstance(x, Away) for x in [*model.parameters(), *model.buffers()])
    assert len(there) == 4 and moved.keys() == weights.keys()
    # rounding may decide about one label of a document: macro-F1 moves by .02 with it
    decided = {"macro_f1": 0.05, "threshold": 0.05}
    for one, other in zip(history, there, strict=True):
        assert other.keys() == one.keys()
        for name, value in one.items():
            assert other[name] == pytest.approx(value, rel=1e-3, abs=decided.get(name, 1e-3)), name
    for name, value in weights.items():
        torch.testing.assert_close(moved[name], value, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_step_reads_no_tensor_back_and_few_numbers(build, architecture):
    """One number a stage: how many lists there are (Stage 1), how large the largest set of labels is (Stage 2)."""
    build(architecture, CPU)
    batch = CORPUS.documents("train")[:4]
    with SecondDevice() as device:
        model = build(architecture, AWAY).train()
        ranking = TokenRanking(model, CORPUS, TOP, settings=Pretraining(), seed=0)
        recipe = Finetuning(hard_negatives=1)
        steps = {
            "stage 1": lambda: ranking.loss(batch, 1)[0],
            "stage 2": lambda: batch_loss(model, CORPUS, batch, recipe)[0],
        }
        for name, loss in steps.items():
            device.read.clear()
            loss().backward()
            assert (device.read["copy"], device.read["item"]) == (0, OF_THE_MASK + 1), name
