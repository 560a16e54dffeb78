"""The loop: exact resume, early stopping, accumulation, a diverging loss."""

import copy
import itertools
import json
import math
import os
import shutil
import signal

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from plant.ground.errors import InputError, Interrupted
from plant.ground.settings import Optimisation
from plant.model.fitting import Group, Task, TrainingDiverged, TrainingRun, fit


class Noisy(nn.Module):
    """Dropout makes the result depend on the generator state."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.linear, self.dropout = nn.Linear(4, 1), nn.Dropout(0.5)

    def forward(self, x):
        return self.linear(self.dropout(x)).squeeze(-1)


def run(
    tmp_path, *, epochs=4, stop_in=None, terminate_in=None, number=None, nan_in=None, values=None, digest="d", **options
):
    """Train on 10 fixed batches. In epoch `stop_in` it is killed, in epoch `terminate_in` `number` asks it to end."""
    model, measured = Noisy(), []
    torch.manual_seed(9)
    data, target = torch.randn(10, 3, 4), torch.randn(10, 3)

    def loss(batch, epoch):
        if epoch == stop_in and batch == 6:
            raise KeyboardInterrupt
        if epoch == terminate_in and batch == 6:
            os.kill(os.getpid(), number)
        factor = math.nan if epoch == nan_in and batch == 6 else 1
        return factor * (model(data[batch]) - target[batch]).square().sum(), 3.0

    def validate():
        measured.append(len(measured))
        value = -(model(data[0]) - target[0]).square().mean().item() if values is None else values[len(measured) - 1]
        return {"value": value}

    task = Task("test", [Group("all", list(model.parameters()), 0.05)], lambda epoch: list(range(10)), loss, validate,
                "value")  # fmt: skip
    settings = Optimisation(epochs=epochs, **{"patience": None, "accumulation": 3, **options})
    history = fit(model, task, settings, TrainingRun(1, tmp_path, digest))
    return model, history


def assert_same_bits(one, two):
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path):
    whole, history = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "part", stop_in=3)
    resumed, again = run(tmp_path / "part")
    assert again == history
    assert [list(row) for row in again] == [list(row) for row in history]  # the table's columns come in this order
    assert_same_bits(whole, resumed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("stop_in", [1, 2, 4])
def test_sigterm_saves_at_the_next_update_and_the_resumed_run_has_the_same_bits(tmp_path, stop_in, number):
    whole, history = run(tmp_path / "whole")
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=f"epoch {stop_in}, step 9"):  # asked in step 7, the update follows step 9
        run(tmp_path / "part", terminate_in=stop_in, number=number)
    assert signal.getsignal(number) == before
    resumed, again = run(tmp_path / "part")
    assert again == history
    assert_same_bits(whole, resumed)


def test_a_long_epoch_is_saved_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr("plant.model.fitting.CHECKPOINT_SECONDS", -1.0)
    whole, history = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "part", stop_in=2)
    assert json.loads((tmp_path / "part/state.json").read_text(encoding="utf-8"))["step"] == 6
    resumed, again = run(tmp_path / "part")
    assert again == history
    assert_same_bits(whole, resumed)


def test_the_best_epoch_is_kept(tmp_path):
    """One or two more epochs after the best one change nothing of the weights that stay."""
    kept, history = run(tmp_path / "a", values=[0.1, 0.9, 0.2, 0.3])
    best, _ = run(tmp_path / "b", values=[0.1, 0.9, 0.2, 0.3], patience=1)
    assert len(history) == 4
    assert_same_bits(best, kept)


def test_patience_counts_epochs_without_a_better_value(tmp_path):
    _, history = run(tmp_path, epochs=9, patience=2, values=[0.1, 0.5, 0.4, 0.5, 0.9, 1, 1, 1, 1])
    assert [row["epoch"] for row in history] == [1, 2, 3, 4]


NOT_A_NUMBER = [
    ({"nan_in": 2}, "epoch 2, step 7: expected finite loss, got loss = nan"),
    ({"values": [0.5, math.nan]}, "epoch 2: expected finite measures, got value = nan"),
    ({"values": [0.5, math.inf]}, "epoch 2: expected finite measures, got value = inf"),
]


@pytest.mark.parametrize(("wrong", "message"), NOT_A_NUMBER)
def test_what_is_not_a_number_stops_with_its_place_and_keeps_the_checkpoint(tmp_path, wrong, message):
    with pytest.raises(TrainingDiverged, match=message):
        run(tmp_path, **wrong)
    assert json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))["epoch"] == 2


def test_a_checkpoint_of_another_configuration_is_not_used(tmp_path):
    run(tmp_path, epochs=1, values=[0.1])
    assert run(tmp_path, epochs=1, values=[0.2], digest="other")[1][0]["value"] == 0.2


def _rewritten(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")


def _cut(path):
    path.write_bytes(path.read_bytes()[:-100])


DAMAGE = {
    "no JSON": ("state.json", lambda path: path.write_text("{", "utf-8")),
    "no text": ("state.json", lambda path: path.write_bytes(b"\xff\x00")),
    "a list": ("state.json", lambda path: path.write_text("[1]", "utf-8")),
    "no digest": ("state.json", lambda path: path.write_text("{}", "utf-8")),
    "no step": ("state.json", lambda path: _rewritten(path, lambda s: {k: v for k, v in s.items() if k != "step"})),
    "a number as history": ("state.json", lambda path: _rewritten(path, lambda s: s | {"history": 3})),
    "truncated tensors": ("3-6.safetensors", _cut),
    "no tensors": ("3-6.safetensors", lambda path: path.unlink()),
    "other tensors": ("3-6.safetensors", lambda path: save_file({"a": torch.zeros(2)}, path)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_named_with_the_folder_to_delete_and_then_training_starts_anew(
    tmp_path, monkeypatch, damage
):
    monkeypatch.setattr("plant.model.fitting.CHECKPOINT_SECONDS", -1.0)
    _, history = run(tmp_path / "whole")
    part, (name, spoil) = tmp_path / "part", DAMAGE[damage]
    with pytest.raises(KeyboardInterrupt):
        run(part, stop_in=3)
    spoil(part / name)
    with pytest.raises(InputError, match=rf"{name}.*Delete the folder {part} and run the same command again"):
        run(part)
    shutil.rmtree(part)
    assert run(part)[1] == history


def test_a_run_is_adamw_with_cosine_rates_clipping_and_accumulation(tmp_path):
    """Against a plain loop: 2 epochs of 5 batches, in groups of 2, 2 and 1."""
    torch.manual_seed(0)
    ours, x, y = nn.Linear(3, 1).double(), torch.randn(5, 4, 3).double(), torch.randn(5, 4, 1).double()
    theirs, epochs = copy.deepcopy(ours), itertools.count(1.0)

    def mean_loss(model, batch):
        return (model(x[batch]) - y[batch]).square().mean()

    groups = [Group("weight", [ours.weight], 0.1), Group("bias", [ours.bias], 0.02)]
    task = Task("test", groups, lambda epoch: range(5), lambda batch, _: (7 * mean_loss(ours, batch), 7.0),
                lambda: {"value": next(epochs)}, "value")  # fmt: skip
    settings = Optimisation(epochs=2, patience=None, accumulation=2, clip=0.3, weight_decay=0.2)
    fit(ours, task, settings, TrainingRun(0, tmp_path, "d"))
    rates = [{"params": [theirs.weight], "lr": 0.1}, {"params": [theirs.bias], "lr": 0.02}]
    adamw = torch.optim.AdamW(rates, weight_decay=0.2)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(adamw, T_max=6)
    for group in 2 * [(0, 1), (2, 3), (4,)]:
        adamw.zero_grad()
        (sum(mean_loss(theirs, batch) for batch in group) / len(group)).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.3)
        adamw.step()
        annealing.step()
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)
