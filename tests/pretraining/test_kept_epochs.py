"""Weights of every epoch of Stage 1 (choice C24): each is that of its epoch, also after an interruption."""

import pytest
import torch

from plant.ground.checkpoints import load_tensors
from plant.ground.settings import Pretraining
from plant.model.assemble import load_weights
from plant.model.fitting import TrainingRun
from plant.pretraining.pretrain import TokenRanking, pretrain, publish_epochs

RECIPE = {"patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02, "head_learning_rate": 0.02,
          "negatives": 2}  # fmt: skip


@pytest.fixture
def epochs_of(toy, indicators, make):
    """(folder) -> the label attention after each epoch, by its number."""

    def train(folder):
        settings = Pretraining(**RECIPE, epochs=4, keep_epochs=True)
        history = pretrain(make(), toy, indicators, settings, TrainingRun(0, folder / "checkpoint", "d"))
        publish_epochs(folder / "checkpoint", folder, epochs=len(history))
        return {path.name: load_tensors(path / "label_attention.safetensors")
                for path in sorted((folder / "epochs").iterdir())}  # fmt: skip

    return train


def test_the_weights_of_every_epoch_are_kept_and_can_be_planted(tmp_path, monkeypatch, epochs_of, make):
    ended = {}  # what the checkpoint at the end of each epoch held: written by other code, at the same moment

    def record(folder, *, state, tensors):
        ended[state["epoch"] - 1] = {name: tensor.detach().clone() for name, tensor in tensors.items()}

    monkeypatch.setattr("plant.model.fitting.save_checkpoint", record)
    kept = epochs_of(tmp_path)
    assert sorted(kept) == ["1", "2", "3", "4"]
    for epoch in (1, 3):
        planted = make(seed=5)
        load_weights(planted, tmp_path / "epochs" / str(epoch), head=False)
        for name in ("attention.embeddings", "attention.query.weight", "backbone.table.weight"):
            assert torch.equal(planted.state_dict()[name], ended[epoch][f"model/{name}"])
    assert not torch.equal(kept["1"]["embeddings"], kept["3"]["embeddings"])


def test_an_interrupted_run_keeps_the_epochs_before_it(tmp_path, monkeypatch, epochs_of):
    whole = epochs_of(tmp_path / "whole")
    calls = []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == 13:  # of 5 batches an epoch: in the third
            raise KeyboardInterrupt
        return loss(self, *args)

    loss = TokenRanking.loss
    monkeypatch.setattr(TokenRanking, "loss", killed)
    with pytest.raises(KeyboardInterrupt):
        epochs_of(tmp_path / "part")
    assert not (tmp_path / "part" / "epochs").exists()
    monkeypatch.setattr(TokenRanking, "loss", loss)
    part = epochs_of(tmp_path / "part")
    assert sorted(part) == sorted(whole)
    for epoch, tensors in whole.items():
        assert all(torch.equal(tensor, part[epoch][name]) for name, tensor in tensors.items())


def test_without_keep_epochs_the_folder_is_there_and_empty(toy, tmp_path, indicators, make):
    settings = Pretraining(**RECIPE, epochs=1)
    pretrain(make(), toy, indicators, settings, TrainingRun(0, tmp_path / "checkpoint", "d"))
    publish_epochs(tmp_path / "checkpoint", tmp_path, epochs=1)
    assert list((tmp_path / "epochs").iterdir()) == []
