"""Stage 2 as a whole: mining is exact, it learns, groups train when they should, features equal live states."""

import numpy as np
import pytest
import torch
from torch import nn

from plant.finetuning.finetune import batch_loss, finetune, parameter_groups, predict_logits
from plant.finetuning.focal_loss import focal_loss
from plant.model.batches import multi_hot, pad_documents, shuffled_batches
from plant.model.classifier import LabelClassifier
from plant.settings import Finetuning


class Embedding(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.table = nn.Embedding(200, size)

    def forward(self, input_ids, mask):
        return self.table(input_ids) * mask[..., None]


def make(seed=0):
    torch.manual_seed(seed)
    return LabelClassifier(Embedding(), n_labels=6, hidden_size=16, heads=2, pool_size=4)


RECIPE = {"epochs": 15, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02, "hard_negatives": 3}  # fmt: skip


@pytest.mark.parametrize("one_pass", [1, 4], ids=["two passes", "one pass"])
def test_mining_has_the_loss_and_gradients_of_a_selection_by_hand(toy, monkeypatch, one_pass):
    monkeypatch.setattr("plant.finetuning.finetune.ONE_PASS", one_pass)
    batch, cpu = np.array([0, 3, 5]), torch.device("cpu")
    settings = Finetuning(**RECIPE)
    two = make()
    batch_loss(two, toy, batch, settings).backward()
    one = make()
    documents, truth = pad_documents(toy, batch, cpu), multi_hot(toy, batch, 6, cpu)
    logits = one.logits(one.hidden_states(documents), documents.mask)
    # S_i by hand: all positives and the three highest negatives
    kept = truth.clone()
    for row in range(3):
        order = [label for label in logits[row].argsort(descending=True).tolist() if not truth[row, label]]
        kept[row, order[:3]] = True
    focal_loss(logits, truth, gamma=2, epsilon=0.1, n_labels=6, selected=kept).mean().backward()
    for a, b in zip(two.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)


def test_stage_2_learns_the_indicators(toy, tmp_path):
    model = make()
    history = finetune(model, toy, Finetuning(**RECIPE), seed=0, checkpoint=tmp_path, digest="d")
    assert history[-1]["loss"] < 0.6 * history[0]["loss"]
    assert max(row["macro_f1"] for row in history) > history[0]["macro_f1"]


def test_predictions_come_in_the_order_asked_for(toy):
    model, documents = make(), np.array([7, 2, 9, 0, 4])
    together = predict_logits(model, toy, documents, batch_size=2)
    for row, document in enumerate(documents):
        alone = predict_logits(model, toy, np.array([document]), batch_size=1)
        np.testing.assert_allclose(together[row], alone[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rate", "moves"), [(0.0, False), (1.0, True)])
def test_attention_rate_freezes_or_frees_the_planted_parts(toy, tmp_path, rate, moves):
    model = make()
    before = [p.detach().clone() for p in model.attention.planted]
    settings = Finetuning(**RECIPE | {"epochs": 1}, attention_rate=rate)
    finetune(model, toy, settings, seed=0, checkpoint=tmp_path, digest="d")
    assert any(not torch.equal(a, b) for a, b in zip(before, model.attention.planted, strict=True)) == moves


def test_the_backbone_waits_for_its_epoch(toy, tmp_path):
    model = make()
    before = model.backbone.table.weight.detach().clone()
    settings = Finetuning(**RECIPE | {"epochs": 1}, backbone_from_epoch=2)
    finetune(model, toy, settings, seed=0, checkpoint=tmp_path / "one", digest="d")
    assert torch.equal(before, model.backbone.table.weight)
    settings = Finetuning(**RECIPE | {"epochs": 2}, backbone_from_epoch=2)
    model = make()
    finetune(model, toy, settings, seed=0, checkpoint=tmp_path / "two", digest="d")
    assert not torch.equal(before, model.backbone.table.weight)


def test_every_trained_parameter_is_in_exactly_one_group():
    model = make()
    grouped = [id(p) for group in parameter_groups(model, Finetuning()) for p in group.parameters]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters())


def test_batches_are_a_permutation_that_depends_on_seed_and_epoch(toy):
    documents = toy.documents("train")
    first = shuffled_batches(toy, documents, 4, seed=0, epoch=1)
    assert sorted(np.concatenate(first).tolist()) == documents.tolist()
    again = shuffled_batches(toy, documents, 4, seed=0, epoch=1)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    other = shuffled_batches(toy, documents, 4, seed=0, epoch=2)
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in other]


def test_cached_features_give_the_logits_of_live_states(toy):
    model = make()
    features = model.backbone.table.weight.detach().numpy()[toy.input_ids].astype(np.float16)
    cached = type(toy)(toy.input_ids, toy.offsets, toy.indptr, toy.indices, toy.splits, features)
    live = predict_logits(model, toy, toy.documents("test"), batch_size=2)
    np.testing.assert_allclose(predict_logits(model, cached, toy.documents("test"), batch_size=2), live, atol=2e-3)
