"""Stage 2 as a whole: mining is exact, it learns, groups train when they should, features equal live states."""

import numpy as np
import pytest
import torch

from plant.finetuning.candidates import Shortlist
from plant.finetuning.finetune import batch_loss, finetune, parameter_groups
from plant.finetuning.losses import find_loss
from plant.ground.settings import Finetuning
from plant.model.assemble import load_weights, save_weights
from plant.model.batches import multi_hot, pad_documents, shuffled_batches
from plant.model.fitting import TrainingRun
from plant.pretraining.losses.approx_ndcg import approx_ndcg_loss

RECIPE = {"epochs": 15, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02, "hard_negatives": 3}  # fmt: skip


def shortlist(size=4):
    """Candidates of the 30 documents: `size` of the 6 labels at most, rows of unequal length."""
    random = np.random.default_rng(1)
    rows = np.full((30, size), -1, dtype=np.int32)
    for document in range(30):
        length = random.integers(1, size + 1)
        rows[document, :length] = random.choice(6, size=length, replace=False)
    return Shortlist(rows, np.arange(6), size)


def grouped(model, toy, batch, listed, m, settings):
    """S_i by hand and the loss of it, over all labels."""
    cpu = torch.device("cpu")
    documents, truth = pad_documents(toy, batch, cpu), multi_hot(toy, batch, 6, cpu)
    logits = model.logits(model.hidden_states(documents), documents.mask)
    kept = truth.clone()
    for row, document in enumerate(batch):
        allowed = range(6) if listed is None else listed.labels[document][listed.labels[document] >= 0].tolist()
        order = [label for label in logits[row].argsort(descending=True).tolist()
                 if label in allowed and not truth[row, label]]  # fmt: skip
        kept[row, order[:m]] = True
    return find_loss(settings)(logits, truth, n_labels=6 if listed is None else listed.size, selected=kept)


@pytest.mark.parametrize("loss", ["focal", "asymmetric", "approx_ndcg"])
@pytest.mark.parametrize("m", [1, 2, None])
@pytest.mark.parametrize("listed", [None, shortlist()], ids=["all labels", "shortlist"])
@pytest.mark.parametrize("one_pass", [1, 4], ids=["two passes", "one pass"])
def test_mining_has_the_loss_and_gradients_of_a_selection_by_hand(toy, monkeypatch, one_pass, listed, m, loss, make):
    monkeypatch.setattr("plant.finetuning.finetune.ONE_PASS", one_pass)
    batch = np.array([0, 3, 5, 11])
    settings = Finetuning(**RECIPE | {"hard_negatives": m}, loss=loss)
    two, one = make(), make()
    value, weight = batch_loss(two, toy, batch, settings, listed)
    value.backward()
    expected = grouped(one, toy, batch, listed, m, settings).sum()
    expected.backward()
    assert weight == 4
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    for a, b in zip(two.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


def test_label_smoothing_has_no_part_in_the_other_losses():
    torch.manual_seed(0)
    logits, truth = torch.randn(3, 6), torch.rand(3, 6) < 0.3
    for loss, same in (("focal", False), ("asymmetric", True), ("approx_ndcg", True)):
        one, two = (find_loss(Finetuning(loss=loss, epsilon=e))(logits, truth, n_labels=6) for e in (0, 0.2))
        assert torch.equal(one, two) == same


def test_approx_ndcg_of_stage_2_ranks_the_selected_labels_only():
    torch.manual_seed(0)
    logits = torch.randn(4, 9, dtype=torch.float64)
    truth, selected = torch.rand(4, 9) < 0.3, torch.rand(4, 9) < 0.6
    selected |= truth
    settings = Finetuning(loss="approx_ndcg", temperature=0.3)
    found = find_loss(settings)(logits, truth, n_labels=6, selected=selected)
    for row in range(4):
        kept = selected[row]
        expected = approx_ndcg_loss(
            logits[row, kept], truth[row, kept].double(), k=100, temperature=0.3, gain="exponential"
        )
        torch.testing.assert_close(found[row], expected)


LEARNING = [
    ({}, None, 0.6), ({"loss": "asymmetric"}, None, 0.6), ({"loss": "approx_ndcg"}, None, 0.6),
    ({"loss": "approx_ndcg", "hard_negatives": None}, None, 0.6), ({"hard_negatives": 2}, shortlist(6), 0.7),
]  # fmt: skip


@pytest.mark.parametrize(("change", "listed", "most"), LEARNING)
def test_stage_2_learns_the_indicators(toy, tmp_path, change, listed, most, make):
    settings = Finetuning(**RECIPE | change)
    history = finetune(make(), toy, settings, TrainingRun(0, tmp_path, "d"), shortlist=listed)
    assert history[-1]["loss"] < most * history[0]["loss"]
    assert max(row["macro_f1"] for row in history) > history[0]["macro_f1"]


@pytest.mark.parametrize(("rate", "moves"), [(0.0, False), (1.0, True)])
def test_attention_rate_freezes_or_frees_the_planted_parts(toy, tmp_path, rate, moves, make):
    model = make()
    before = [p.detach().clone() for p in model.attention.planted]
    settings = Finetuning(**RECIPE | {"epochs": 1}, attention_rate=rate)
    finetune(model, toy, settings, TrainingRun(0, tmp_path, "d"))
    assert any(not torch.equal(a, b) for a, b in zip(before, model.attention.planted, strict=True)) == moves


@pytest.mark.parametrize(
    ("key", "weight"),
    [
        ("backbone_from_epoch", lambda model: model.backbone.table.weight),
        ("attention_from_epoch", lambda model: model.attention.embeddings),
    ],
    ids=["backbone", "attention"],
)
def test_a_part_waits_for_its_epoch(toy, tmp_path, make, key, weight):
    before = weight(make()).detach().clone()
    for epochs, waits in ((1, True), (2, False)):
        model = make()
        settings = Finetuning(**RECIPE | {"epochs": epochs, key: 2})
        finetune(model, toy, settings, TrainingRun(0, tmp_path / str(epochs), "d"))
        assert torch.equal(before, weight(model)) == waits


def test_a_backbone_that_waits_for_an_epoch_that_never_comes_is_saved_as_it_was(toy, tmp_path, make):
    """Prediction reads the weights of Stage 2 alone: what Stage 1 trained must be among them."""
    model, again = make(seed=1), make()
    settings = Finetuning(**RECIPE | {"epochs": 1}, backbone_from_epoch=2)
    finetune(model, toy, settings, TrainingRun(0, tmp_path / "checkpoint", "d"))
    save_weights(model, tmp_path, head=True)
    load_weights(again, tmp_path, head=True)
    assert torch.equal(again.backbone.table.weight, make(seed=1).backbone.table.weight)


def test_every_trained_parameter_is_in_exactly_one_group_with_its_rate(make):
    model = make()
    groups = parameter_groups(model, Finetuning(learning_rate=0.01, head_learning_rate=0.04, attention_rate=0.5))
    assert {group.name: group.learning_rate for group in groups} == {"planted": 0.02, "head": 0.04, "backbone": 0.01}
    grouped = [id(p) for group in groups for p in group.parameters]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters())


def test_batches_are_a_permutation_that_depends_on_seed_and_epoch(toy):
    documents = toy.documents("train")
    first = shuffled_batches(toy, documents, 4, seed=0, epoch=1)
    assert sorted(np.concatenate(first).tolist()) == documents.tolist()
    again = shuffled_batches(toy, documents, 4, seed=0, epoch=1)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    other = shuffled_batches(toy, documents, 4, seed=0, epoch=2)
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in other]
